//! Who waits for a call: shared by the caller's future and by the engine, which keeps it in its own
//! table until the call has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use belay_protocol::engine::{Ask, Outcome};
use belay_protocol::jsonrpc::Notification;
#[cfg(all(feature = "http", feature = "client"))]
use belay_protocol::jsonrpc::Text;
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
    /// What its POST says in headers of its arguments.
    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) param_headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

/// What the headers of a POST say of the call that it carries, so that nobody reads its frame for that.
#[cfg(all(feature = "http", feature = "client"))]
pub(crate) struct Posted {
    pub(crate) method: Text,
    /// What it is about, as the header of its name says it.
    pub(crate) name: Option<http::HeaderValue>,
    pub(crate) param_headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

pub(crate) struct Waiter {
    end: Mutex<End>,
    wants_progress: bool,
    progress: Mutex<Option<OnProgress>>,
    notice: Option<OnNotice>,
    #[cfg(all(feature = "http", feature = "client"))]
    posted: Option<Posted>,
    /// The caller's future was dropped: nobody wants to know any more.
    given_up: AtomicBool,
}

enum End {
    Waiting(Option<Waker>),
    Ended(Outcome),
    Taken,
}

impl Waiter {
    /// For a call that is posted, if `is_posted`.
    #[cfg_attr(
        not(all(feature = "http", feature = "client")),
        expect(unused_variables, reason = "nothing is posted")
    )]
    pub(crate) fn new(told: Told, ask: &Ask, is_posted: bool) -> Arc<Self> {
        #[cfg(all(feature = "http", feature = "client"))]
        let posted = is_posted.then(|| Posted {
            method: ask.method.clone(),
            name: crate::transport::http::headers::name(&ask.method, &ask.params),
            param_headers: told.param_headers,
        });
        Arc::new(Self {
            #[cfg(all(feature = "http", feature = "client"))]
            posted,
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
        // There is nothing more to tell. Whoever waits for the callback to be gone need not look at the
        // call for that.
        if self.wants_progress {
            let callback = self.progress.lock().take();
            fenced("on_progress", || drop(callback));
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
        let Some(mut callback) = self.progress.lock().take() else {
            return;
        };
        let told = fenced("on_progress", move || {
            if self.given_up.load(Ordering::SeqCst) {
                return None;
            }
            callback(params);
            Some(callback)
        });
        *self.progress.lock() = told.flatten();
    }

    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) fn posted(&self) -> Option<&Posted> {
        self.posted.as_ref()
    }

    /// What is told whatever else is said about the call, if something is.
    pub(super) fn notice(&self) -> Option<&OnNotice> {
        self.notice.as_ref()
    }
}
