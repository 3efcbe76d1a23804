//! Opening, breaking, resuming and closing exchanges.
//!
//! Every exchange is closed by [`Engine::close_exchange`], or forgotten when the transport reports
//! its end. The transport only carries out what the engine says, and keeps no table of requests.

use crate::jsonrpc::RequestId;

use super::deadline::Timer;
use super::exchange::{Abandoned, Exchange, Purpose};
use super::queue::Owner;
use super::requests::Delivery;
use super::rules::{self, Disconnect};
use super::{Closing, Engine, ExchangeId, Loss, LossKind, RequestKey, StopCause, Time, Transmit};

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// The peer has opened an exchange: a POST has come in. HTTP servers only.
    ///
    /// A GET stream is not opened but resumed: it is [`ExchangeId::LINK`], which always exists.
    pub fn handle_exchange_opened(&mut self) -> ExchangeId {
        let closing = match self.is_closed() {
            true => Closing::Abandoned,
            false => Closing::Accepted,
        };
        let read = false;
        self.open_exchange(Purpose::Theirs { read, closing })
    }

    /// No more messages will come on this exchange: the body of a POST, a pipe, or the response to
    /// a POST was read to its end.
    ///
    /// For a server on a pipe the orderly close begins (**orderly-close**). For a client it ends
    /// the link, or the call on that exchange.
    pub fn handle_input_ended(&mut self, now: Time, exchange: ExchangeId) {
        let is_link = exchange == ExchangeId::LINK && self.config.wire.has_one_stream();
        match (is_link, self.is_client()) {
            (true, true) => self.handle_link_lost(now, LossKind::EndOfStream.into()),
            (true, false) => self.drain_without_input(now),
            _ => match self
                .exchanges
                .get_mut(exchange)
                .map(|known| &mut known.purpose)
            {
                Some(Purpose::Theirs { read, .. }) => *read = true,
                Some(Purpose::Call(_) | Purpose::Abandoned(_)) => {
                    self.handle_exchange_lost(now, exchange, LossKind::NoAnswer.into(), false);
                }
                Some(Purpose::Link | Purpose::Lane) | None => {}
            },
        }
        self.settle(now);
    }

    /// This exchange is gone: the stream broke, the POST was answered or failed, the pipe broke.
    ///
    /// `resumable` means that the transport is resuming the stream. The call on it goes on waiting
    /// until [`Engine::handle_exchange_resumed`], or until this is called again because the first
    /// attempt was refused. It matters only on a client; on a server the era decides.
    pub fn handle_exchange_lost(
        &mut self,
        now: Time,
        exchange: ExchangeId,
        cause: Loss,
        resumable: bool,
    ) {
        let purpose = self.exchanges.get(exchange).map(|known| &known.purpose);
        match purpose.cloned() {
            None => self.requests.ledger.strays_on_closed_exchanges += 1,
            Some(Purpose::Link) => match self.config.wire.has_one_stream() {
                true => self.handle_link_lost(now, cause),
                false => self.mark_broken(exchange, true),
            },
            Some(Purpose::Theirs { .. }) => self.caller_disconnected(now, exchange),
            Some(Purpose::Call(_)) if resumable => self.mark_broken(exchange, true),
            Some(Purpose::Call(call)) => {
                self.lose_call(now, call, cause);
                self.abandon_requests_on(now, exchange);
                self.forget_exchange(exchange);
            }
            Some(Purpose::Lane) => {
                self.lose_lane(now, exchange, None);
            }
            Some(Purpose::Abandoned(_)) => {
                self.abandon_requests_on(now, exchange);
                self.close_exchange(exchange, Closing::Abandoned);
            }
        }
        self.settle(now);
    }

    /// The whole link is gone, with all its exchanges: the session is unknown, was deleted, or has
    /// expired. On a pipe this is the same as losing [`ExchangeId::LINK`].
    pub fn handle_link_lost(&mut self, now: Time, cause: Loss) {
        self.lose_link(now, cause);
        for exchange in self.exchanges.keys_where(|_| true) {
            self.close_exchange(exchange, Closing::Abandoned);
        }
        self.settle(now);
    }

    /// A broken exchange was resumed, a GET stream was opened, or another stream carries it now.
    pub fn handle_exchange_resumed(&mut self, now: Time, exchange: ExchangeId) {
        self.mark_broken(exchange, true);
        self.mark_broken(exchange, false);
        self.notice(exchange);
        if let Some(known) = self.exchanges.get_mut(exchange)
            && matches!(known.purpose, Purpose::Theirs { .. })
        {
            let due = known.timer.take();
            self.timers.reset(Timer::Exchange(exchange), due, None);
        }
        self.settle(now);
    }

    /// Whether this side opens exchanges. Then a frame on an exchange that the transport does not
    /// know yet has to be posted.
    pub fn opens_exchanges(&self) -> bool {
        rules::opens_exchanges(self.config.role(), self.config.wire)
    }

    /// Whether this exchange is open, or broken and resumable.
    pub fn is_open(&self, exchange: ExchangeId) -> bool {
        self.exchanges.get(exchange).is_some()
    }

    pub(super) fn open_exchange(&mut self, purpose: Purpose) -> ExchangeId {
        self.last_exchange += 1;
        let id = ExchangeId(self.last_exchange);
        self.exchanges.insert(id, Exchange::new(purpose));
        id
    }

    /// Closes an exchange: removes it, and tells the transport.
    pub(super) fn close_exchange(&mut self, exchange: ExchangeId, how: Closing) {
        if exchange != ExchangeId::LINK
            && let Some(kept) = self.forget_exchange(exchange)
        {
            self.transmits.push_back(Transmit::Close {
                exchange,
                how,
                kept,
            });
        }
    }

    /// Removes an exchange whose end the transport itself has reported.
    fn forget_exchange(&mut self, exchange: ExchangeId) -> Option<X> {
        let known = self.exchanges.remove(exchange)?;
        self.timers
            .reset(Timer::Exchange(exchange), known.timer, None);
        Some(known.kept)
    }

    pub(super) fn set_timer(&mut self, exchange: ExchangeId, until: Option<Time>) {
        if let Some(known) = self.exchanges.get_mut(exchange) {
            let before = std::mem::replace(&mut known.timer, until);
            self.timers.reset(Timer::Exchange(exchange), before, until);
        }
    }

    fn mark_broken(&mut self, exchange: ExchangeId, broken: bool) {
        if let Some(known) = self.exchanges.get_mut(exchange) {
            known.broken = broken;
            // The request of a call may still be on its way out while the response stream breaks.
            if broken && !matches!(known.purpose, Purpose::Call(_)) {
                known.queue.forget_begun();
            }
        }
    }

    /// Records how an incoming exchange will be closed. An answer takes precedence over silence,
    /// and silence over an empty response.
    pub(super) fn mark_closing(&mut self, exchange: ExchangeId, how: Closing) {
        if let Some(known) = self.exchanges.get_mut(exchange)
            && let Purpose::Theirs { closing, .. } = &mut known.purpose
            && *closing != Closing::Finished
        {
            *closing = how;
        }
    }

    /// The stream of a server's caller has closed. The era of its requests decides what that means.
    fn caller_disconnected(&mut self, now: Time, exchange: ExchangeId) {
        let serving = self.requests.all_serving();
        for key in serving.keys_where(|serving| serving.exchange == exchange) {
            let Some(serving) = self.requests.serving(key) else {
                continue;
            };
            match rules::disconnect(serving.version.era()) {
                Disconnect::Cancels => self.stop(now, key, StopCause::Disconnected),
                Disconnect::StartsResumeWindow => {
                    self.mark_broken(exchange, true);
                    let window = self.config.timeouts.resume_window;
                    let until = window.map(|window| now + window);
                    self.set_timer(exchange, until);
                }
            }
        }
        let waits = |known: &Exchange<X>| known.unanswered > 0;
        if !self.exchanges.get(exchange).is_some_and(waits) {
            self.forget_exchange(exchange);
        }
    }

    /// The timeout of an exchange has passed.
    pub(super) fn exchange_due(&mut self, now: Time, exchange: ExchangeId) {
        let purpose = self.exchanges.get(exchange).map(|known| &known.purpose);
        match purpose.cloned() {
            None => {}
            Some(Purpose::Theirs { .. }) => {
                let serving = self.requests.all_serving();
                for key in serving.keys_where(|serving| serving.exchange == exchange) {
                    self.stop(now, key, StopCause::ResumeWindowPassed);
                }
                self.close_exchange(exchange, Closing::Silent);
            }
            Some(Purpose::Lane) => {
                self.lose_lane(now, exchange, Some(Closing::Abandoned));
            }
            Some(Purpose::Abandoned(Abandoned::Unannounced { until, .. })) if now < until => {
                self.post_cancel(exchange);
            }
            Some(Purpose::Abandoned(_)) => {
                self.abandon_requests_on(now, exchange);
                self.close_exchange(exchange, Closing::Abandoned);
            }
            Some(Purpose::Link | Purpose::Call(_)) => self.set_timer(exchange, None),
        }
    }

    /// A lane is gone, and with it the answers in its queue. `how` is `None` if the transport
    /// reported the loss itself.
    fn lose_lane(&mut self, now: Time, lane: ExchangeId, how: Option<Closing>) {
        let known = self.exchanges.get(lane);
        let waiting = known.into_iter().flat_map(|known| known.queue.waiting());
        let unanswered: Vec<RequestKey> = waiting
            .filter_map(|frame| match frame.owner {
                Owner::Answer(key) => Some(key),
                _ => None,
            })
            .collect();
        self.lane_over(now, lane, how);
        for key in unanswered {
            self.stop(now, key, StopCause::Lost);
        }
    }

    /// Whether an exchange has an incoming request that is not over.
    fn is_asked_on(&self, exchange: ExchangeId) -> bool {
        let known = self.exchanges.get(exchange);
        known.is_some_and(|known| known.unanswered > 0)
    }

    /// Stops the incoming requests of a stream that is gone, since their caller cannot get an
    /// answer.
    pub(super) fn abandon_requests_on(&mut self, now: Time, exchange: ExchangeId) {
        if !self.is_asked_on(exchange) {
            return;
        }
        let serving = self.requests.all_serving();
        for key in serving.keys_where(|serving| serving.exchange == exchange) {
            self.stop(now, key, StopCause::Disconnected);
        }
    }

    /// Keeps the exchange of a call that was given up open for a while. HTTP and event streams
    /// only.
    pub(super) fn linger(&mut self, now: Time, exchange: ExchangeId, abandoned: Abandoned) {
        if let Some(known) = self.exchanges.get_mut(exchange) {
            known.purpose = Purpose::Abandoned(abandoned);
        }
        self.set_timer(exchange, Some(now + self.config.timeouts.cancel_post));
    }

    /// Posts the cancel of a call that was given up once its request has arrived: now, or when the
    /// time for a response head has passed.
    pub(super) fn announce_when_delivered(
        &mut self,
        now: Time,
        exchange: ExchangeId,
        delivery: Delivery,
    ) {
        let known = self.exchanges.get(exchange).map(|known| &known.purpose);
        let Some(Purpose::Abandoned(Abandoned::Unannounced { until, .. })) = known else {
            return;
        };
        let until = *until;
        match self.understood_at(now, delivery) {
            None => {}
            Some(due) if due <= now => self.post_cancel(exchange),
            Some(due) => self.set_timer(exchange, Some(due.min(until))),
        }
    }

    /// When the peer should understand a cancel, as far as that is known.
    pub(super) fn understood_at(&self, now: Time, delivery: Delivery) -> Option<Time> {
        match delivery {
            Delivery::Incomplete => None,
            Delivery::Known => Some(now),
            // This server accepts the two in either order.
            _ if self.peer_remembers_cancels => Some(now),
            Delivery::Written(at) => Some(at + self.config.timeouts.response_head),
            Delivery::Acknowledged(at) => Some(at + self.config.timeouts.after_head),
        }
    }

    /// Posts the cancel of a call whose request has arrived. Both POSTs have the same deadline.
    fn post_cancel(&mut self, exchange: ExchangeId) {
        let Some(known) = self.exchanges.get(exchange) else {
            return;
        };
        let Purpose::Abandoned(Abandoned::Unannounced { cancel, until }) = known.purpose.clone()
        else {
            return;
        };
        let lane = self.open_exchange(Purpose::Lane);
        self.set_timer(lane, Some(until));
        self.push(lane, *cancel);
        if let Some(lane) = self.exchanges.get_mut(lane) {
            lane.cancels = Some(exchange);
        }
        if let Some(known) = self.exchanges.get_mut(exchange) {
            known.purpose = Purpose::Abandoned(Abandoned::Announced(lane));
        }
        self.set_timer(exchange, Some(until));
    }

    /// The answer to a call that was given up has come before its cancel was posted, so there is
    /// nothing left to cancel (**announce-once**).
    pub(super) fn drop_announcement(&mut self, now: Time, answered: &RequestId) {
        let waits = |known: &Exchange<X>| match &known.purpose {
            Purpose::Abandoned(Abandoned::Unannounced { cancel, .. }) => {
                matches!(cancel.owner, Owner::Cancel(call) if call.request_id() == *answered)
            }
            _ => false,
        };
        for exchange in self.exchanges.keys_where(waits) {
            self.abandon_requests_on(now, exchange);
            self.close_exchange(exchange, Closing::Finished);
        }
    }

    /// A lane is over. If it carried a cancel, the exchange of the cancelled call is closed as
    /// well.
    fn lane_over(&mut self, now: Time, lane: ExchangeId, how: Option<Closing>) {
        let named = self.exchanges.get(lane).and_then(|lane| lane.cancels);
        match how {
            Some(how) => self.close_exchange(lane, how),
            None => drop(self.forget_exchange(lane)),
        }
        let announced = Purpose::Abandoned(Abandoned::Announced(lane));
        if let Some(named) = named
            && self
                .exchanges
                .get(named)
                .is_some_and(|known| known.purpose == announced)
        {
            self.abandon_requests_on(now, named);
            self.close_exchange(named, Closing::Abandoned);
        }
        self.lane_confirmed(lane);
    }

    /// Closes the exchanges that have nothing more to carry. Only those that were touched are
    /// checked.
    pub(super) fn settle_exchanges(&mut self, now: Time) {
        while let Some(exchange) = self.exchanges.next_touched() {
            let Some(known) = self.exchanges.get(exchange) else {
                continue;
            };
            match known.purpose {
                Purpose::Lane if known.queue.is_empty() => {
                    self.lane_over(now, exchange, Some(Closing::Finished));
                }
                Purpose::Theirs { read, closing }
                    if read && known.unanswered == 0 && known.queue.is_empty() =>
                {
                    self.close_exchange(exchange, closing);
                }
                _ => {}
            }
        }
    }

    /// The pipe is gone in both directions: every call is lost, every handler is stopped.
    pub(super) fn lose_link(&mut self, now: Time, cause: Loss) {
        if !self.begin_closing_lost(now, cause.clone()) {
            return;
        }
        for call in self.requests.calls().keys_where(|_| true) {
            self.lose_call(now, call, cause.clone());
        }
        for key in self.requests.all_serving().keys_where(|_| true) {
            self.stop(now, key, StopCause::Lost);
        }
        if let Some(link) = self.exchanges.get_mut(ExchangeId::LINK) {
            link.queue.clear();
        }
    }
}
