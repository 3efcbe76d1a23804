//! The driver's turn: it takes events out of the engine and acts on them.

use std::sync::Arc;

use belay_protocol::engine::{Connected, Event, Loss, Outcome, StopCause, Time};
use belay_protocol::jsonrpc::Notification;
#[cfg(all(feature = "http", feature = "server"))]
use belay_protocol::jsonrpc::{DecodeError, Message};
use belay_protocol::types::ProgressParams;
#[cfg(all(feature = "http", feature = "server"))]
use belay_protocol::types::{CancelledParams, Notification as _};

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::handlers::{Admitted, App, Presence, Running, fenced};
use super::{Closed, Engine, Link, State, Waiter};
use crate::context::Context;

impl Link {
    /// Waits while far too many events are waiting for the driver, or while more requests are open
    /// than there is room for answers (**bounded**).
    pub(crate) async fn until_heard(&self) {
        self.until_engine(|engine| engine.events_waiting() < 1000 && engine.wants_input())
            .await;
    }

    /// Waits before a client's message on HTTP, where each may come on a connection of its
    /// own. Notifications wait for the driver to process earlier ones. Cancellations,
    /// requests and responses do not wait.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) async fn until_heard_before(&self, message: &Result<Message, DecodeError>) {
        if let Ok(Message::Notification(told)) = message
            && told.method != *CancelledParams::METHOD
        {
            self.until_engine(|engine| engine.events_waiting() < 16)
                .await;
        }
    }

    async fn until_engine(&self, ready: impl Fn(&Engine) -> bool) {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            let ready = {
                let state = self.lock();
                ready(&state.engine) || state.engine.is_closed()
            };
            if ready {
                return;
            }
            room.await;
        }
    }

    /// Acts on everything that has happened, and returns the resulting state. Only
    /// the driver calls this.
    pub(crate) fn dispatch(self: &Arc<Self>, app: &Arc<dyn App>) -> Turned {
        let _ = self.app.get_or_init(|| Arc::downgrade(app));
        let mut acts = Acts::default();
        loop {
            let turned = self.turn(&mut acts);
            if acts.are_none() {
                self.room.notify_waiters();
                return turned;
            }
            for act in acts.others.drain(..) {
                // Destructors are user code: a panic of theirs must not keep others
                // from being notified.
                fenced("a destructor", || self.act(Some(app), act));
            }
            self.run(app, &mut acts.started);
        }
    }

    /// A turn under a single lock: passes the ends of handlers to the engine, and
    /// takes out its events.
    fn turn(self: &Arc<Self>, acts: &mut Acts) -> Turned {
        let mut ended = self.take_ended();
        acts.any_ended = !ended.is_empty();
        let (turned, routed) = {
            let mut state = self.lock();
            let (state, now) = (&mut *state, self.now());
            for ended in ended.drain(..) {
                acts.dropped.extend(state.handler_ended(self, now, ended));
            }
            while let Some(event) = state.engine.poll_event() {
                state.resolve(self, now, event, acts);
            }
            // Until the driver has acted, no other task may act on later events.
            state.is_acting = !acts.others.is_empty();
            let routed = state.route();
            state.wait_until(now);
            (state.turned(self), routed)
        };
        if !acts.dropped.is_empty() {
            let dropped = std::mem::take(&mut acts.dropped);
            fenced("a destructor", || drop(dropped));
        }
        // The driver is here already, so only the carrier is woken.
        if let Some(carrier) = routed.carrier {
            carrier.wake();
        }
        // The memory of the list is reused.
        if ended.capacity() > 0 {
            let mut work = self.work.lock();
            if work.ended.capacity() == 0 {
                work.ended = ended;
            }
        }
        turned
    }

    /// Performs an act. Without an application, notifications and progress are dropped.
    fn act(&self, app: Option<&Arc<dyn App>>, act: Act) {
        match act {
            Act::Progress(..) | Act::Notice(..) | Act::Notified(_) if app.is_none() => {}
            // The receiver may have been dropped, which needs no action.
            Act::Opened(connecting, how) => _ = connecting.send(how),
            Act::Ended(waiter, outcome) => waiter.ended(outcome),
            Act::Progress(waiter, params) => waiter.tell_progress(params),
            Act::Notice(waiter, notification) => {
                if let Some(told) = waiter.notice() {
                    fenced("on_notice", || told(notification));
                }
            }
            Act::Notified(notification) => {
                if let Some(app) = app {
                    fenced("on_notification", || app.notified(notification));
                }
            }
            Act::Fire(context, cause) => self.fire(&context, cause),
            Act::Abort(task, given_back) => {
                drop(given_back);
                if let Some(task) = task {
                    task.abort();
                }
            }
            Act::Closed(cause) => self.say_closed(cause),
        }
    }

    /// Called when the link is no longer driven: it is closed, or its runtime was shut down.
    /// Everything that still waits is notified, and everything that still runs is stopped.
    pub(super) fn abandon(self: &Arc<Self>) {
        let waiting = self.work.lock().abandon();
        // If the engine is closed already, this changes nothing.
        let routed = {
            let mut state = self.lock();
            state.engine.abandon(self.now());
            state.route()
        };
        if let Some(carrier) = routed.carrier {
            carrier.wake();
        }
        let mut acts = Acts::default();
        self.turn(&mut acts);
        for act in acts.others {
            fenced("a destructor", || self.act(None, act));
        }
        // Handlers that never ran are gone.
        for context in waiting.into_iter().chain(acts.started) {
            drop(Presence::new(context));
        }
        let connecting = self.lock().connecting.take();
        // Dropping the sender wakes its receiver.
        drop(connecting);
        self.say_closed(self.closed_because());
        self.room.notify_waiters();
    }

    /// Sets the cause, unless there is one: the first cause stays.
    fn say_closed(&self, cause: Loss) {
        if self.closed.set(Closed { cause }).is_ok() {
            self.closing.notify_waiters();
        }
    }
}

/// The state of a link after a turn.
#[derive(Clone, Copy)]
pub(crate) struct Turned {
    pub(crate) closed: bool,
    /// Nothing goes on.
    pub(crate) quiet: bool,
    /// When the engine's next timeout is.
    pub(crate) deadline: Option<Instant>,
    /// Whether more should be read.
    pub(crate) wants_input: bool,
}

/// What is to be done outside of the lock.
#[derive(Default)]
struct Acts {
    others: Vec<Act>,
    started: Vec<Context>,
    /// To be dropped outside of the lock.
    dropped: Vec<Running>,
    any_ended: bool,
}

impl Acts {
    fn are_none(&self) -> bool {
        self.others.is_empty() && self.started.is_empty() && !self.any_ended
    }
}

enum Act {
    Opened(
        oneshot::Sender<Result<Connected, Outcome>>,
        Result<Connected, Outcome>,
    ),
    Ended(Arc<Waiter>, Outcome),
    Progress(Arc<Waiter>, ProgressParams),
    Notice(Arc<Waiter>, Notification),
    Notified(Notification),
    Fire(Context, StopCause),
    Abort(Option<AbortHandle>, Admitted),
    Closed(Loss),
}

impl State {
    /// Translates an event into an act.
    fn resolve(
        &mut self,
        link: &Arc<Link>,
        now: Time,
        event: Event<Option<Arc<Waiter>>>,
        acts: &mut Acts,
    ) {
        let act = match event {
            Event::Connected(connected) => self.opened(Ok(connected)),
            Event::ConnectFailed(outcome) => self.opened(Err(outcome)),
            Event::Ended {
                caller, outcome, ..
            } => caller.map(|waiter| Act::Ended(waiter, outcome)),
            Event::Progress { caller, params, .. } => {
                let caller = caller.filter(|waiter| waiter.wants_progress());
                caller.map(|waiter| Act::Progress(waiter, params))
            }
            Event::Notification {
                caller,
                notification,
                ..
            } => Some(match caller.flatten() {
                Some(waiter) if waiter.notice().is_some() => Act::Notice(waiter, notification),
                _ => Act::Notified(notification),
            }),
            Event::Request(incoming) => {
                acts.started.extend(self.admit(link, now, incoming));
                None
            }
            Event::Stop { request, cause } => {
                let context = self.fires(request);
                context.map(|context| Act::Fire(context, cause))
            }
            Event::Abort { request } => {
                let aborted = self.aborts(link, request);
                aborted.map(|(task, given_back)| Act::Abort(task, given_back))
            }
            Event::Closed { cause, .. } => Some(Act::Closed(cause)),
            _ => None,
        };
        acts.others.extend(act);
    }

    fn opened(&mut self, how: Result<Connected, Outcome>) -> Option<Act> {
        let connecting = self.connecting.take()?;
        Some(Act::Opened(connecting, how))
    }

    /// Sets when the driver wakes up by itself. A timer that is set stays set, even if what it was
    /// for has ended: an unnecessary wake-up is cheaper than to set the timer for every request.
    fn wait_until(&mut self, now: Time) {
        let set = self.awaited.filter(|awaited| *awaited > now);
        let due = self.engine.poll_timeout();
        self.awaited = match (set, due) {
            (Some(set), Some(due)) => Some(set.min(due)),
            (set, due) => set.or(due),
        };
    }

    fn turned(&self, link: &Link) -> Turned {
        let engine = &self.engine;
        Turned {
            closed: engine.is_closed(),
            quiet: engine.is_quiet(),
            // A time that cannot be represented never comes.
            deadline: (self.awaited).and_then(|due| link.origin.checked_add(due - Time::START)),
            wants_input: engine.wants_input(),
        }
    }
}
