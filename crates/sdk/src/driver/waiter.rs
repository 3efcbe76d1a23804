//! Who waits for a call: shared by the caller's future and by the engine, which keeps it in its own
//! table until the call has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use belay_protocol::engine::Outcome;
use belay_protocol::jsonrpc::Notification;
use belay_protocol::types::ProgressParams;

use super::fenced;
use crate::sync::Mutex;

/// What is told how far a call has come.
pub(crate) type OnProgress = Box<dyn FnMut(ProgressParams) + Send>;

/// What is told whatever else is said about a call.
pub(crate) type OnNotice = Arc<dyn Fn(Notification) + Send + Sync>;

/// Who is told what, while a call is under way.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) progress: Option<OnProgress>,
    pub(crate) notice: Option<OnNotice>,
}

pub(crate) struct Waiter {
    end: Mutex<End>,
    wants_progress: bool,
    progress: Mutex<Option<OnProgress>>,
    notice: Option<OnNotice>,
    /// The caller's future was dropped: nobody wants to know any more.
    given_up: AtomicBool,
}

enum End {
    Waiting(Option<Waker>),
    Ended(Outcome),
    Taken,
}

impl Waiter {
    pub(crate) fn new(told: Told) -> Arc<Self> {
        Arc::new(Self {
            end: Mutex::new(End::Waiting(None)),
            wants_progress: told.progress.is_some(),
            progress: Mutex::new(told.progress),
            notice: told.notice,
            given_up: AtomicBool::new(false),
        })
    }

    /// The end of the call. Ready once.
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut end = self.end.lock();
        match &mut *end {
            End::Waiting(Some(waker)) => waker.clone_from(cx.waker()),
            End::Waiting(waker) => *waker = Some(cx.waker().clone()),
            End::Ended(_) => {
                if let End::Ended(outcome) = std::mem::replace(&mut *end, End::Taken) {
                    return Poll::Ready(outcome);
                }
            }
            End::Taken => {}
        }
        Poll::Pending
    }

    /// The call has ended.
    pub(super) fn ended(&self, outcome: Outcome) {
        let before = std::mem::replace(&mut *self.end.lock(), End::Ended(outcome));
        if let End::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }

    /// Nobody looks at the call any more: not even its progress is told.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::SeqCst);
    }

    pub(super) fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    /// The callback runs outside of all locks, and behind a fence: it is not ours. One that panics is
    /// not called again.
    pub(super) fn tell_progress(&self, params: ProgressParams) {
        let callback = self.progress.lock().take();
        let wanted = !self.given_up.load(Ordering::SeqCst);
        if let Some(mut callback) = callback.filter(|_| wanted) {
            let told = fenced("on_progress", move || {
                callback(params);
                callback
            });
            *self.progress.lock() = told;
        }
    }

    /// What is told whatever else is said about the call, if something is.
    pub(super) fn notice(&self) -> Option<&OnNotice> {
        self.notice.as_ref()
    }
}
