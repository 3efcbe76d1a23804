//! The streams of one HTTP/2 connection.
//!
//! hyper runs each stream as a task of its own, on the executor that it is given: that is where they
//! are counted.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// Runs the streams of one connection.
#[derive(Clone)]
pub(super) struct Streams {
    tasks: TaskTracker,
    usage: Arc<Usage>,
}

struct Usage {
    open: AtomicUsize,
    /// When the last stream ended, or the connection began.
    used: Mutex<Instant>,
}

impl Streams {
    pub(super) fn new(tasks: TaskTracker) -> Self {
        let usage = Usage {
            open: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
        };
        Self {
            tasks,
            usage: Arc::new(usage),
        }
    }

    /// Waits until no stream was open for this long, from now on at the earliest.
    pub(super) async fn idle(&self, span: Duration) {
        *self.usage.used() = Instant::now();
        loop {
            // One timer for a connection, however many streams there are: it is set for the time
            // at which the connection will have been idle if nobody asks anything until then.
            let until = *self.usage.used() + span;
            tokio::time::sleep_until(until).await;
            if self.usage.open.load(Ordering::Acquire) > 0 {
                *self.usage.used() = Instant::now();
            } else if *self.usage.used() + span <= Instant::now() {
                return;
            }
        }
    }
}

impl Usage {
    fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let open = Open::new(&self.usage);
        self.tasks.spawn(async move {
            let _open = open;
            stream.await
        });
    }
}

/// A stream that is open.
struct Open(Arc<Usage>);

impl Open {
    fn new(usage: &Arc<Usage>) -> Self {
        usage.open.fetch_add(1, Ordering::Relaxed);
        Self(usage.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // In this order, or the connection could be seen with no stream and an old time.
        *self.0.used() = Instant::now();
        self.0.open.fetch_sub(1, Ordering::Release);
    }
}
