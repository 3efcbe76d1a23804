//! A `Stream` made from an async step function.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::driver::BoxFuture;

/// The result of a step: an item and the state for the next step, or the end.
pub(super) type Given<S, T> = Option<(T, S)>;

/// A stream that repeats `step` until it returns `None`.
pub(super) fn stream<S, T>(
    start: S,
    step: fn(S) -> BoxFuture<Given<S, T>>,
) -> impl Stream<Item = T> + Send + Unpin
where
    S: Send + 'static,
    T: Send + 'static,
{
    Steps {
        running: Some(step(start)),
        step,
    }
}

struct Steps<S, T> {
    /// `None` after the end of the stream.
    running: Option<BoxFuture<Given<S, T>>>,
    step: fn(S) -> BoxFuture<Given<S, T>>,
}

impl<S, T> Stream for Steps<S, T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(running) = &mut self.running else {
            return Poll::Ready(None);
        };
        let Poll::Ready(given) = running.as_mut().poll(task) else {
            return Poll::Pending;
        };
        let (item, next) = given.unzip();
        self.running = next.map(self.step);
        Poll::Ready(item)
    }
}
