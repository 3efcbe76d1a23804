//! The caller's end of a call, shared by the caller's future and by the engine, which keeps it in
//! its table until the call has ended.

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

/// A callback for the progress of a call.
pub(crate) type OnProgress = Box<dyn FnMut(ProgressParams) + Send>;

/// A callback for all other notifications about a call.
pub(crate) type OnNotice = Arc<dyn Fn(Notification) + Send + Sync>;

/// The callbacks of a call, and its headers.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) progress: Option<OnProgress>,
    pub(crate) notice: Option<OnNotice>,
    /// The headers that repeat its arguments.
    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) param_headers: Vec<(http::HeaderName, http::HeaderValue)>,
}

/// What the headers of a POST need to know of its call, so that the frame need not be parsed.
#[cfg(all(feature = "http", feature = "client"))]
pub(crate) struct Posted {
    pub(crate) method: Text,
    /// The value of the `Mcp-Name` header.
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
    /// The caller's future was dropped, so that nothing is reported any more.
    given_up: AtomicBool,
}

enum End {
    Waiting(Option<Waker>),
    Ended(Outcome),
    Taken,
}

impl Waiter {
    /// The end of a call, which is sent as a POST if `is_posted`.
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

    /// The outcome of the call. Ready once.
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

    /// Sets the outcome, and wakes the caller.
    pub(super) fn ended(&self, outcome: Outcome) {
        // The progress callback is dropped now, because the call's future may be
        // kept and never polled again; and before the caller is woken, which may rely on that.
        if self.wants_progress {
            let callback = self.progress.lock().take();
            fenced("on_progress", || drop(callback));
        }
        let before = std::mem::replace(&mut *self.end.lock(), End::Ended(outcome));
        if let End::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }

    /// Called when the caller's future is dropped: progress is no longer reported.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::SeqCst);
    }

    pub(super) fn wants_progress(&self) -> bool {
        self.wants_progress
    }

    /// Calls the progress callback, outside of all locks and with its panics caught, because it is
    /// user code. A callback that has panicked is not called again.
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

    /// The callback for other notifications, if there is one.
    pub(super) fn notice(&self) -> Option<&OnNotice> {
        self.notice.as_ref()
    }
}
