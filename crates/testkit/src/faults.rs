//! Pipes with faults.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The faults of a [`Faulty`] stream. They can be changed at any time, from any task or thread.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use belay_testkit::{Faults, Faulty};
/// use tokio::io::AsyncReadExt;
///
/// let faults = Faults::default();
/// let mut stream = Faulty::new(&b"hello"[..], &faults);
/// faults.split(Some(2));
/// let mut buffer = [0; 8];
/// assert_eq!(stream.read(&mut buffer).await.unwrap(), 2);
/// faults.cut();
/// assert!(stream.read(&mut buffer).await.is_err());
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stalled: bool,
    cut: bool,
    split: Option<usize>,
    delay: Option<Duration>,
    garbage: VecDeque<u8>,
    wakers: Vec<Waker>,
}

impl Faults {
    /// While stalled, no byte is read or written, as with a peer that has stopped reading.
    pub fn stall(&self, stalled: bool) {
        self.change(|state| state.stalled = stalled);
    }

    /// Breaks the pipe permanently: every read and write fails.
    pub fn cut(&self) {
        self.change(|state| state.cut = true);
    }

    /// Limits each read and each write to this many bytes.
    pub fn split(&self, bytes: Option<usize>) {
        self.change(|state| state.split = bytes);
    }

    /// Delays each read by this duration.
    pub fn delay(&self, delay: Option<Duration>) {
        self.change(|state| state.delay = delay);
    }

    /// Makes these bytes be read before any others.
    pub fn garbage(&self, bytes: impl AsRef<[u8]>) {
        self.change(|state| state.garbage.extend(bytes.as_ref()));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let wakers = {
            let mut state = self.lock();
            change(&mut state);
            std::mem::take(&mut state.wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the pipe is stalled; returns how many bytes may be read or written at once.
    fn poll_open(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        if state.cut {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        match state.stalled {
            true => Poll::Pending,
            false => Poll::Ready(Ok(state.split.unwrap_or(usize::MAX).max(1))),
        }
    }
}

/// A byte stream with faults.
#[derive(Debug)]
pub struct Faulty<S> {
    inner: S,
    faults: Faults,
    wait: Option<Pin<Box<Sleep>>>,
}

impl<S> Faulty<S> {
    /// Wraps a stream. Several streams can share their faults.
    pub fn new(inner: S, faults: &Faults) -> Self {
        Self {
            inner,
            faults: faults.clone(),
            wait: None,
        }
    }

    fn poll_delay(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(delay) = self.faults.lock().delay else {
            return Poll::Ready(());
        };
        let wait = self
            .wait
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + delay)));
        std::task::ready!(wait.as_mut().poll(cx));
        self.wait = None;
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Faulty<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let limit = std::task::ready!(self.faults.poll_open(cx))?;
        std::task::ready!(self.poll_delay(cx));
        let room = buffer.remaining().min(limit);
        {
            let mut state = self.faults.lock();
            if !state.garbage.is_empty() {
                let count = state.garbage.len().min(room);
                let garbage: Vec<u8> = state.garbage.drain(..count).collect();
                buffer.put_slice(&garbage);
                return Poll::Ready(Ok(()));
            }
        }
        let mut part = vec![0; room.min(64 << 10)];
        let mut part = ReadBuf::new(&mut part);
        std::task::ready!(Pin::new(&mut self.inner).poll_read(cx, &mut part))?;
        buffer.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Faulty<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let limit = std::task::ready!(self.faults.poll_open(cx))?;
        let part = &bytes[..bytes.len().min(limit)];
        Pin::new(&mut self.inner).poll_write(cx, part)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.faults.poll_open(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
