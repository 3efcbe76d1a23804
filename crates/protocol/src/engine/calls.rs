//! The requesting side: a call from its beginning to its end.
//!
//! ```text
//!              ┌──────────────────── request ─────────────────────┐
//!              ▼                                                  │ a limit, a closed link
//!            queued ─── write begun ──► in flight                 ▼
//!              │                          │  │             Rejected, Lost
//!              │ given up:                │  │ given up: announced, once
//!              │ taken out of the queue,  │  └──► Cancelled, TimedOut
//!              │ never written            │
//!              ▼                          │ the peer: Answered, InputRequired, Refused, Violated
//!      Cancelled, TimedOut                └ the wire: Lost
//! ```

use crate::types::Era;
use crate::types::modern::InputRequiredResult;

use super::deadline::{CallClocks, Timer};
use super::exchange::{Abandoned, Purpose};
use super::queue::{Frame, Owner};
use super::requests::{Call, Delivery, Kind};
use super::rules::{self, Announcement};
use super::{
    Ask, By, CallId, Closing, Deadlines, Engine, Event, Loss, LossKind, Outcome, Rejection, Sent,
    Time, Wire, encode, planted,
};

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// Makes a call. Its end comes as an [`Event::Ended`]. If it ends before it begins, the outcome
    /// is returned here, and no event follows.
    pub fn request(&mut self, now: Time, ask: Ask) -> Result<CallId, Outcome> {
        let kind = rules::kind(&ask.method);
        let allowed = self.allow(&ask, kind);
        let began = allowed.and_then(|era| self.open(now, &ask, kind, era));
        if let Err(outcome) = &began {
            self.requests.refuse_call(outcome.end());
        }
        self.settle(now);
        began
    }

    /// Cancels a call on behalf of its caller. Returns at once, whatever the peer and the wire do
    /// (**cancel-never-waits**). A call that is over is left alone.
    pub fn cancel(&mut self, now: Time, call: CallId, reason: Option<&str>) {
        let outcome = |sent| Outcome::Cancelled {
            by: By::Caller,
            reason: reason.map(Into::into),
            sent,
        };
        let announced = reason.unwrap_or("cancelled by the caller");
        self.give_up(now, call, outcome, announced);
        self.settle(now);
    }

    /// Whether an outgoing call was sent; `None` if it is over.
    pub fn sent(&self, call: CallId) -> Option<Sent> {
        self.requests.call(call).map(|call| call.sent)
    }

    /// Whether a call may be made now, and in which era.
    fn allow(&self, ask: &Ask, kind: Kind) -> Result<Era, Outcome> {
        if !ask.params.is_object() {
            return Err(Outcome::Rejected(Rejection::ParamsNotObject));
        }
        if kind == Kind::Initialize {
            return Err(Outcome::Rejected(Rejection::NotAllowed));
        }
        if let Some(cause) = self.unreachable() {
            let sent = Sent::Never;
            return Err(Outcome::Lost { cause, sent });
        }
        let Some(serves) = ask.serves else {
            return match (self.is_client(), self.version()) {
                (true, Some(version)) => Ok(version.era()),
                (false, Some(_)) => Ok(Era::Legacy),
                (_, None) => Err(Outcome::Rejected(Rejection::NotConnected)),
            };
        };
        let parent = self.requests.serving(serves);
        match parent.filter(|parent| parent.stage.is_working()) {
            None => Err(Outcome::Cancelled {
                by: By::Caller,
                reason: Some("the request it was made for is over".into()),
                sent: Sent::Never,
            }),
            Some(serving) if !self.is_client() && serving.version.era() == Era::Modern => {
                Err(Outcome::Rejected(Rejection::NotAllowed))
            }
            Some(serving) => Ok(serving.version.era()),
        }
    }

    /// Begins a call. This is the only place that does.
    pub(super) fn open(
        &mut self,
        now: Time,
        ask: &Ask,
        kind: Kind,
        era: Era,
    ) -> Result<CallId, Outcome> {
        let id = self.requests.next_call();
        let bytes = match kind {
            Kind::Initialize => encode::plain_call(id, &ask.method, &ask.params),
            _ => encode::call(id, ask, self.client_meta.as_ref()),
        };
        self.check_room(bytes.len(), ask)
            .map_err(Outcome::Rejected)?;
        let exchange = self.outlet(now, ask.serves, Purpose::Call(id));
        let configured = rules::deadlines(&ask.method, self.config.deadlines);
        let deadlines = Deadlines {
            idle: ask.idle.or(configured.idle),
            total: ask.total.or(configured.total),
        };
        let mut clocks = CallClocks::start(deadlines, now);
        if self.owes_on(exchange) {
            clocks.pause(now);
        }
        let due = clocks.next();
        let began = self.requests.begin_call(Call {
            caller: C::default(),
            kind,
            exchange,
            serves: ask.serves,
            era,
            may_ask: InputRequiredResult::may_answer(&ask.method),
            sent: Sent::Never,
            delivery: Delivery::Incomplete,
            clocks,
            progress: None,
        });
        debug_assert_eq!(began, id);
        self.timers.reset(Timer::Call(id), None, due);
        let owner = Owner::Call(id);
        self.push(exchange, Frame::new(owner, bytes));
        Ok(id)
    }

    fn check_room(&self, bytes: usize, ask: &Ask) -> Result<(), Rejection> {
        let limits = &self.config.limits;
        if self.requests.calls().len() >= limits.calls {
            let limit = limits.calls;
            return Err(Rejection::TooManyCalls { limit });
        }
        self.check_bytes(bytes, ask.serves)
    }

    /// Ends a call. This is the only place that does. Returns `None` if the call is over already.
    pub(super) fn end_call(&mut self, now: Time, id: CallId, outcome: Outcome) -> Option<Call<C>> {
        let mut call = self.requests.end_call(id, outcome.end())?;
        self.timers.reset(Timer::Call(id), call.clocks.next(), None);
        match call.kind {
            Kind::Initialize | Kind::Probe => self.opening_ended(now, id, outcome),
            Kind::Ordinary | Kind::Listen => {
                self.events.push_back(Event::Ended {
                    call: id,
                    outcome,
                    caller: std::mem::take(&mut call.caller),
                });
            }
        }
        Some(call)
    }

    /// Ends a call whose caller does not wait any more, and tells the peer if it may know of the
    /// call (**drop-announces**, **announce-once**).
    pub(super) fn give_up(
        &mut self,
        now: Time,
        id: CallId,
        outcome: impl FnOnce(Sent) -> Outcome,
        reason: &str,
    ) {
        let Some(sent) = self.requests.call(id).map(|call| call.sent) else {
            return;
        };
        let outcome = outcome(sent);
        let announcements = planted::announcements(sent != Sent::Never, &outcome);
        let Some(call) = self.end_call(now, id, outcome) else {
            return;
        };
        if sent == Sent::Never {
            self.withdraw(call.exchange, |owner| owner == Owner::Call(id));
        }
        for _ in 0..announcements {
            self.announce(now, id, &call, reason);
        }
    }

    fn announce(&mut self, now: Time, id: CallId, call: &Call<C>, reason: &str) {
        let (role, wire) = (self.config.role(), self.config.wire);
        let how = rules::announcement(role, wire, call.era, call.kind);
        let how = planted::announcement(how);
        let bytes = encode::cancelled(id, Some(reason));
        let owner = Owner::Cancel(id);
        let cancel = Frame::new(owner, bytes);
        match how {
            Announcement::None if wire != Wire::Pipe => {
                self.linger(now, call.exchange, Abandoned::Unspoken);
            }
            Announcement::None => {}
            Announcement::Notification => {
                self.push_cancel(call.exchange, cancel);
            }
            Announcement::CloseExchange => {
                self.abandon_requests_on(now, call.exchange);
                self.close_exchange(call.exchange, Closing::Abandoned);
            }
            Announcement::Post => {
                let until = now + self.config.timeouts.cancel_post;
                let cancel = Box::new(cancel);
                let unannounced = Abandoned::Unannounced { cancel, until };
                self.linger(now, call.exchange, unannounced);
                self.announce_when_delivered(now, call.exchange, call.delivery);
            }
        }
    }

    /// Ends a call as lost, because its exchange or the whole link is gone.
    pub(super) fn lose_call(&mut self, now: Time, id: CallId, cause: Loss) {
        if let Some(call) = self.requests.call(id) {
            let (sent, exchange) = (call.sent, call.exchange);
            self.end_call(now, id, Outcome::Lost { cause, sent });
            self.withdraw(exchange, |owner| owner == Owner::Call(id));
        }
    }

    /// Why no new call can be made, if the link is closed or closing.
    pub(super) fn unreachable(&self) -> Option<Loss> {
        self.closing
            .refuses_calls()
            .then(|| self.closed_because().unwrap_or(LossKind::ClosedByUs.into()))
    }
}
