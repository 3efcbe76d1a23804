//! Cancels a call from elsewhere.

use std::fmt;
use std::sync::Arc;

use belay_protocol::engine::{Ask, By, CallId, Outcome, Sent};
use belay_protocol::jsonrpc::RequestId;
use tokio::sync::Notify;

use crate::driver::{Link, Reason, Waiter};
use crate::sync::{Mutex, MutexGuard};

/// Cancels a call from elsewhere. The call then ends as cancelled by its caller.
#[derive(Clone)]
pub struct Canceller(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    fired: Notify,
    /// An attempt is over.
    closed: Notify,
}

struct State {
    /// Where the call is now, or was last.
    current: Option<(Arc<Link>, CallId)>,
    cancelled: Option<Reason>,
    /// The most that any attempt has come to.
    sent: Sent,
    /// Whether an attempt has begun whose end is not known yet.
    open: bool,
}

impl Canceller {
    pub(super) fn new() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                current: None,
                cancelled: None,
                sent: Sent::Never,
                open: false,
            }),
            fired: Notify::new(),
            closed: Notify::new(),
        }))
    }

    /// Cancels the call, if it is not over.
    pub fn cancel(&self) {
        self.stop(None);
    }

    /// Cancels the call, if it is not over, and tells the peer why.
    pub fn cancel_because(&self, reason: impl Into<String>) {
        self.stop(Some(reason.into()));
    }

    fn stop(&self, reason: Reason) {
        let mut state = self.lock();
        if state.cancelled.is_some() {
            return;
        }
        state.look();
        if let Some((link, id)) = &state.current {
            link.cancel(*id, reason.as_deref());
        }
        // Nothing more of it leaves: what was sent until now is all that was.
        state.open = false;
        state.cancelled = Some(reason);
        drop(state);
        self.0.fired.notify_one();
        self.0.closed.notify_one();
    }

    /// Begins the call, or another attempt at it. Nobody can cancel it between this look and its
    /// beginning.
    pub(super) fn begin(
        &self,
        link: &Arc<Link>,
        ask: Ask,
        waiter: &Arc<Waiter>,
    ) -> Result<CallId, Outcome> {
        let mut state = self.lock();
        state.look();
        let begun = link.begin(ask, waiter, state.cancelled.as_ref())?;
        state.current = Some((link.clone(), begun));
        state.open = state.cancelled.is_none();
        Ok(begun)
    }

    /// Waits until no attempt is in flight. Only one can wait.
    pub(super) async fn until_closed(&self) {
        while self.lock().open {
            self.0.closed.notified().await;
        }
    }

    /// An attempt is given up.
    pub(super) fn given_up(&self) {
        let mut state = self.lock();
        state.look();
        state.open = false;
        drop(state);
        self.0.closed.notify_one();
    }

    /// The id of the call on the wire, or of the last attempt at it.
    pub(super) fn id(&self) -> Option<RequestId> {
        let state = self.lock();
        state.current.as_ref().map(|(_, id)| id.request_id())
    }

    /// An attempt is over.
    pub(super) fn ended(&self, outcome: &Outcome) {
        // What was answered was sent.
        let sent = outcome.sent().unwrap_or(Sent::Yes);
        let mut state = self.lock();
        state.most(Some(sent));
        state.open = false;
        drop(state);
        self.0.closed.notify_one();
    }

    /// Whether any attempt has left.
    pub(super) fn sent(&self) -> Sent {
        let mut state = self.lock();
        state.look();
        state.sent
    }

    /// Waits until it is cancelled. Only one can wait.
    pub(super) async fn cancelled(&self) -> Outcome {
        loop {
            let cancelled = self.lock().cancelled.clone();
            if let Some(reason) = cancelled {
                return Outcome::Cancelled {
                    by: By::Caller,
                    reason: reason.map(Into::into),
                    sent: self.sent(),
                };
            }
            self.0.fired.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

impl State {
    /// Remembers the most that is known to have been sent.
    fn look(&mut self) {
        if let Some((link, id)) = self.current.as_ref().filter(|_| self.open) {
            // The engine has ended it, and we have not heard how: it may have been sent.
            let now = link.sent(*id).unwrap_or(Sent::Maybe);
            self.most(Some(now));
        }
    }

    fn most(&mut self, now: Option<Sent>) {
        self.sent = match (self.sent, now) {
            (Sent::Yes, _) | (_, Some(Sent::Yes)) => Sent::Yes,
            (Sent::Maybe, _) | (_, Some(Sent::Maybe)) => Sent::Maybe,
            _ => Sent::Never,
        };
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Canceller").field(&self.id()).finish()
    }
}
