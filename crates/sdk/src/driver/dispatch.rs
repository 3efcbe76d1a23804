//! What has happened, and who is told.

use std::sync::Arc;

use belay_protocol::engine::{
    CallId, Connected, Engine, Event, Loss, LossKind, Outcome, RequestKey,
};
#[cfg(all(feature = "http", feature = "server"))]
use belay_protocol::jsonrpc::{DecodeError, Message};
use belay_protocol::types::ProgressParams;
#[cfg(all(feature = "http", feature = "server"))]
use belay_protocol::types::{CancelledParams, Notification as _};

use super::handlers::{App, fenced};
use super::{Closed, Link, OnNotice};

impl Link {
    /// Waits while far more has come than was acted upon, or more was asked than answers leave
    /// (**bounded**).
    pub(crate) async fn until_heard(&self) {
        self.until_engine(|engine| engine.events_waiting() < 1000 && engine.wants_input())
            .await;
    }

    /// The same before a message of a client's, each of which may come on a connection of its own: what
    /// it says by itself waits for whoever hears it. Cancels, requests and answers wait for nobody.
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

    /// Acts upon everything that has happened. Only the driver calls this.
    pub(crate) fn dispatch(self: &Arc<Self>, app: &Arc<dyn App>) {
        self.dispatch_all(app);
        self.room.notify_waiters();
    }

    fn dispatch_all(self: &Arc<Self>, app: &Arc<dyn App>) {
        while let Some(event) = self.next_event() {
            match event {
                Event::Connected(connected) => self.opened(Ok(connected)),
                Event::ConnectFailed(outcome) => self.opened(Err(outcome)),
                Event::Ended { call, outcome } => self.ended(call, outcome),
                Event::Progress { call, params } => self.tell_progress(call, params),
                Event::Notification {
                    about,
                    notification,
                } => match about.and_then(|call| self.notice_of(call)) {
                    Some(told) => drop(fenced("on_notice", || told(notification))),
                    None => drop(fenced("on_notification", || app.notified(notification))),
                },
                Event::Request(incoming) => self.start(app, incoming),
                Event::Stop { request, cause } => self.fire(request, cause),
                Event::Abort { request } => self.abort(request),
                Event::Closed { cause, .. } => {
                    self.say_closed(cause);
                    self.room.notify_waiters();
                }
                _ => {}
            }
        }
    }

    fn ended(&self, call: CallId, outcome: Outcome) {
        let waiter = self.lock().waiters.remove(&call);
        if let Some(waiter) = waiter {
            // Nobody is there if the call was dropped; that is an end, too.
            let _ = waiter.done.send(outcome);
        }
    }

    fn notice_of(&self, call: CallId) -> Option<OnNotice> {
        let state = self.lock();
        state.waiters.get(&call)?.told.notice.clone()
    }

    fn next_event(&self) -> Option<Event> {
        let (event, waker) = {
            let mut state = self.lock();
            let waker = state.route();
            (state.engine.poll_event(), waker)
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        event
    }

    fn opened(&self, how: Result<Connected, Outcome>) {
        let connecting = self.lock().connecting.take();
        if let Some(connecting) = connecting {
            let _ = connecting.send(how);
        }
    }

    /// The callback runs outside the lock, and behind a fence: it is not ours. One that panics is
    /// not called again.
    fn tell_progress(&self, call: CallId, params: ProgressParams) {
        let callback = self
            .lock()
            .waiters
            .get_mut(&call)
            .and_then(|waiter| waiter.told.progress.take());
        if let Some(mut callback) = callback {
            let told = fenced("on_progress", move || {
                callback(params);
                callback
            });
            let mut state = self.lock();
            match state.waiters.get_mut(&call) {
                Some(waiter) => waiter.told.progress = told,
                None => {
                    drop(state);
                    drop(told);
                }
            }
        }
    }

    /// Nobody drives this link any more: it is closed, or its runtime was shut down. Whoever still
    /// waits is told, and whatever still runs is stopped.
    pub(super) fn abandon(&self) {
        {
            let mut state = self.lock();
            let now = self.now();
            // If it is closed already, this changes nothing.
            let cause = LossKind::ClosedByUs.into();
            state.engine.handle_link_lost(now, cause);
        }
        while let Some(event) = self.next_event() {
            match event {
                Event::ConnectFailed(outcome) => self.opened(Err(outcome)),
                Event::Ended { call, outcome } => self.ended(call, outcome),
                Event::Stop { request, cause } => self.fire(request, cause),
                Event::Abort { request } => self.abort(request),
                Event::Closed { cause, .. } => self.say_closed(cause),
                _ => {}
            }
        }
        let (waiters, connecting, running) = {
            let mut state = self.lock();
            let running: Vec<RequestKey> = state.running.keys().copied().collect();
            (
                std::mem::take(&mut state.waiters),
                state.connecting.take(),
                running,
            )
        };
        // Nobody is left to end their grace.
        for request in running {
            self.abort(request);
        }
        // Dropping what they wait on wakes them.
        drop((waiters, connecting));
        self.say_closed(self.closed_because());
        self.room.notify_waiters();
    }

    /// The first cause stands.
    fn say_closed(&self, cause: Loss) {
        if self.closed.set(Closed { cause }).is_ok() {
            self.closing.notify_waiters();
        }
    }
}
