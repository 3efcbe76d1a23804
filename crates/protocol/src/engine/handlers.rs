//! The life of a handler, which can be longer than that of its request.
//!
//! ```text
//!             respond                        the request is over: stop
//!   gone ◄───────────── Running ──────────────────────────────► Stopping
//!                          │                                       │ respond, or gone
//!                          │ plain: no grace                       ├───────────────────► gone
//!                          ▼                                       │ grace is over
//!                       Aborted ◄──────────────────────────────────┘
//!                          │ gone: at once if it awaits, one day if it blocks (an over-run)
//!                          ▼
//!                        gone
//! ```
//!
//! A request ends when its caller is gone; a handler ends when it has really stopped
//! (**stop-is-real**). The limit counts handlers, so that a storm of cancels cannot start more of
//! them than it allows.

use std::time::Duration;

use super::deadline::Timer;
use super::table::Table;
use super::{Engine, Event, RequestKey, StopCause, Time};

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// Fires a handler's token, and drops the handler: at once if it is a plain one, after its
    /// grace if it wants to clean up. A shutdown caps that grace.
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

    /// Its time is over: it is dropped. One that blocks counts as over-run until it returns.
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

    /// A handler runs on a thread of its own, which goes on until it returns, whoever waits.
    pub fn handler_blocks(&mut self, key: RequestKey) {
        self.handlers
            .change(key, |handler| handler.is_blocking = true);
    }

    /// Whether a thread of a handler goes on when that comes to its end: then the handler exists until
    /// [`Engine::handler_gone`] is called without this.
    pub fn handler_lingers(&mut self, key: RequestKey, lingers: bool) {
        if let Some(handler) = self.handlers.get_mut(key) {
            handler.lingers = lingers;
        }
    }

    /// It has come to its end, and does not exist any more unless it lingers. Gives what was kept for it.
    pub(super) fn handler_ended(&mut self, key: RequestKey) -> Option<H> {
        if self.handlers.get_mut(key)?.lingers {
            // Its request is over, and nobody can stop a thread: it is waited for no more than one that
            // was dropped.
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
    /// Blocking ones that were dropped, and whose threads go on.
    left: usize,
    aborted: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Handler<H> {
    /// What the application keeps for it.
    pub(super) kept: H,
    is_listen: bool,
    /// It runs on a thread, and is not gone when it is dropped.
    is_blocking: bool,
    /// A thread of it goes on after its answer.
    lingers: bool,
    /// How long it may clean up; `None` for a plain one, which is dropped at its next await.
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
    /// Gives back the memory that is not needed now.
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

    /// It does not exist any more.
    pub(super) fn gone(&mut self, key: RequestKey) -> Option<Handler<H>> {
        let handler = self.table.remove(key)?;
        self.listens -= usize::from(handler.is_listen);
        self.left -= usize::from(handler.is_left());
        self.aborted -= usize::from(handler.is_aborted());
        Some(handler)
    }

    /// Changes one in a way that counts.
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

    /// Those that were not dropped yet.
    pub(super) fn not_aborted(&self) -> Vec<RequestKey> {
        self.table
            .keys_where(|handler| handler.state != HandlerState::Aborted)
    }

    /// Whether none is left that was not dropped.
    pub(super) fn are_all_aborted(&self) -> bool {
        self.aborted == self.table.len()
    }

    /// Those that count as running. A blocking one that was dropped does not: nobody can stop it,
    /// and it must not keep others from starting. How many of those there are, is limited by itself.
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
