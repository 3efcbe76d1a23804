//! The body of an answer: nothing, one message, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use belay_protocol::framing::SseEvent;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::events::Numbering;
use crate::driver::{Carried, Turn};

/// What a server answers with.
///
/// # Cancel safety
///
/// Dropping the body of a modern answer cancels the request it answers, unless all of it was taken;
/// that of a legacy one can be resumed.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    Full(Option<Bytes>),
    Events(Box<Events>),
}

impl Body {
    pub(super) fn empty() -> Self {
        Self(Kind::Full(None))
    }

    pub(super) fn full(bytes: Bytes) -> Self {
        Self(Kind::Full(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }

    pub(super) fn events(events: Events) -> Self {
        Self(Kind::Events(Box::new(events)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut self.0 {
            Kind::Full(bytes) => bytes.take(),
            Kind::Events(events) => ready!(events.poll_next(cx)),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// An exchange as a stream of events.
pub(super) struct Events {
    carried: Option<Carried>,
    /// What goes out first: a greeting, or what was missed.
    first: std::vec::IntoIter<Bytes>,
    /// How events are numbered and kept, where a stream can be resumed.
    numbering: Option<Numbering>,
    keep_alive: KeepAlive,
    /// Kept as long as the stream is open.
    _open: Option<Box<dyn Send + Sync>>,
}

impl Events {
    /// All that is to be said on an exchange.
    pub(super) fn new(carried: Carried, keep_alive: Duration) -> Self {
        Self {
            carried: Some(carried),
            first: Vec::new().into_iter(),
            numbering: None,
            keep_alive: KeepAlive::new(keep_alive),
            _open: None,
        }
    }

    /// What was said, and nothing more.
    pub(super) fn replay(events: Vec<Bytes>) -> Self {
        Self {
            carried: None,
            first: events.into_iter(),
            numbering: None,
            keep_alive: KeepAlive::new(Duration::MAX),
            _open: None,
        }
    }

    /// Says this first.
    pub(super) fn after(mut self, first: Vec<Bytes>) -> Self {
        self.first = first.into_iter();
        self
    }

    pub(super) fn numbered(mut self, numbering: Numbering) -> Self {
        self.numbering = Some(numbering);
        self
    }

    /// Keeps something as long as the stream is open.
    pub(super) fn keeping(mut self, kept: impl Send + Sync + 'static) -> Self {
        self._open = Some(Box::new(kept));
        self
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.next() {
            return Poll::Ready(Some(first));
        }
        let Some(carried) = &mut self.carried else {
            return Poll::Ready(None);
        };
        // Whoever asks for more has taken what there was.
        carried.written();
        match carried.poll_turn(cx) {
            Poll::Ready(Turn::Write(_)) => {
                if let Some(frame) = carried.take() {
                    self.keep_alive.rest();
                    let event = SseEvent {
                        id: self.numbering.as_mut().map(|them| them.next(&frame)),
                        ..SseEvent::message(frame)
                    };
                    return Poll::Ready(Some(event.encode()));
                }
                // It was withdrawn in between; there may be another.
                cx.waker().wake_by_ref();
            }
            Poll::Ready(Turn::Over(_) | Turn::Replaced) => {
                self.carried = None;
                return Poll::Ready(None);
            }
            Poll::Pending => {}
        }
        ready!(self.keep_alive.poll(cx));
        Poll::Ready(Some(Bytes::from_static(b":\n\n")))
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}

/// Says something when there is nothing to say, so that a connection that is gone is found to be
/// gone. It begins after a second, and takes its time more and more: those who leave do it early.
struct KeepAlive {
    next: Duration,
    longest: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl KeepAlive {
    fn new(longest: Duration) -> Self {
        Self {
            next: longest.min(Duration::from_secs(1)),
            longest,
            timer: None,
        }
    }

    /// Something was said.
    fn rest(&mut self) {
        if let Some(timer) = &mut self.timer {
            let due = Instant::now() + self.next;
            timer.as_mut().reset(due);
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.next)));
        ready!(timer.as_mut().poll(cx));
        self.next = (self.next * 2).min(self.longest);
        timer.as_mut().reset(Instant::now() + self.next);
        Poll::Ready(())
    }
}
