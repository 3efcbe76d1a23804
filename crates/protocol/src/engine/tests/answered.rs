//! The rule **answered-or-gone**, checked on the wire: every request frame that was taken from the
//! transport gets exactly one answer frame, unless it was cancelled or its connection is gone.
//!
//! This looks at frames, not at the ledger, which can be balanced although an answer is missing.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::invariants::{Broken, broken};
use super::*;
use crate::jsonrpc::{Message, RequestId};
use crate::types::{CancelledParams, Notification as _};

/// The requests that were taken, and how many answers each may still get.
#[derive(Clone, Default, Hash)]
pub(super) struct Answered {
    taken: Vec<Taken>,
    /// Ids that were cancelled before their request arrived.
    cancelled_early: Vec<RequestId>,
}

#[derive(Clone, Debug)]
struct Taken {
    id: RequestId,
    on: ExchangeId,
    due: Due,
}

/// The id of the exchange does not matter for comparing states.
impl Hash for Taken {
    fn hash<H: Hasher>(&self, h: &mut H) {
        (&self.id, self.due).hash(h);
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Due {
    /// Exactly one answer, which was not written yet.
    One,
    /// At most one: the request was cancelled or its caller is gone, but an answer may be on its
    /// way.
    AtMostOne,
    /// No more answers.
    Nothing,
}

impl Answered {
    /// Records a frame taken from the transport.
    pub(super) fn taken(&mut self, engine: &Engine, on: ExchangeId, frame: &str) {
        let Ok(message) = jsonrpc::decode(&Bytes::copy_from_slice(frame.as_bytes()), 64) else {
            return;
        };
        match message {
            // A client must not answer a modern server.
            Message::Request(_) if engine.is_client() && engine.handshake.is_modern() => {}
            Message::Request(request) => {
                let early = self.cancelled_early.contains(&request.id);
                let due = if early { Due::AtMostOne } else { Due::One };
                let id = request.id;
                self.taken.push(Taken { id, on, due });
            }
            Message::Notification(note) if &*note.method == CancelledParams::METHOD => {
                let params = note.params.and_then(|params| params.decode().ok());
                let names_requests = !engine.is_client() || engine.handshake.is_legacy();
                // On modern HTTP a posted cancel has no effect.
                let means_nothing =
                    engine.config.wire == Wire::Http && !engine.handshake.is_legacy();
                if let Some(CancelledParams { request_id, .. }) = params
                    && names_requests
                    && !means_nothing
                {
                    self.cancelled(request_id);
                }
            }
            _ => {}
        }
    }

    fn cancelled(&mut self, id: RequestId) {
        self.excuse(|taken| taken.id == id);
        let came = self.taken.iter().any(|taken| taken.id == id);
        if !came && !self.cancelled_early.contains(&id) {
            self.cancelled_early.push(id);
        }
    }

    /// Records that the write of an answer has begun.
    pub(super) fn written(&mut self, id: &RequestId) -> Result<(), Broken> {
        let mut taken = self.taken.iter_mut().filter(|taken| taken.id == *id);
        match taken.find(|taken| taken.due != Due::Nothing) {
            Some(taken) => taken.due = Due::Nothing,
            None => return broken("answered-or-gone", format!("{id} is answered once more")),
        }
        Ok(())
    }

    /// An exchange is gone. Its requests need no answer any more, nor do those whose answers wait
    /// on it.
    pub(super) fn gone(&mut self, engine: &Engine, exchange: ExchangeId) {
        let waiting = answers_on(engine, exchange);
        self.excuse(|taken| taken.on == exchange || waiting.contains(&taken.id));
    }

    /// The same for an exchange that can be resumed. Its requests stay, but a refusal is not kept.
    pub(super) fn broken_off(&mut self, engine: &Engine, exchange: ExchangeId) {
        let served = |id: &RequestId| {
            let mut serving = engine.requests.all_serving().iter();
            serving.any(|(_, serving)| serving.id == *id)
        };
        self.excuse(|taken| taken.on == exchange && !served(&taken.id));
    }

    pub(super) fn all_gone(&mut self) {
        self.excuse(|_| true);
    }

    fn excuse(&mut self, matches: impl Fn(&Taken) -> bool) {
        for taken in &mut self.taken {
            if taken.due == Due::One && matches(taken) {
                taken.due = Due::AtMostOne;
            }
        }
    }

    /// Checks that every request that needs an answer has a handler, or an answer in a queue.
    pub(super) fn check(&mut self, engine: &Engine) -> Result<(), Broken> {
        if engine.closing.is_stopping() {
            self.all_gone();
        }
        if engine.is_client() {
            // A request on the stream of a call needs no answer after that call is over.
            self.excuse(|taken| !engine.is_open(taken.on));
        }
        for taken in self.taken.iter().filter(|taken| taken.due == Due::One) {
            let mut serving = engine.requests.all_serving().iter();
            let served = serving.any(|(_, serving)| serving.id == taken.id);
            let mut exchanges = engine.exchanges.iter();
            let mut waits = || exchanges.any(|(id, _)| answers_on(engine, id).contains(&taken.id));
            if !served && !waits() {
                return broken("answered-or-gone", format!("{} is forgotten", taken.id));
            }
        }
        Ok(())
    }

    /// A hash of what is recorded about the request with this id.
    pub(super) fn print(&self, id: &RequestId) -> u64 {
        let mut hasher = DefaultHasher::new();
        let taken = self.taken.iter().find(|taken| taken.id == *id);
        taken.map(|taken| taken.due).hash(&mut hasher);
        self.cancelled_early.contains(id).hash(&mut hasher);
        hasher.finish()
    }

    pub(super) fn nothing_is_owed(&self) -> Result<(), Broken> {
        match self.taken.iter().find(|taken| taken.due == Due::One) {
            Some(taken) => broken("answered-or-gone", format!("{} got no answer", taken.id)),
            None => Ok(()),
        }
    }
}

/// The requests whose answers wait to be written on this exchange.
fn answers_on(engine: &Engine, exchange: ExchangeId) -> Vec<RequestId> {
    let queued = engine.queued(exchange);
    let answers = queued.filter_map(|frame| match jsonrpc::decode(frame, 64) {
        Ok(Message::Response(response)) => Some(response.id),
        _ => None,
    });
    answers.collect()
}
