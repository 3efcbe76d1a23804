//! The streams of one HTTP/2 connection: whether any is open, and whether the client reads them.
//!
//! hyper runs each stream (a request, then the body of its response) as a task of its own, on the
//! executor it is given. Only there can a single stream be ended from outside: while its window is
//! closed, hyper waits for the window and does not poll the body, so a body cannot end with an
//! error. But when the task is dropped, so is h2's handle of the stream, and a stream whose handle
//! is dropped before its end is reset (`CANCEL`). The other streams are not affected.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, ready};
use std::time::Duration;

use crate::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::task::TaskTracker;

tokio::task_local! {
    /// What the body of this stream has handed out. A body does not know its stream, but it is
    /// polled within the task of that stream.
    static HANDED_OUT: Cell<HandedOut>;
}

/// The pieces of a body that were handed out.
#[derive(Clone, Copy, Default)]
struct HandedOut {
    pieces: u64,
    /// Nothing was requested after the last piece.
    waits: bool,
}

/// Notes that the body of this stream has handed out a piece. Returns false if the body is not on
/// an HTTP/2 stream of this server, but on HTTP/1.1 or inside another server.
pub(super) fn piece_handed_out() -> bool {
    let noted = HANDED_OUT.try_with(|handed_out| {
        let pieces = handed_out.get().pieces + 1;
        let waits = true;
        handed_out.set(HandedOut { pieces, waits });
    });
    noted.is_ok()
}

/// Notes that the body of this stream was polled and had nothing to hand out.
pub(super) fn nothing_handed_out() {
    // Outside of a stream task nothing is noted.
    let _ = HANDED_OUT.try_with(|handed_out| {
        let pieces = handed_out.get().pieces;
        let waits = false;
        handed_out.set(HandedOut { pieces, waits });
    });
}

/// Runs the streams of one connection.
#[derive(Clone)]
pub(super) struct Streams {
    tasks: TaskTracker,
    write_stall: Duration,
    usage: Arc<Usage>,
}

struct Usage {
    open: AtomicUsize,
    /// When the last stream ended, or the connection began.
    used: Mutex<Instant>,
}

impl Streams {
    pub(super) fn new(tasks: TaskTracker, write_stall: Duration) -> Self {
        let usage = Usage {
            open: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
        };
        Self {
            tasks,
            write_stall,
            usage: Arc::new(usage),
        }
    }

    /// Waits until no stream was open for this long, counted from now.
    pub(super) async fn idle(&self, span: Duration) {
        *self.usage.used() = Instant::now();
        loop {
            // One timer per connection, however many streams there are. It is set for the moment at
            // which the connection would have been idle for long enough.
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
        self.used.lock()
    }
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, stream: F) {
        let open = Open::new(&self.usage);
        let watched = while_it_is_read(stream, self.write_stall);
        let watched = HANDED_OUT.scope(Cell::default(), watched);
        self.tasks.spawn(async move {
            let _open = open;
            watched.await;
        });
    }
}

/// Runs a stream to its end, or drops it if the pieces of its body are not read.
///
/// The timer is set only while a piece waits for the peer, which is rare.
async fn while_it_is_read(stream: impl Future, write_stall: Duration) {
    let mut stream = pin!(stream);
    let mut stalled: Option<(u64, Pin<Box<Sleep>>)> = None;
    poll_fn(|cx| {
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let HandedOut { pieces, waits } = HANDED_OUT.with(Cell::get);
        if !waits {
            stalled = None;
            return Poll::Pending;
        }
        // A different piece than the last time, so the last one was taken.
        let stalled = match &mut stalled {
            Some((waiting, timer)) if *waiting == pieces => timer,
            other => &mut other.insert((pieces, Box::pin(sleep(write_stall)))).1,
        };
        ready!(stalled.as_mut().poll(cx));
        tracing::debug!("a stream was reset that nobody reads (bounded)");
        Poll::Ready(())
    })
    .await;
}

/// The count of one open stream.
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
