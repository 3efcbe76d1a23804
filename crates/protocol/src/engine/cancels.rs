//! Cancels from the peer, including those that come too early or too late.

use std::collections::VecDeque;

use crate::jsonrpc::{Notification, RawJson, RequestId};
use crate::types::{CancelledParams, error_code};

use super::deadline::Timer;
use super::planted::{Bug, planted};
use super::requests::Kind;
use super::rules::{self, CancelNames};
use super::{CallId, Engine, ExchangeId, Outcome, RequestKey, Sent, StopCause, Time, encode};

/// Longer ids are not remembered, to bound the memory.
const LONGEST_ID: usize = 256;

/// What a legacy session remembers of ids that are not in flight. Request and cancel are two POSTs,
/// and the cancel may arrive first (**cancel-overtakes**).
///
/// Each kind of entry expires after a few seconds and is limited in number; the oldest is dropped
/// first.
#[derive(Clone, Default, Debug)]
pub(super) struct EarlyCancels {
    remembered: VecDeque<(Time, RequestId, Memory)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Memory {
    /// The request was cancelled and has not arrived.
    Cancelled,
    /// The request arrived and is over. A cancel for it is late, not early. Some clients use the
    /// same id for every request, and must not lose their next request to it.
    Over,
}

impl EarlyCancels {
    /// Frees spare memory.
    pub(super) fn shrink(&mut self) {
        self.remembered.shrink_to_fit();
    }

    fn due(&self) -> Option<Time> {
        self.remembered.front().map(|(until, ..)| *until)
    }

    fn position(&self, id: &RequestId) -> Option<usize> {
        self.remembered.iter().position(|(_, known, _)| known == id)
    }

    #[cfg(test)]
    pub(super) fn memory(&self, id: &RequestId) -> impl std::hash::Hash + use<> {
        self.position(id).map(|at| self.remembered[at].2)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.remembered.len()
    }
}

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// Handles `notifications/cancelled`. Unknown, finished, duplicate and malformed ones are
    /// ignored: they get no reply and are counted (**strays-are-quiet**).
    pub(super) fn handle_cancelled(
        &mut self,
        now: Time,
        exchange: ExchangeId,
        notification: &Notification,
    ) {
        let params = notification.params.as_ref();
        let params = params.and_then(|params| params.decode::<CancelledParams>().ok());
        let acted = params.is_some_and(|params| self.cancel_named(now, &params));
        if !acted {
            self.requests.ledger.stray_cancels += 1;
            if planted(Bug::StrayCancelAnswered) {
                let error = crate::jsonrpc::ErrorObject::new(error_code::INVALID_PARAMS, "what?");
                self.refuse(now, exchange, encode::unaddressed(&error), error.code);
            }
        }
    }

    fn cancel_named(&mut self, now: Time, params: &CancelledParams) -> bool {
        let reason = params.reason.as_deref();
        if planted(Bug::CancelLooksInBothDirections)
            && let RequestId::Number(number) = params.request_id
            && self.requests.call(CallId(number)).is_some()
        {
            self.cancel(now, CallId(number), reason);
            return true;
        }
        match rules::cancel_names(self.config.role(), self.config.wire, &self.handshake) {
            CancelNames::Nothing => false,
            CancelNames::OurListens => self.end_our_listen(now, &params.request_id),
            CancelNames::TheirRequests => match self.find(&params.request_id) {
                Found::One(key) => {
                    let reason = reason.map(Into::into);
                    self.stop(now, key, StopCause::Cancelled { reason });
                    true
                }
                Found::None => {
                    self.remember(now, &params.request_id, Memory::Cancelled);
                    false
                }
                Found::Several | Found::Uncancellable => false,
            },
        }
    }

    /// A modern server ends a listen with a cancel, which is as graceful as a result. (The
    /// specification's pages disagree on which of the two a server sends; both are accepted.)
    fn end_our_listen(&mut self, now: Time, id: &RequestId) -> bool {
        let RequestId::Number(number) = id else {
            return false;
        };
        let id = CallId(*number);
        let listens = self
            .requests
            .call(id)
            .is_some_and(|call| call.kind == Kind::Listen && call.sent != Sent::Never);
        if listens {
            let result = RawJson::parse(r#"{"resultType":"complete"}"#).expect("this is JSON");
            self.finish_call(now, id, Outcome::Answered(result));
        }
        listens
    }

    /// The incoming request with this id. On HTTP two requests on different exchanges can have the
    /// same id; a cancel then names neither (**id-is-scoped**).
    fn find(&self, id: &RequestId) -> Found {
        let mut matching = self.requests.serving_with_id(id);
        match (matching.next(), matching.next()) {
            (None, _) => Found::None,
            (Some((_, serving)), None) if serving.kind == Kind::Initialize => Found::Uncancellable,
            (Some((key, _)), None) => Found::One(key),
            (Some(_), Some(_)) => Found::Several,
        }
    }

    /// Whether a request was cancelled before it arrived. Such a request never starts.
    pub(super) fn was_cancelled_early(&mut self, id: &RequestId) -> bool {
        let Some(at) = self.early_cancels.position(id) else {
            return false;
        };
        let (_, _, memory) = &mut self.early_cancels.remembered[at];
        std::mem::replace(memory, Memory::Over) == Memory::Cancelled
    }

    /// Remembers that a request is over, so that a cancel for it counts as late.
    pub(super) fn remember_over(&mut self, now: Time, id: &RequestId) {
        self.remember(now, id, Memory::Over);
    }

    fn remember(&mut self, now: Time, id: &RequestId, memory: Memory) {
        // The sender chooses the length of its ids, and this side pays for the memory.
        let is_long = matches!(id, RequestId::String(id) if id.len() > LONGEST_ID);
        if !self.remembers_cancels() || is_long {
            return;
        }
        let known = self.early_cancels.position(id);
        // A cancel for a request that is over stays a late one.
        if known.is_some() && memory == Memory::Cancelled {
            return;
        }
        let before = self.early_cancels.due();
        let remembered = &mut self.early_cancels.remembered;
        if let Some(at) = known {
            remembered.remove(at);
        }
        let alike = |entry: &(Time, RequestId, Memory)| entry.2 == memory;
        if remembered.iter().filter(|entry| alike(entry)).count()
            >= self.config.limits.early_cancels
            && let Some(oldest) = remembered.iter().position(alike)
        {
            remembered.remove(oldest);
        }
        let until = now + self.config.timeouts.early_cancel;
        // Most sessions never have more than one entry.
        if remembered.is_empty() {
            remembered.reserve_exact(1);
        }
        remembered.push_back((until, id.clone(), memory));
        let after = self.early_cancels.due();
        self.timers.reset(Timer::EarlyCancel, before, after);
    }

    /// The oldest entry has expired.
    pub(super) fn forget_early_cancel(&mut self) {
        let before = self.early_cancels.due();
        self.early_cancels.remembered.pop_front();
        let after = self.early_cancels.due();
        self.timers.reset(Timer::EarlyCancel, before, after);
    }

    pub(super) fn forget_all_early_cancels(&mut self) {
        let before = self.early_cancels.due();
        self.early_cancels.remembered.clear();
        self.timers.reset(Timer::EarlyCancel, before, None);
    }

    fn remembers_cancels(&self) -> bool {
        rules::remembers_early_cancels(self.config.role(), self.config.wire)
            && self.handshake.is_legacy()
    }
}

enum Found {
    None,
    One(RequestKey),
    /// The request is `initialize`, which a client must not cancel.
    Uncancellable,
    Several,
}
