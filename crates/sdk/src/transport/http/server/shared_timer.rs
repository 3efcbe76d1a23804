//! A timer shared by all pending responses.
//!
//! Nearly every request is answered before its response has to become a stream, and a timer for
//! each would cost more than the answer. But all wait for the same time, so they time out in the
//! order in which they began, and a single timer for the first of them is enough.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::sync::{Mutex, MutexGuard};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub(super) struct SharedTimer {
    span: Duration,
    tasks: TaskTracker,
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    /// Those that wait, in order, with those that have been dropped since.
    waiting: VecDeque<(Instant, Weak<Slot>)>,
    /// A task is running the timer.
    is_watched: bool,
}

type Slot = Mutex<State>;

#[derive(Default)]
struct State {
    over: bool,
    waker: Option<Waker>,
}

impl SharedTimer {
    pub(super) fn new(span: Duration, tasks: TaskTracker) -> Arc<Self> {
        Arc::new(Self {
            span,
            tasks,
            line: Mutex::default(),
        })
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock()
    }

    /// Begins to wait.
    pub(super) fn wait(self: &Arc<Self>) -> Sleep {
        let over = self.span.is_zero();
        let waker = None;
        let slot = Arc::new(Slot::new(State { over, waker }));
        // A time too far away to be computed never comes.
        let Some(due) = Instant::now().checked_add(self.span).filter(|_| !over) else {
            return Sleep(slot);
        };
        let unwatched = {
            let mut line = self.line();
            line.waiting.push_back((due, Arc::downgrade(&slot)));
            !std::mem::replace(&mut line.is_watched, true)
        };
        if unwatched {
            let watching = Watching(Some(self.clone()));
            self.tasks.spawn(async move { watching.watch().await });
        }
        Sleep(slot)
    }

    /// Wakes those that are due, and returns when the next one is.
    fn first(&self) -> Option<Instant> {
        let mut line = self.line();
        let now = Instant::now();
        while let Some((due, slot)) = line.waiting.front() {
            match slot.upgrade() {
                None => {}
                Some(_) if *due > now => return Some(*due),
                Some(slot) => {
                    let mut state = lock(&slot);
                    state.over = true;
                    if let Some(waker) = state.waker.take() {
                        waker.wake();
                    }
                }
            }
            line.waiting.pop_front();
        }
        line.is_watched = false;
        None
    }
}

/// Marks that a task runs the timer. If it is dropped early, with its runtime, the
/// next `wait` starts another.
struct Watching(Option<Arc<SharedTimer>>);

impl Watching {
    /// Sleeps until the first one is due, while there are any.
    async fn watch(mut self) {
        while let Some(due) = self.0.as_ref().and_then(|head_timer| head_timer.first()) {
            tokio::time::sleep_until(due).await;
        }
        // The list is empty, and `first` has cleared the mark under the lock.
        self.0 = None;
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(head_timer) = self.0.take() {
            head_timer.line().is_watched = false;
        }
    }
}

/// Ready when the time is up.
pub(super) struct Sleep(Arc<Slot>);

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.over {
            return Poll::Ready(());
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => state.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

fn lock(slot: &Slot) -> MutexGuard<'_, State> {
    slot.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_is_woken_when_it_is_due_and_those_who_left_are_forgotten() {
        let tasks = TaskTracker::new();
        let head_timer = SharedTimer::new(Duration::from_millis(250), tasks.clone());
        let start = Instant::now();
        let first = head_timer.wait();
        tokio::time::advance(Duration::from_millis(100)).await;
        let left = head_timer.wait();
        let second = head_timer.wait();
        drop(left);
        first.await;
        assert_eq!(start.elapsed(), Duration::from_millis(250));
        second.await;
        assert_eq!(start.elapsed(), Duration::from_millis(350));
        tasks.close();
        tasks.wait().await;
        assert!(
            head_timer.line().waiting.is_empty(),
            "nobody is watched for nothing"
        );
        head_timer.wait().await;
        assert_eq!(start.elapsed(), Duration::from_millis(600));
    }

    #[tokio::test]
    async fn no_patience_is_no_wait() {
        let head_timer = SharedTimer::new(Duration::ZERO, TaskTracker::new());
        head_timer.wait().await;
    }
}
