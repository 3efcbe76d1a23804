//! Runs handlers: each is polled once by whoever started it, and gets a task of its own only if it
//! waits for something.
//!
//! ```text
//!   requests ──► waiting ──► runner ── answers at once ──► ended ──► the driver, at its next turn
//!                              │                             ▲
//!                              └── waits ──► task ── ends ───┘
//! ```
//!
//! On a pipe, and for batches in a legacy session, the runner is a task beside the driver, so that no
//! handler holds the driver up. If one does not yield, another runner takes over (see `watchdog.rs`).
//! A POST has a service future of its own, which is where its handler is polled.

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

/// After so many handlers a runner lets other tasks have their turn.
const AT_ONCE: usize = 64;

/// Handlers that wait to be run, and what became of those that ran.
#[derive(Default)]
pub(super) struct Work {
    waiting: VecDeque<Context>,
    pub(super) ended: Vec<Ended>,
    /// The number of the runner in charge: one that does not come back is replaced.
    runner: u64,
    /// The runner in charge, if it has nothing to do.
    idle: Option<Waker>,
    /// There is a runner in charge.
    has_runner: bool,
    /// It polls a handler at this moment.
    polls: bool,
    /// Nobody drives the link any more.
    pub(super) abandoned: bool,
}

impl Work {
    /// Nobody drives the link any more. Gives what never ran.
    pub(super) fn abandon(&mut self) -> VecDeque<Context> {
        self.abandoned = true;
        // It looks, and ends.
        if let Some(idle) = self.idle.take() {
            idle.wake();
        }
        std::mem::take(&mut self.waiting)
    }

    /// Gives back the memory that is not needed now.
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
    /// Of whoever ran it; `None` if that was the last. A thread of it may leave before this is looked at
    /// or after: the driver decides, which sees all ends in order.
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

    /// Polls a handler once, where its request is served.
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

    /// A handler does not yield: whoever waits behind it gets another runner, and the driver, which may
    /// have been left to the thread that it holds up, is woken from here.
    pub(super) fn relieve(self: &Arc<Self>) {
        let is_replaced = {
            let mut work = self.work.lock();
            // Else it is a handler with a task of its own.
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

    /// The connection is closed: nothing more will be run.
    pub(super) fn end_runner(&self) {
        let mut work = self.work.lock();
        work.runner += 1;
        if let Some(idle) = work.idle.take() {
            drop(work);
            idle.wake();
        }
    }

    /// Ready when the runner is not needed any more.
    fn poll_run(
        self: &Arc<Self>,
        app: &Arc<dyn App>,
        number: u64,
        cx: &mut TaskContext<'_>,
    ) -> Poll<()> {
        let mut ended = None;
        // Whoever drives the link reads on when nothing waits to be run any more.
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

    /// Wakes the driver if there is something for it. Not before a handler was polled: the driver might
    /// be left to the thread that the handler holds up.
    fn woken_later(&self, any: bool) {
        let deferred = self.deferred.swap(false, Ordering::SeqCst);
        if any || deferred {
            self.wake.notify_one();
        }
    }

    /// Polls a handler for the first time. If it waits for something, it gets a task.
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
        // The task polls it again at once, so nothing that wakes this one is missed.
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

    /// Leaves it to the driver, or sees to it itself if there is none.
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

    /// What became of handlers since the last turn.
    pub(super) fn take_ended(&self) -> Vec<Ended> {
        match self.has_ended.swap(false, Ordering::Acquire) {
            true => std::mem::take(&mut self.work.lock().ended),
            false => Vec::new(),
        }
    }
}

/// A handler behind a fence that its panics do not pass (**panic-fence**). Gives `None` if it panicked.
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
        // What it holds is released before its caller hears of it; and that may panic, too.
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
