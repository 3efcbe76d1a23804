//! The body of an answer: nothing, one message, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use belay_protocol::framing::SseEvent;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use super::events::Numbering;
use super::patience::{Patience, Waiting};
use crate::driver::{Carried, Turn};

/// What a server answers with.
///
/// # Cancel safety
///
/// Dropping the body of a modern answer cancels the request it answers, unless all of it was taken;
/// that of a legacy one can be resumed.
#[derive(Debug)]
pub struct Body {
    kind: Kind,
    /// Sees to it that somebody takes what there is to take.
    stall: Option<Stall>,
}

#[derive(Debug)]
enum Kind {
    Full(Option<Bytes>),
    Events(Box<Events>),
}

impl Body {
    fn of(kind: Kind) -> Self {
        Self { kind, stall: None }
    }

    /// Watches over it from now on.
    pub(super) fn watched(mut self, stall: Stall) -> Self {
        self.stall = Some(stall);
        self
    }

    pub(super) fn empty() -> Self {
        Self::of(Kind::Full(None))
    }

    pub(super) fn full(bytes: Bytes) -> Self {
        Self::of(Kind::Full(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }

    pub(super) fn events(events: Events) -> Self {
        Self::of(Kind::Events(Box::new(events)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let polled = match &mut self.kind {
            Kind::Full(bytes) => Poll::Ready(bytes.take()),
            Kind::Events(events) => events.poll_next(cx),
        };
        if let Some(stall) = &mut self.stall {
            // What is handed out has to be taken; while there is nothing, nobody stalls but we.
            stall.set(matches!(polled, Poll::Ready(Some(_))));
        }
        polled.map(|data| data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// Closes a connection of which somebody takes a stream, and then nothing from it (**bounded**). On
/// HTTP/2 the socket itself tells nothing of that.
pub(super) struct Stall {
    patience: Arc<Patience>,
    closes: Arc<Closes>,
    waits: Option<Waiting>,
}

impl Stall {
    /// Begins to watch: as long as nobody asks for what there is, nobody takes it.
    pub(super) fn new(patience: Arc<Patience>, connection: CancellationToken) -> Self {
        let mut stall = Self {
            patience,
            closes: Arc::new(Closes(connection)),
            waits: None,
        };
        stall.set(true);
        stall
    }

    fn set(&mut self, waits: bool) {
        let wait = || self.patience.wait_with(Waker::from(self.closes.clone()));
        self.waits = waits.then(wait);
    }
}

impl std::fmt::Debug for Stall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stall")
    }
}

/// What is woken when patience is over.
struct Closes(CancellationToken);

impl Wake for Closes {
    fn wake(self: Arc<Self>) {
        tracing::debug!("a connection was closed of which a stream is not read (bounded)");
        self.0.cancel();
    }
}

/// An exchange as a stream of events.
pub(super) struct Events {
    carried: Option<Carried>,
    /// What goes out first: a greeting, or what was missed.
    first: std::vec::IntoIter<SseEvent>,
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
    pub(super) fn replay(events: Vec<SseEvent>) -> Self {
        Self {
            carried: None,
            first: events.into_iter(),
            numbering: None,
            keep_alive: KeepAlive::new(Duration::MAX),
            _open: None,
        }
    }

    /// Says this first.
    pub(super) fn after(mut self, first: Vec<SseEvent>) -> Self {
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
            return Poll::Ready(Some(first.encode()));
        }
        let Some(carried) = &mut self.carried else {
            return Poll::Ready(None);
        };
        // Whoever asks for more has taken what there was.
        carried.written();
        match carried.poll_turn(cx) {
            Poll::Ready(Turn::Write(_)) => {
                let taken = match &self.numbering {
                    Some(numbering) => {
                        let taken = numbering.take(carried);
                        taken.map(|(id, frame)| (Some(id), frame))
                    }
                    None => carried.take().map(|frame| (None, frame)),
                };
                if let Some((id, frame)) = taken {
                    self.keep_alive.rest();
                    let event = SseEvent {
                        id,
                        ..SseEvent::message(frame)
                    };
                    return Poll::Ready(Some(event.encode()));
                }
                // It was withdrawn in between; there may be another.
                cx.waker().wake_by_ref();
            }
            // Whoever asks again finds it where it was left.
            Poll::Ready(Turn::LetGo(again)) if self.numbering.is_some() => {
                self.carried = None;
                let retry = SseEvent {
                    retry: Some(again.as_millis().try_into().unwrap_or(u64::MAX)),
                    ..SseEvent::default()
                };
                return Poll::Ready(Some(retry.encode()));
            }
            Poll::Ready(turn @ (Turn::Over(_) | Turn::Replaced)) => {
                if let (Some(numbering), Turn::Over(_)) = (&self.numbering, turn) {
                    numbering.over();
                }
                self.carried = None;
                return Poll::Ready(None);
            }
            // Nobody could ask again.
            Poll::Ready(Turn::LetGo(_)) => {
                carried.hold_on();
                cx.waker().wake_by_ref();
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
