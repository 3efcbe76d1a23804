//! Runs handlers. Each is polled once by the runner, and gets a task of its own
//! only if it is not ready then.
//!
//! ```text
//!   requests ──► waiting ──► runner ── answers at once ──► ended ──► the driver, at its next turn
//!                              │                             ▲
//!                              └── waits ──► task ── ends ───┘
//! ```
//!
//! On a pipe, and for batches in a legacy session, the runner is a task beside the driver, so that
//! handlers do not delay the driver. If a handler does not yield, another runner takes over (see
//! `watchdog.rs`). The handler of a POST is polled in the future of its HTTP service.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context as TaskContext, Poll, Waker};

use belay_protocol::engine::RequestKey;

use super::handlers::{Presence, panic_message, running};
use super::{Answer, App, BoxFuture, Link, fenced, watchdog};
use crate::context::Context;
use crate::sync::count_task;

/// A runner yields to other tasks after this many handlers.
const AT_ONCE: usize = 64;

/// The handlers that wait to run, and the results of those that ran.
#[derive(Default)]
pub(super) struct Work {
    waiting: VecDeque<Context>,
    pub(super) ended: Vec<Ended>,
    /// The number of the current runner. A runner whose handler does not yield is replaced.
    runner: u64,
    /// The waker of the current runner, if it is idle.
    idle: Option<Waker>,
    /// There is a current runner.
    has_runner: bool,
    /// The runner is polling a handler.
    polls: bool,
    /// The link is no longer driven.
    pub(super) abandoned: bool,
}

impl Work {
    /// Called when the link is no longer driven. Returns the handlers that never ran.
    pub(super) fn abandon(&mut self) -> VecDeque<Context> {
        self.abandoned = true;
        // The runner wakes up, sees this, and ends.
        if let Some(idle) = self.idle.take() {
            idle.wake();
        }
        std::mem::take(&mut self.waiting)
    }

    /// Releases memory that is not needed now.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(super) fn shrink(&mut self) {
        self.waiting.shrink_to_fit();
        self.ended.shrink_to_fit();
        if let Some(idle) = self.idle.take() {
            self.runner += 1;
            self.has_runner = false;
            idle.wake();
        }
    }
}

/// A handler that has ended, or whose request has.
pub(super) struct Ended {
    pub(super) key: RequestKey,
    /// `None` if it was dropped, or panicked.
    pub(super) answer: Option<Answer>,
    /// The presence of the task that ran it; `None` if that was the last one. A thread of
    /// the handler may leave before or after this is processed. The driver decides,
    /// because it sees all ends in order.
    pub(super) presence: Option<Presence>,
}

impl Link {
    /// Runs handlers, in order.
    pub(super) fn run(self: &Arc<Self>, app: &Arc<dyn App>, started: &mut Vec<Context>) {
        if started.is_empty() {
            return;
        }
        if self.runs_inline {
            return started
                .drain(..)
                .for_each(|context| self.run_here(app, context));
        }
        let idle = {
            let mut work = self.work.lock();
            work.waiting.extend(started.drain(..));
            match std::mem::replace(&mut work.has_runner, true) {
                true => work.idle.take(),
                false => {
                    drop(work);
                    return self.spawn_runner(app.clone());
                }
            }
        };
        if let Some(idle) = idle {
            idle.wake();
        }
    }

    /// Polls a handler once, in the task that serves its request.
    pub(super) fn run_here(self: &Arc<Self>, app: &Arc<dyn App>, context: Context) {
        if let Some(ended) = self.poll_first(app, context) {
            let (dropped, routed) = {
                let mut state = self.lock();
                let dropped = state.handler_ended(self, self.now(), ended);
                (dropped, state.route())
            };
            fenced("a destructor", || drop(dropped));
            self.wake(routed);
        }
        self.woken_later(false);
    }

    fn spawn_runner(self: &Arc<Self>, app: Arc<dyn App>) {
        let number = self.work.lock().runner;
        let link = self.clone();
        count_task();
        self.tasks
            .spawn(async move { poll_fn(|cx| link.poll_run(&app, number, cx)).await });
    }

    /// Called when a handler does not yield: the handlers behind it get another runner. The driver
    /// is woken from here, since it may be queued on the blocked thread.
    pub(super) fn relieve(self: &Arc<Self>) {
        let is_replaced = {
            let mut work = self.work.lock();
            // Otherwise the handler has a task of its own.
            let polls = std::mem::take(&mut work.polls);
            if polls {
                work.runner += 1;
                work.has_runner = !work.waiting.is_empty();
            }
            polls && work.has_runner
        };
        let app = self.app.get().and_then(Weak::upgrade);
        if let Some(app) = app.filter(|_| is_replaced) {
            self.spawn_runner(app);
        }
        self.wake.notify_one();
    }

    /// Called when the connection is closed: nothing more is run.
    pub(super) fn end_runner(&self) {
        let mut work = self.work.lock();
        work.runner += 1;
        if let Some(idle) = work.idle.take() {
            drop(work);
            idle.wake();
        }
    }

    /// Ready when the runner is no longer needed.
    fn poll_run(
        self: &Arc<Self>,
        app: &Arc<dyn App>,
        number: u64,
        cx: &mut TaskContext<'_>,
    ) -> Poll<()> {
        let mut ended = None;
        // The driver reads on when no handler waits any more, so it is woken if any has run.
        let mut any = false;
        for _ in 0..AT_ONCE {
            let next = {
                let mut work = self.work.lock();
                self.put_ended(&mut work, ended.take());
                if work.abandoned || work.runner != number {
                    drop(work);
                    self.woken_later(any);
                    return Poll::Ready(());
                }
                let next = work.waiting.pop_front();
                work.polls = next.is_some();
                if next.is_none() && self.keeps_runner {
                    work.idle = Some(cx.waker().clone());
                } else if next.is_none() {
                    work.has_runner = false;
                }
                next
            };
            let Some(context) = next else {
                self.woken_later(any);
                return match self.keeps_runner {
                    true => Poll::Pending,
                    false => Poll::Ready(()),
                };
            };
            ended = self.poll_first(app, context);
            any = true;
        }
        {
            let mut work = self.work.lock();
            self.put_ended(&mut work, ended);
            if work.runner == number {
                work.polls = false;
            }
        }
        self.woken_later(any);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Wakes the driver if there is something for it to do. This comes after a handler was polled,
    /// because a driver that is woken before may be queued on the thread that the handler blocks.
    fn woken_later(&self, any: bool) {
        let deferred = self.deferred.swap(false, Ordering::SeqCst);
        if any || deferred {
            self.wake.notify_one();
        }
    }

    /// Polls a handler for the first time. If it is not ready, it gets a task.
    fn poll_first(self: &Arc<Self>, app: &Arc<dyn App>, context: Context) -> Option<Ended> {
        let key = context.key();
        let presence = Presence::new(context.clone());
        if context.handling().is_aborted() {
            return Some(Ended {
                key,
                answer: None,
                presence: Some(presence),
            });
        }
        // The task polls it again at once, so no wake-up is missed.
        let mut nobody = TaskContext::from_waker(Waker::noop());
        let (handler, first) = watchdog::polled(self, || {
            let mut handler = Handler::new(app, context);
            let first = Pin::new(&mut handler).poll(&mut nobody);
            (handler, first)
        });
        match first {
            Poll::Ready(answer) => Some(Ended {
                key,
                answer,
                presence: Some(presence),
            }),
            Poll::Pending => {
                self.spawn_handler(key, handler, presence);
                None
            }
        }
    }

    fn spawn_handler(self: &Arc<Self>, key: RequestKey, handler: Handler, presence: Presence) {
        let link = self.clone();
        count_task();
        let task = self.tasks.spawn(async move {
            let mut handler = handler;
            let answer = poll_fn(|cx| {
                let polled = watchdog::polled(&link, || Pin::new(&mut handler).poll(cx));
                link.woken_later(false);
                polled
            })
            .await;
            link.handler_ended(Ended {
                key,
                answer,
                presence: Some(presence),
            });
        });
        let aborted = {
            let mut state = self.lock();
            let running = running(&mut state.engine, key);
            running.is_some_and(|running| {
                running.task = Some(task.abort_handle());
                running.overrun
            })
        };
        if aborted {
            task.abort();
        }
    }

    /// Whether a handler waits to be run for the first time.
    pub(super) fn has_waiting(&self) -> bool {
        !self.work.lock().waiting.is_empty()
    }

    /// Passes the end of a handler to the driver, or handles it here if there is no driver.
    pub(super) fn handler_ended(&self, ended: Ended) {
        let mut work = self.work.lock();
        if work.abandoned {
            drop(work);
            let dropped = self.lock().handler_ended(self, self.now(), ended);
            return drop(dropped);
        }
        self.put_ended(&mut work, Some(ended));
        drop(work);
        self.wake_driver();
    }

    fn put_ended(&self, work: &mut Work, ended: Option<Ended>) {
        if let Some(ended) = ended {
            work.ended.push(ended);
            self.has_ended.store(true, Ordering::Release);
        }
    }

    /// The handlers that have ended since the last turn.
    pub(super) fn take_ended(&self) -> Vec<Ended> {
        match self.has_ended.swap(false, Ordering::Acquire) {
            true => std::mem::take(&mut self.work.lock().ended),
            false => Vec::new(),
        }
    }
}

/// A handler whose panics are caught (**panic-fence**). Its output is `None` if it panicked.
struct Handler {
    future: Option<BoxFuture<Answer>>,
    context: Context,
}

impl Handler {
    fn new(app: &Arc<dyn App>, context: Context) -> Self {
        let made = catch_unwind(AssertUnwindSafe(|| app.handle(context.clone())));
        let future = made.inspect_err(|panic| panicked(&context, &**panic)).ok();
        Self { future, context }
    }
}

impl Future for Handler {
    type Output = Option<Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(future) = &mut this.future else {
            return Poll::Ready(None);
        };
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx)));
        let answer = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(answer)) => Some(answer),
            Err(panic) => {
                panicked(&this.context, &*panic);
                None
            }
        };
        // The handler's values are dropped before the caller gets the answer; that may panic, too.
        let future = this.future.take();
        match catch_unwind(AssertUnwindSafe(|| drop(future))) {
            Ok(()) => Poll::Ready(answer),
            Err(panic) => {
                panicked(&this.context, &*panic);
                Poll::Ready(answer)
            }
        }
    }
}

fn panicked(context: &Context, panic: &(dyn std::any::Any + Send)) {
    let (method, panic) = (context.method(), panic_message(panic));
    tracing::error!(%method, panic, "a handler panicked (panic-fence)");
}
