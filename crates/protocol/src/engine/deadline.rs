//! Timers: the two timeouts of a call, and the sorted list of everything that will be due.

use std::collections::VecDeque;
use std::time::Duration;

use super::{CallId, Clock, Deadlines, ExchangeId, RequestKey, Time, planted};

/// The kinds of timer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Timer {
    /// The earlier of a call's two timeouts.
    Call(CallId),
    /// The deadline of an incoming request.
    Request(RequestKey),
    /// The end of a handler's grace.
    Handler(RequestKey),
    /// The timeout of an exchange.
    Exchange(ExchangeId),
    /// The expiry of the oldest early cancel.
    EarlyCancel,
    /// The timeout of a stage of closing.
    Closing,
}

/// All timers, in the order in which they are due. A timer is removed with what it belongs to.
#[derive(Clone, Default, Debug)]
pub(super) struct Timers {
    due: VecDeque<(Time, Timer)>,
}

impl Timers {
    /// Frees spare memory.
    pub(super) fn shrink(&mut self) {
        self.due.shrink_to_fit();
    }

    /// Moves a timer. Its owner knows when it was due, so no second table is kept.
    pub(super) fn reset(&mut self, timer: Timer, from: Option<Time>, to: Option<Time>) {
        let to = planted::due(timer, from, to);
        if from == to {
            return;
        }
        if let Some(from) = from
            && let Ok(at) = self.due.binary_search(&(from, timer))
        {
            self.due.remove(at);
        }
        if let Some(to) = to
            && let Err(at) = self.due.binary_search(&(to, timer))
        {
            // Most sessions never have more than one timer.
            if self.due.is_empty() {
                self.due.reserve_exact(1);
            }
            self.due.insert(at, (to, timer));
        }
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.due.front().map(|(time, _)| *time)
    }

    /// The first timer that is due. It stays in the list until its owner moves it.
    pub(super) fn first_due(&self, now: Time) -> Option<Timer> {
        let (time, timer) = self.due.front()?;
        (*time <= now).then_some(*timer)
    }

    #[cfg(test)]
    pub(super) fn is_set(&self, timer: Timer, due: Time) -> bool {
        self.due.binary_search(&(due, timer)).is_ok()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = Timer> {
        self.due.iter().map(|(_, timer)| *timer)
    }
}

/// The two timeouts of a call (**deadline-covers-all**). Both start with the call, before it is
/// written.
#[derive(Clone, Debug)]
pub(super) struct CallClocks {
    deadlines: Deadlines,
    idle: Idle,
    total: Option<Time>,
}

#[derive(Clone, Debug)]
enum Idle {
    Off,
    Running {
        until: Time,
    },
    /// Paused while we owe the peer an answer, since its silence is then our own doing.
    Paused {
        left: Duration,
    },
}

impl CallClocks {
    pub(super) fn start(deadlines: Deadlines, now: Time) -> Self {
        Self {
            idle: deadlines
                .idle
                .map_or(Idle::Off, |span| Idle::Running { until: now + span }),
            total: deadlines.total.map(|span| now + span),
            deadlines,
        }
    }

    /// The peer has reported progress, which resets the idle timeout.
    pub(super) fn progress(&mut self, now: Time) {
        let Some(span) = self.deadlines.idle else {
            return;
        };
        match &mut self.idle {
            Idle::Off => {}
            Idle::Running { until } => *until = now + span,
            Idle::Paused { left } => *left = span,
        }
    }

    pub(super) fn pause(&mut self, now: Time) {
        if let Idle::Running { until } = self.idle {
            self.idle = Idle::Paused { left: until - now };
        }
    }

    pub(super) fn resume(&mut self, now: Time) {
        if let Idle::Paused { left } = self.idle {
            self.idle = Idle::Running { until: now + left };
        }
    }

    /// When the earlier of the two is due.
    pub(super) fn next(&self) -> Option<Time> {
        match (self.idle_until(), self.total) {
            (Some(idle), Some(total)) => Some(idle.min(total)),
            (idle, total) => idle.or(total),
        }
    }

    /// Which timeout has passed, and its length. If both pass at once, it is the total one.
    pub(super) fn due(&self, now: Time) -> Option<(Clock, Duration)> {
        if let (Some(until), Some(span)) = (self.total, self.deadlines.total)
            && until <= now
        {
            return Some((Clock::Total, span));
        }
        match (self.idle_until(), self.deadlines.idle) {
            (Some(until), Some(span)) if until <= now => Some((Clock::Idle, span)),
            _ => None,
        }
    }

    fn idle_until(&self) -> Option<Time> {
        match self.idle {
            Idle::Running { until } => Some(until),
            Idle::Off | Idle::Paused { .. } => None,
        }
    }

    #[cfg(test)]
    pub(super) fn is_armed(&self, clock: Clock) -> bool {
        match clock {
            Clock::Idle => self.idle_until().is_some(),
            Clock::Total => self.total.is_some(),
        }
    }
}
