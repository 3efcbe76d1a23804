//! How a link is closed (**orderly-close**).
//!
//! ```text
//!   Open ── end of input, shutdown ──► Draining ── time, or a second shutdown ──► Stopping
//!     │                                    └───── nothing left to answer ─────────►  │
//!     │ shutdown at once                                                             │
//!     ├─────────────────────────────────────────────────────────────────────────────►│
//!     │ the pipe broke, or no peer is left to read or write  handlers are gone, or   │
//!     └─────────────────────────────────────────────────────► their grace is over    ▼
//!                                    Closed ◄── all is written, or time ──── Flushing
//! ```
//!
//! *Draining*: no new requests; running handlers may finish and answer. *Stopping*: tokens fire,
//! plain handlers are dropped, others get their grace; our own calls are given up and announced.
//! *Flushing*: what is left in the queues, cancels above all, goes out.

use std::time::Duration;

use super::deadline::Timer;
use super::exchange::Purpose;
use super::{By, Closing, Engine, Event, ExchangeId, Loss, LossKind, Outcome, StopCause, Time};

/// How to shut down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shutdown {
    /// Let running handlers finish for a while, then stop them. A second shutdown ends the drain.
    Drain,
    /// Stop handlers now.
    Now,
}

#[derive(Clone, Debug)]
pub(super) struct ClosingState {
    phase: Phase,
    cause: Option<Loss>,
    until: Option<Time>,
    /// This side asked for the shutdown, so slow readers are not waited for.
    hurried: bool,
    /// The writer of our input is gone, though the end of input has not been reached.
    hung_up: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Open,
    /// `deaf`: the input has ended, so no outgoing call can be answered.
    Draining {
        deaf: bool,
    },
    Stopping,
    Flushing,
    Closed,
}

impl ClosingState {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Open,
            cause: None,
            until: None,
            hurried: false,
            hung_up: false,
        }
    }

    pub(super) fn refuses_requests(&self) -> bool {
        self.phase != Phase::Open
    }

    pub(super) fn refuses_calls(&self) -> bool {
        !matches!(self.phase, Phase::Open | Phase::Draining { deaf: false })
    }

    /// Whether handlers have been stopped.
    #[cfg(test)]
    pub(super) fn is_stopping(&self) -> bool {
        !matches!(self.phase, Phase::Open | Phase::Draining { .. })
    }

    #[cfg(test)]
    pub(super) fn fingerprint(&self) -> impl std::hash::Hash + use<> {
        (self.phase, self.until.is_some(), self.hurried, self.hung_up)
    }

    /// The longest grace of a handler that is stopped now.
    pub(super) fn grace_left(&self, now: Time) -> Option<Duration> {
        match self.phase {
            Phase::Stopping => self.until.map(|until| until - now),
            _ => None,
        }
    }
}

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// Closes the link from this side. [`Event::Closed`] follows soon.
    pub fn shutdown(&mut self, now: Time, how: Shutdown) {
        let cause = LossKind::ClosedByUs.into();
        let waited_for_reader = self.waits_for_reader();
        self.closing.hurried = true;
        match (self.closing.phase, how) {
            (Phase::Open, Shutdown::Drain) if !self.is_client() => {
                self.begin_draining(now, cause, false);
            }
            (Phase::Open | Phase::Draining { .. }, _) => self.begin_stopping(now, cause),
            (Phase::Flushing, _) if waited_for_reader => self.begin_flushing(now),
            _ => {}
        }
        self.settle(now);
    }

    /// The driver stops driving the link. The link is closed at once, without waiting for handlers.
    pub fn abandon(&mut self, now: Time) {
        self.handle_link_lost(now, LossKind::ClosedByUs.into());
        if self.closing.phase == Phase::Stopping {
            self.begin_flushing(now);
            self.settle(now);
        }
    }

    /// The writer of our input is gone. The end of the input is not reached while answers pile up
    /// and reading is paused ([`Engine::wants_input`]). If the peer then reads nothing for
    /// [`last_answers`](super::Timeouts::last_answers), the link is lost (**orderly-close**).
    pub fn handle_hung_up(&mut self, now: Time) {
        self.closing.hung_up = true;
        self.settle(now);
    }

    /// The operating system has accepted some of our bytes. After the end of the input, or when its
    /// writer is gone, that shows that the peer still reads, so the flush goes on
    /// (**orderly-close**).
    pub fn handle_bytes_taken(&mut self, now: Time) {
        let waits = match self.closing.phase {
            Phase::Open => self.closing.until.is_some(),
            Phase::Flushing => self.waits_for_reader(),
            _ => false,
        };
        if waits {
            self.wait_for_reader(now);
        }
    }

    fn wait_for_reader(&mut self, now: Time) {
        let until = now + self.config.timeouts.last_answers;
        self.enter(self.closing.phase, Some(until));
    }

    /// Whether the remaining frames go to a peer that has ended its own output and may read slowly.
    fn waits_for_reader(&self) -> bool {
        let cause = self.closing.cause.as_ref().map(|cause| cause.kind);
        cause == Some(LossKind::EndOfStream) && !self.closing.hurried && !self.is_client()
    }

    /// Why the link is closed or closing, if it is (**closed-is-known**).
    pub fn closed_because(&self) -> Option<Loss> {
        self.closing.cause.clone()
    }

    /// Whether the link is closed: [`Event::Closed`] is queued or was taken.
    pub fn is_closed(&self) -> bool {
        self.closing.phase == Phase::Closed
    }

    /// The input has ended. No outgoing call can be answered any more, but incoming requests can,
    /// as long as the peer reads.
    pub(super) fn drain_without_input(&mut self, now: Time) {
        if !matches!(self.closing.phase, Phase::Open | Phase::Draining { .. }) {
            return;
        }
        let cause = Loss::from(LossKind::EndOfStream);
        for call in self.requests.calls().keys_where(|_| true) {
            self.lose_call(now, call, cause.clone());
        }
        match self.closing.phase {
            Phase::Open => self.begin_draining(now, cause, true),
            _ => self.closing.phase = Phase::Draining { deaf: true },
        }
    }

    fn begin_draining(&mut self, now: Time, cause: Loss, deaf: bool) {
        let until = now + self.config.timeouts.drain;
        self.enter(Phase::Draining { deaf }, Some(until));
        self.closing.cause.get_or_insert(cause);
        self.end_listens(now);
    }

    fn begin_stopping(&mut self, now: Time, cause: Loss) {
        let until = now + self.config.timeouts.shutdown_grace;
        self.enter(Phase::Stopping, Some(until));
        self.closing.cause.get_or_insert(cause);
        self.end_listens(now);
        for call in self.requests.calls().keys_where(|_| true) {
            let reason = "shutting down";
            let outcome = |sent| Outcome::Cancelled {
                by: By::Shutdown,
                reason: Some(reason.into()),
                sent,
            };
            self.give_up(now, call, outcome, reason);
        }
        let answered = |stage| matches!(stage, super::requests::Stage::Answering(_));
        let unanswered = self
            .requests
            .all_serving()
            .keys_where(|serving| !answered(serving.stage));
        for key in unanswered {
            self.stop(now, key, StopCause::Shutdown);
        }
    }

    /// The pipe broke, so there is no reader to drain or flush for. Returns false if the link was
    /// closed before.
    pub(super) fn begin_closing_lost(&mut self, now: Time, cause: Loss) -> bool {
        if self.closing.phase == Phase::Closed {
            return false;
        }
        let until = match self.closing.phase {
            Phase::Stopping | Phase::Flushing => self.closing.until,
            _ => Some(now + self.config.timeouts.shutdown_grace),
        };
        self.enter(Phase::Stopping, until);
        self.closing.cause.get_or_insert(cause);
        true
    }

    /// The timeout of the current stage of closing has passed.
    pub(super) fn closing_due(&mut self, now: Time) {
        match self.closing.phase {
            Phase::Draining { .. } => self.begin_stopping(now, LossKind::ClosedByUs.into()),
            Phase::Stopping => self.begin_flushing(now),
            Phase::Flushing => self.finish_closing(now),
            Phase::Open => self.lose_link(now, LossKind::EndOfStream.into()),
            Phase::Closed => self.enter(Phase::Closed, None),
        }
    }

    /// Moves to the next stage as soon as nothing is left to do in this one.
    pub(super) fn settle_closing(&mut self, now: Time) {
        if self.closing.phase == Phase::Open && self.closing.hung_up {
            match (self.wants_input(), self.closing.until) {
                // Input is read again, so its end will be reached.
                (true, Some(_)) => self.enter(Phase::Open, None),
                (false, None) => self.wait_for_reader(now),
                _ => {}
            }
        }
        if let Phase::Draining { .. } = self.closing.phase
            && self.requests.all_serving().is_empty()
            && self.handlers.are_all_aborted()
        {
            self.begin_stopping(now, LossKind::ClosedByUs.into());
        }
        if self.closing.phase == Phase::Stopping && self.handlers.are_all_aborted() {
            self.begin_flushing(now);
        }
        if self.closing.phase == Phase::Flushing && self.is_flushed() {
            self.finish_closing(now);
        }
    }

    fn begin_flushing(&mut self, now: Time) {
        for key in self.handlers.not_aborted() {
            self.abort(key);
        }
        let span = match self.waits_for_reader() {
            true => self.config.timeouts.last_answers,
            false => self.config.timeouts.flush,
        };
        self.enter(Phase::Flushing, Some(now + span));
    }

    fn is_flushed(&self) -> bool {
        self.exchanges
            .iter()
            .all(|(_, exchange)| match exchange.purpose {
                Purpose::Link => exchange.queue.is_empty() || exchange.broken,
                Purpose::Theirs { .. } => exchange.queue.is_empty() && exchange.unanswered == 0,
                Purpose::Call(_) | Purpose::Lane | Purpose::Abandoned(_) => false,
            })
    }

    fn finish_closing(&mut self, now: Time) {
        self.enter(Phase::Closed, None);
        for key in self.requests.all_serving().keys_where(|_| true) {
            self.stop(now, key, StopCause::Lost);
        }
        for exchange in self.exchanges.keys_where(|_| true) {
            self.close_exchange(exchange, Closing::Abandoned);
        }
        if let Some(link) = self.exchanges.get_mut(ExchangeId::LINK) {
            link.queue.clear();
        }
        self.forget_all_early_cancels();
        let cause = self.closed_because().unwrap_or(LossKind::ClosedByUs.into());
        let overrun = self.handlers.overrun();
        self.events.push_back(Event::Closed { cause, overrun });
    }

    fn enter(&mut self, phase: Phase, until: Option<Time>) {
        let before = std::mem::replace(&mut self.closing.until, until);
        self.timers.reset(Timer::Closing, before, until);
        self.closing.phase = phase;
    }
}
