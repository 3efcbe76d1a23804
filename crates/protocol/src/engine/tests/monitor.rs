//! A monitor that observes one engine from outside, and checks it against the rules.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::types::CancelledParams;

use super::super::queue::Owner;
use super::answered::Answered;
use super::invariants::{Broken, broken};
use super::*;
use crate::jsonrpc::{Message, RequestId};
use crate::types::Notification as _;

/// What the monitor remembers. It is small, so that states can be compared.
#[derive(Clone, Default, Hash)]
pub(super) struct Monitor {
    calls: Vec<(CallId, CallSeen)>,
    served: Vec<(RequestKey, ServedSeen)>,
    /// Checks that every request that was taken is answered.
    pub(super) answered: Answered,
    link_lost: bool,
}

#[derive(Clone, Copy, Default, Debug)]
struct CallSeen {
    is_opening: bool,
    begun: bool,
    end: Option<End>,
    cancels: u8,
    /// Its exchange was closed or lost, so nothing more can be sent on it.
    over: bool,
}

#[derive(Clone, Default, Debug)]
struct ServedSeen {
    id: Option<RequestId>,
    last_progress: Option<u64>,
    answered: bool,
    over: bool,
}

/// Only what still matters: after the peer or the wire has ended a call, any further write or
/// cancel of it breaks a rule, however it ended.
impl Hash for CallSeen {
    fn hash<H: Hasher>(&self, h: &mut H) {
        match self.end {
            None => (0, self.begun, self.cancels, self.over).hash(h),
            Some(End::Cancelled | End::TimedOut) if self.begun => {
                (1, self.cancels, self.over).hash(h);
            }
            Some(_) => (2, self.cancels).hash(h),
        }
    }
}

impl Hash for ServedSeen {
    fn hash<H: Hasher>(&self, h: &mut H) {
        match self.answered || self.over {
            true => (self.answered, self.over).hash(h),
            false => self.last_progress.hash(h),
        }
    }
}

impl Monitor {
    pub(super) fn call_began(&mut self, call: CallId, is_opening: bool) {
        let seen = CallSeen {
            is_opening,
            ..CallSeen::default()
        };
        self.calls.push((call, seen));
    }

    pub(super) fn request_began(&mut self, key: RequestKey, id: RequestId) {
        let seen = ServedSeen {
            id: Some(id),
            ..ServedSeen::default()
        };
        self.served.push((key, seen));
    }

    /// A hash of what is remembered of one incoming request.
    pub(super) fn request_print(&self, key: RequestKey) -> u64 {
        let mut hasher = DefaultHasher::new();
        let mut served = self.served.iter();
        let seen = served.find(|(known, _)| *known == key);
        seen.map(|(_, seen)| seen).hash(&mut hasher);
        hasher.finish()
    }

    /// A hash of what is remembered of one outgoing call.
    pub(super) fn call_print(&self, id: CallId) -> u64 {
        let mut hasher = DefaultHasher::new();
        let seen = self.calls.iter().find(|(known, _)| *known == id);
        seen.map(|(_, seen)| seen).hash(&mut hasher);
        self.link_lost.hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn link_lost(&mut self) {
        self.link_lost = true;
        self.answered.all_gone();
    }

    pub(super) fn exchange_lost(&mut self, call: CallId) {
        if let Some(seen) = self.call(call) {
            seen.over = true;
        }
    }

    fn call(&mut self, call: CallId) -> Option<&mut CallSeen> {
        let mut calls = self.calls.iter_mut();
        calls.find(|(id, _)| *id == call).map(|(_, seen)| seen)
    }

    /// Checks a frame whose write begins. `owner` is the engine's view of the frame, the text is
    /// what the peer reads.
    pub(super) fn write_begun(
        &mut self,
        engine: &Engine,
        owner: Owner,
        frame: &Bytes,
    ) -> Result<(), Broken> {
        let message = jsonrpc::decode(frame, 64).map_err(|error| Broken {
            rule: "framing",
            how: error.to_string(),
        })?;
        if frame.contains(&b'\n') {
            return broken("framing", "a newline");
        }
        match message {
            Message::Request(request) => {
                let RequestId::Number(id) = request.id else {
                    return broken("late-is-inert", "an id that is not ours");
                };
                self.request_written(CallId(id))
            }
            Message::Notification(note) if &*note.method == CancelledParams::METHOD => {
                let params = note.params.and_then(|params| params.decode().ok());
                let Some(CancelledParams {
                    request_id: RequestId::Number(id),
                    ..
                }) = params
                else {
                    return broken("drop-announces", "a cancel that names nothing");
                };
                self.cancel_written(engine, CallId(id))
            }
            Message::Notification(note) if &*note.method == ProgressParams::METHOD => {
                let params = note.params.and_then(|params| params.decode().ok());
                let Some(params): Option<ProgressParams> = params else {
                    return broken("order", "progress that says nothing");
                };
                self.progress_written(engine, owner, params.progress.0)
            }
            Message::Notification(_) => Ok(()),
            Message::Response(response) => {
                self.answered.written(&response.id)?;
                self.answer_written(owner, &response.id)
            }
            Message::Unaddressed(_) => match owner {
                Owner::Refusal => Ok(()),
                _ => broken("strays-are-quiet", "an error for nobody"),
            },
        }
    }

    fn request_written(&mut self, id: CallId) -> Result<(), Broken> {
        let Some(seen) = self.call(id) else {
            return broken("one-end", format!("{id:?} was never asked for"));
        };
        if seen.begun {
            return broken("retry-is-explicit", format!("{id:?} is written twice"));
        }
        if let Some(end) = seen.end {
            let how = format!("{id:?} is written after it ended as {}", end.as_str());
            return broken("announce-once", how);
        }
        seen.begun = true;
        Ok(())
    }

    fn cancel_written(&mut self, engine: &Engine, id: CallId) -> Result<(), Broken> {
        let Some(seen) = self.call(id) else {
            return broken(
                "announce-once",
                format!("a cancel for {id:?}, which is not ours"),
            );
        };
        if seen.is_opening {
            return broken(
                "never-initialize",
                format!("{id:?} is cancelled on the wire"),
            );
        }
        if !seen.begun {
            let how = format!("a cancel for {id:?}, which was never written");
            return broken("announce-once", how);
        }
        // The application may not have received the end yet.
        let given_up = matches!(seen.end, None | Some(End::Cancelled | End::TimedOut));
        if engine.requests.call(id).is_some() || !given_up {
            let how = format!("a cancel for {id:?}, whose end is {:?}", seen.end);
            return broken("announce-once", how);
        }
        seen.cancels += 1;
        match seen.cancels {
            1 => Ok(()),
            _ => broken("announce-once", format!("{id:?} is cancelled twice")),
        }
    }

    fn served(&mut self, key: RequestKey) -> Option<&mut ServedSeen> {
        let mut served = self.served.iter_mut();
        served
            .find(|(known, _)| *known == key)
            .map(|(_, seen)| seen)
    }

    fn progress_written(
        &mut self,
        engine: &Engine,
        owner: Owner,
        value: f64,
    ) -> Result<(), Broken> {
        let Owner::Word(key) = owner else {
            return broken("order", "progress that belongs to nobody");
        };
        if engine.requests.serving(key).is_none() {
            return broken("silence", format!("progress for {key:?} after its end"));
        }
        let Some(seen) = self.served(key) else {
            return broken("order", "progress for something that never came");
        };
        if seen.answered || seen.over {
            return broken("order", format!("progress for {key:?} after its last word"));
        }
        if seen
            .last_progress
            .is_some_and(|last| f64::from_bits(last) >= value)
        {
            return broken("order", format!("progress of {key:?} does not grow"));
        }
        seen.last_progress = Some(value.to_bits());
        Ok(())
    }

    fn answer_written(&mut self, owner: Owner, id: &RequestId) -> Result<(), Broken> {
        let Owner::Answer(key) = owner else {
            return match owner {
                Owner::Refusal => Ok(()),
                _ => broken("order", format!("{owner:?} writes an answer")),
            };
        };
        let Some(seen) = self.served(key) else {
            // The engine answers some requests itself, without an event.
            return Ok(());
        };
        if seen.over {
            return broken(
                "silence",
                format!("{key:?} is answered after it was cancelled"),
            );
        }
        if std::mem::replace(&mut seen.answered, true) {
            return broken("order", format!("{key:?} is answered twice"));
        }
        match seen.id.as_ref() == Some(id) {
            true => Ok(()),
            false => broken("id-is-scoped", format!("{key:?} is answered as {id}")),
        }
    }

    /// Checks an event.
    pub(super) fn event(&mut self, event: &Event) -> Result<(), Broken> {
        match event {
            Event::Ended { call, outcome, .. } => self.ended(*call, outcome),
            Event::Progress { call, .. } => match self.call(*call) {
                Some(seen) if seen.end.is_none() => Ok(()),
                _ => broken(
                    "late-is-inert",
                    format!("progress of {call:?}, which is over"),
                ),
            },
            _ => Ok(()),
        }
    }

    fn ended(&mut self, call: CallId, outcome: &Outcome) -> Result<(), Broken> {
        let Some(seen) = self.call(call) else {
            return broken("one-end", format!("{call:?} was never asked for"));
        };
        if let Some(before) = seen.end.replace(outcome.end()) {
            let how = format!("{call:?} ended as {} before", before.as_str());
            return broken("one-end", how);
        }
        if seen.cancels > 0 && !matches!(outcome.end(), End::Cancelled | End::TimedOut) {
            let how = format!("{call:?} was cancelled, and ended as {outcome:?}");
            return broken("announce-once", how);
        }
        let says_sent = outcome
            .sent()
            .is_none_or(|sent| (sent != Sent::Never) == seen.begun);
        match says_sent {
            true => Ok(()),
            false => broken(
                "typed-end",
                format!("{outcome:?}, but begun: {}", seen.begun),
            ),
        }
    }

    /// The calls of the handshake have no `Ended` event. They end with the event of the handshake.
    pub(super) fn opening_ended(&mut self, call: CallId, end: End) {
        if let Some(seen) = self.call(call) {
            seen.end.get_or_insert(end);
        }
    }

    pub(super) fn closed(&mut self, call: CallId) {
        self.exchange_lost(call);
    }

    /// Checks what must hold after all outputs were polled.
    pub(super) fn check(&mut self, engine: &Engine) -> Result<(), Broken> {
        for (key, seen) in &mut self.served {
            // A request that is over without an answer stays silent forever.
            seen.over |= !seen.answered && engine.requests.serving(*key).is_none();
        }
        self.answered.check(engine)?;
        if self.link_lost || engine.closing.refuses_requests() {
            return Ok(());
        }
        for (id, seen) in &self.calls {
            let given_up = matches!(seen.end, Some(End::Cancelled | End::TimedOut));
            let owes_cancel = given_up && seen.begun && !seen.is_opening && !seen.over;
            if owes_cancel && seen.cancels == 0 && !engine.announcement_waits(*id) {
                return broken("drop-announces", format!("{id:?} was given up in silence"));
            }
        }
        Ok(())
    }

    pub(super) fn every_call_ended(&self) -> Result<(), Broken> {
        match self.calls.iter().find(|(_, seen)| seen.end.is_none()) {
            Some((id, _)) => broken("one-end", format!("{id:?} never ended")),
            None => Ok(()),
        }
    }
}
