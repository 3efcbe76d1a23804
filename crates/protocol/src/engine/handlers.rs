//! The life of a handler, which can be longer than the life of its request.
//!
//! ```text
//!             respond                        the request is over: stop
//!   gone ◄───────────── Running ──────────────────────────────► Stopping
//!                          │                                       │ respond, or gone
//!                          │ plain: no grace                       ├───────────────────► gone
//!                          ▼                                       │ grace is over
//!                       Aborted ◄──────────────────────────────────┘
//!                          │ gone: at once if it awaits, later if it blocks (an over-run)
//!                          ▼
//!                        gone
//! ```
//!
//! A request ends when its caller is gone; a handler ends when it has really stopped
//! (**stop-is-real**). The limit counts handlers, so that a burst of cancels cannot start more of
//! them than it allows.

use std::time::Duration;

use super::deadline::Timer;
use super::table::Table;
use super::{Engine, Event, RequestKey, StopCause, Time};

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// Fires a handler's cancellation token and drops the handler: a plain one at once, one with a
    /// grace when that is over. A shutdown shortens the grace.
    pub(super) fn stop_handler(&mut self, now: Time, key: RequestKey, cause: StopCause) {
        let cap = self.closing.grace_left(now);
        let Some(handler) = self.handlers.get_mut(key) else {
            return;
        };
        if handler.state != HandlerState::Running {
            return;
        }
        let grace = handler
            .grace
            .map(|grace| cap.map_or(grace, |cap| grace.min(cap)))
            .filter(|grace| !grace.is_zero());
        self.events.push_back(Event::Stop {
            request: key,
            cause,
        });
        match grace {
            None => self.abort(key),
            Some(grace) => {
                let until = now + grace;
                handler.state = HandlerState::Stopping { until };
                self.timers.reset(Timer::Handler(key), None, Some(until));
            }
        }
    }

    /// Drops a handler. A blocking one counts as over-run until it returns.
    pub(super) fn abort(&mut self, key: RequestKey) {
        let due = self.handlers.change(key, |handler| {
            let due = handler.due();
            handler.state = HandlerState::Aborted;
            due
        });
        if let Some(due) = due {
            self.timers.reset(Timer::Handler(key), due, None);
            self.events.push_back(Event::Abort { request: key });
        }
    }

    /// Marks a handler that runs on its own thread, which goes on until it returns, even after a
    /// cancel.
    pub fn handler_blocks(&mut self, key: RequestKey) {
        self.handlers
            .change(key, |handler| handler.is_blocking = true);
    }

    /// Marks whether a thread of a handler goes on after the handler has answered. Then the handler
    /// exists until [`Engine::handler_gone`] is called with the mark cleared.
    pub fn handler_lingers(&mut self, key: RequestKey, lingers: bool) {
        if let Some(handler) = self.handlers.get_mut(key) {
            handler.lingers = lingers;
        }
    }

    /// A handler has ended. It is removed unless it lingers. Returns the application's data for it.
    pub(super) fn handler_ended(&mut self, key: RequestKey) -> Option<H> {
        if self.handlers.get_mut(key)?.lingers {
            // The request is over, and a thread cannot be stopped, so this handler counts as one
            // that was dropped: shutdown does not wait for it.
            let due = self.handlers.change(key, |handler| {
                let due = handler.due();
                (handler.is_blocking, handler.state) = (true, HandlerState::Aborted);
                due
            });
            self.timers.reset(Timer::Handler(key), due?, None);
            return None;
        }
        let handler = self.handlers.gone(key)?;
        self.timers.reset(Timer::Handler(key), handler.due(), None);
        Some(handler.kept)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Handlers<H> {
    table: Table<RequestKey, Handler<H>>,
    listens: usize,
    /// Blocking handlers that were dropped, but whose threads go on.
    left: usize,
    aborted: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Handler<H> {
    /// The application's data for it.
    pub(super) kept: H,
    is_listen: bool,
    /// It runs on a thread, which goes on when the handler is dropped.
    is_blocking: bool,
    /// One of its threads goes on after its answer.
    lingers: bool,
    /// Its time to clean up. `None` for a plain handler, which is dropped at its next await.
    pub(super) grace: Option<Duration>,
    pub(super) state: HandlerState,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum HandlerState {
    Running,
    Stopping { until: Time },
    Aborted,
}

impl<H> Handler<H> {
    fn is_left(&self) -> bool {
        self.is_blocking && self.is_aborted()
    }

    fn is_aborted(&self) -> bool {
        self.state == HandlerState::Aborted
    }

    fn due(&self) -> Option<Time> {
        match self.state {
            HandlerState::Stopping { until } => Some(until),
            HandlerState::Running | HandlerState::Aborted => None,
        }
    }
}

impl<H: Default> Handlers<H> {
    /// Frees spare memory.
    pub(super) fn shrink(&mut self) {
        self.table.shrink();
    }

    pub(super) fn new() -> Self {
        Self {
            table: Table::new(),
            listens: 0,
            left: 0,
            aborted: 0,
        }
    }

    pub(super) fn start(&mut self, key: RequestKey, is_listen: bool) {
        self.listens += usize::from(is_listen);
        self.table.insert(
            key,
            Handler {
                kept: H::default(),
                is_listen,
                is_blocking: false,
                lingers: false,
                grace: None,
                state: HandlerState::Running,
            },
        );
    }

    /// Removes a handler that has ended.
    pub(super) fn gone(&mut self, key: RequestKey) -> Option<Handler<H>> {
        let handler = self.table.remove(key)?;
        self.listens -= usize::from(handler.is_listen);
        self.left -= usize::from(handler.is_left());
        self.aborted -= usize::from(handler.is_aborted());
        Some(handler)
    }

    /// Changes a handler, and keeps the counters right.
    fn change<T>(
        &mut self,
        key: RequestKey,
        change: impl FnOnce(&mut Handler<H>) -> T,
    ) -> Option<T> {
        let handler = self.table.get_mut(key)?;
        self.left -= usize::from(handler.is_left());
        self.aborted -= usize::from(handler.is_aborted());
        let changed = change(handler);
        self.left += usize::from(handler.is_left());
        self.aborted += usize::from(handler.is_aborted());
        Some(changed)
    }

    pub(super) fn get_mut(&mut self, key: RequestKey) -> Option<&mut Handler<H>> {
        self.table.get_mut(key)
    }

    /// The handlers that have not been dropped.
    pub(super) fn not_aborted(&self) -> Vec<RequestKey> {
        self.table
            .keys_where(|handler| handler.state != HandlerState::Aborted)
    }

    /// Whether every handler has been dropped.
    pub(super) fn are_all_aborted(&self) -> bool {
        self.aborted == self.table.len()
    }

    /// How many handlers count as running. A blocking one that was dropped does not: it cannot be
    /// stopped, and must not keep others from starting. The number of those has a limit of its own.
    pub(super) fn running(&self) -> usize {
        self.table.len() - self.listens - self.left
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn listens(&self) -> usize {
        self.listens
    }

    pub(super) fn overrun(&self) -> usize {
        self.aborted
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (RequestKey, &Handler<H>)> {
        self.table.iter()
    }
}
