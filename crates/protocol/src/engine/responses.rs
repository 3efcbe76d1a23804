//! Answers and progress from the peer, and the timeouts of calls.

use std::time::Duration;

use crate::jsonrpc::{Notification, RawJson, RequestId, Response};
use crate::types::{Era, ProgressParams, ResultType, meta_key};

use super::deadline::Timer;
use super::requests::{Delivery, Kind};
use super::rules;
use super::{
    CallId, Clock, Closing, Engine, Event, ExchangeId, Outcome, Role, Sent, Time, Violation,
    planted,
};

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// An answer from the peer. Late, duplicate and unknown ones change nothing but a counter
    /// (**late-is-inert**).
    pub(super) fn handle_response(&mut self, now: Time, exchange: ExchangeId, response: Response) {
        let Some(id) = self.answered_call(exchange, &response.id) else {
            self.requests.ledger.late_answers += 1;
            return self.drop_announcement(now, &response.id);
        };
        let outcome = match response.body {
            Ok(result) => self.judge(id, result),
            Err(error) => Outcome::Refused(error),
        };
        self.finish_call(now, id, outcome);
    }

    /// The outgoing call that an answer on this exchange can belong to.
    pub(super) fn answered_call(&self, exchange: ExchangeId, id: &RequestId) -> Option<CallId> {
        let found = match id {
            RequestId::Number(number) => Some(CallId(*number)),
            RequestId::String(_) => None,
        };
        let found = found.filter(|id| {
            let own_only = rules::answers_on_own_exchange(self.config.role(), self.config.wire);
            // A request that was never written cannot be answered.
            let call = self.requests.call(*id);
            call.is_some_and(|call| {
                call.sent != Sent::Never && (!own_only || call.exchange == exchange)
            })
        });
        let newest = || self.requests.calls().iter().next_back().map(|(id, _)| id);
        planted::answered(found, newest)
    }

    /// The listen that a notification names. On a pipe all listens share one exchange.
    pub(super) fn listen_of(&self, notification: &Notification) -> Option<CallId> {
        if !self.is_client() || !self.handshake.is_modern() {
            return None;
        }
        let meta = notification.params.as_ref()?.field("_meta")?;
        let id: RequestId = meta.field(meta_key::SUBSCRIPTION_ID)?.decode().ok()?;
        let RequestId::Number(number) = id else {
            return None;
        };
        let id = CallId(number);
        let listens = self.requests.call(id)?.kind == Kind::Listen;
        listens.then_some(id)
    }

    /// Ends a call that the peer has answered, and closes the exchange that was opened for it.
    pub(super) fn finish_call(&mut self, now: Time, id: CallId, outcome: Outcome) {
        let Some(call) = self.end_call(now, id, outcome) else {
            return;
        };
        let ours = self.opens_exchanges();
        if ours {
            self.abandon_requests_on(now, call.exchange);
            self.close_exchange(call.exchange, Closing::Finished);
        }
    }

    /// Decides the outcome of a result.
    fn judge(&self, id: CallId, result: RawJson) -> Outcome {
        if !result.is_object() {
            return Outcome::Violated(Violation::ResultNotObject);
        }
        let Some(call) = self.requests.call(id) else {
            return Outcome::Answered(result);
        };
        if call.era == Era::Legacy {
            return Outcome::Answered(result);
        }
        let kind = result.field("resultType").map(|kind| kind.decode());
        match kind {
            None | Some(Ok(ResultType::Complete)) => Outcome::Answered(result),
            Some(Ok(ResultType::InputRequired)) if call.may_ask => Outcome::InputRequired(result),
            Some(Ok(ResultType::InputRequired)) => {
                Outcome::Violated(Violation::UnexpectedQuestions)
            }
            Some(Ok(ResultType::Other(kind))) if self.config.result_types.contains(&kind) => {
                Outcome::Answered(result)
            }
            Some(Ok(ResultType::Other(kind))) => {
                Outcome::Violated(Violation::UnknownResultType(kind))
            }
            Some(Err(_)) => Outcome::Violated(Violation::UnknownResultType(
                "something that is not a string".into(),
            )),
        }
    }

    /// Progress from the peer. It resets the idle timeout of its call, and shows that the peer has
    /// received the call.
    pub(super) fn handle_progress(&mut self, now: Time, notification: &Notification) {
        let params: Option<ProgressParams> = notification
            .params
            .as_ref()
            .and_then(|params| params.decode().ok());
        let Some((id, params)) = params.and_then(|params| match params.token.0 {
            RequestId::Number(number) => Some((CallId(number), params)),
            RequestId::String(_) => None,
        }) else {
            self.requests.ledger.stray_progress += 1;
            return;
        };
        let Some(call) = self
            .requests
            .call_mut(id)
            .filter(|call| call.sent != Sent::Never)
        else {
            self.requests.ledger.stray_progress += 1;
            return;
        };
        let value = params.progress.0;
        if call.progress.is_some_and(|last| value <= last) {
            self.requests.ledger.stale_progress += 1;
            return;
        }
        call.progress = Some(value);
        call.sent = Sent::Yes;
        call.delivery = Delivery::Known;
        let before = call.clocks.next();
        call.clocks.progress(now);
        let after = call.clocks.next();
        self.timers.reset(Timer::Call(id), before, after);
        let (call, caller) = (id, call.caller.clone());
        self.events.push_back(Event::Progress {
            call,
            params,
            caller,
        });
    }

    /// A timeout of a call has passed.
    pub(super) fn call_due(&mut self, now: Time, id: CallId) {
        let due = self.requests.call(id).and_then(|call| call.clocks.due(now));
        if let Some((clock, after)) = due {
            self.time_out(now, id, clock, after);
        }
    }

    pub(super) fn time_out(&mut self, now: Time, id: CallId, clock: Clock, after: Duration) {
        let outcome = |sent| Outcome::TimedOut { clock, after, sent };
        let reason = match clock {
            Clock::Idle => format!("timed out: no progress for {after:?}"),
            Clock::Total => format!("timed out after {after:?}"),
        };
        self.give_up(now, id, outcome, &reason);
    }

    /// A handler has begun to work on a request that arrived on this exchange.
    pub(super) fn work_began(&mut self, now: Time, on: ExchangeId) {
        if let Some(exchange) = self.exchanges.get_mut(on) {
            exchange.working += 1;
            if exchange.working == 1 {
                self.pause_idle_clocks(now, on, true);
            }
        }
    }

    /// A handler has answered, or its request is over.
    pub(super) fn work_ended(&mut self, now: Time, on: ExchangeId) {
        if let Some(exchange) = self.exchanges.get_mut(on) {
            exchange.working -= 1;
            if exchange.working == 0 {
                self.pause_idle_clocks(now, on, false);
            }
        }
    }

    /// Pauses or resumes idle timeouts. While a client works on a request from the server, for
    /// example while a person fills in a form, the server's silence is the client's own doing. A
    /// server never pauses: what a client asks is not asked on behalf of the server's own calls.
    fn pause_idle_clocks(&mut self, now: Time, exchange: ExchangeId, pause: bool) {
        if self.config.role() != Role::Client {
            return;
        }
        let exchanges = self.requests.calls().iter().map(|(_, call)| call.exchange);
        let still_owed: Vec<ExchangeId> = exchanges.filter(|on| self.owes_on(*on)).collect();
        for (id, call) in self.requests.calls_mut() {
            if call.exchange != exchange && exchange != ExchangeId::LINK {
                continue;
            }
            let before = call.clocks.next();
            match pause {
                true => call.clocks.pause(now),
                false if still_owed.contains(&call.exchange) => {}
                false => call.clocks.resume(now),
            }
            self.timers
                .reset(Timer::Call(id), before, call.clocks.next());
        }
    }

    pub(super) fn owes_on(&self, exchange: ExchangeId) -> bool {
        self.is_client()
            && [exchange, ExchangeId::LINK].iter().any(|exchange| {
                let exchange = self.exchanges.get(*exchange);
                exchange.is_some_and(|exchange| exchange.working > 0)
            })
    }
}
