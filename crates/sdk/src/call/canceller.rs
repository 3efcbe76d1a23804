//! Cancellation of a call from elsewhere.

use std::fmt;
use std::sync::Arc;

use belay_protocol::engine::{Ask, By, CallId, Outcome, Sent};
use belay_protocol::jsonrpc::RequestId;
use tokio::sync::Notify;

use crate::driver::{Link, Reason, Waiter};
use crate::sync::{Mutex, MutexGuard};

/// Cancels a call from elsewhere, such as from another task. The call then ends as
/// cancelled by its caller.
#[derive(Clone)]
pub struct Canceller(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    fired: Notify,
    /// Notified when an attempt ends.
    closed: Notify,
}

struct State {
    /// The link and the id of the current attempt, or of the last one.
    current: Option<(Arc<Link>, CallId)>,
    cancelled: Option<Reason>,
    /// How far any attempt has come: never, maybe or certainly sent.
    sent: Sent,
    /// Whether an attempt is in flight whose outcome is not recorded yet.
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

    /// Cancels the call, unless it has ended.
    pub fn cancel(&self) {
        self.stop(None);
    }

    /// Cancels the call, unless it has ended, and sends the reason to the peer.
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
        // Nothing more of the call is sent, so `sent` is final now.
        state.open = false;
        state.cancelled = Some(reason);
        drop(state);
        self.0.fired.notify_one();
        self.0.closed.notify_one();
    }

    /// Begins the call, or another attempt at it. The lock is held from the check for a
    /// cancellation until the request has begun, so that none is missed.
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

    /// Waits until no attempt is in flight. Supports a single waiter.
    pub(super) async fn until_closed(&self) {
        while self.lock().open {
            self.0.closed.notified().await;
        }
    }

    /// Records that an attempt was dropped.
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

    /// Records the outcome of an attempt.
    pub(super) fn ended(&self, outcome: &Outcome) {
        // An outcome without this, such as an answer, implies that the request was sent.
        let sent = outcome.sent().unwrap_or(Sent::Yes);
        let mut state = self.lock();
        state.most(Some(sent));
        state.open = false;
        drop(state);
        self.0.closed.notify_one();
    }

    /// Whether any attempt was sent.
    pub(super) fn sent(&self) -> Sent {
        let mut state = self.lock();
        state.look();
        state.sent
    }

    /// Waits until the call is cancelled. Supports a single waiter.
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
    /// Updates `sent` from the link.
    fn look(&mut self) {
        if let Some((link, id)) = self.current.as_ref().filter(|_| self.open) {
            // The engine has ended the request and its outcome is not recorded yet:
            // it may have been sent.
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
