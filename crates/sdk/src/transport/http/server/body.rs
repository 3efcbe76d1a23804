//! Response bodies: empty, one message, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use belay_protocol::framing::SseEvent;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use super::events::Numbering;
use super::streams;
use crate::driver::{ExchangeHandle, ExchangeStep, Permit};

/// The body of a response.
///
/// # Cancel safety
///
/// Dropping the body of a modern response cancels its request, unless all of it was read. The
/// stream of a legacy response can be resumed.
#[derive(Debug)]
pub struct Body {
    kind: Kind,
    /// The rest of a message that is sent in pieces.
    rest: Bytes,
    /// The permit of its request, among the open requests.
    _place: Option<Permit>,
}

#[derive(Debug)]
enum Kind {
    Full(Option<Bytes>),
    Events(Box<Events>),
}

impl Body {
    fn of(kind: Kind) -> Self {
        Self {
            kind,
            rest: Bytes::new(),
            _place: None,
        }
    }

    /// Holds the permit of its request until the body was sent.
    pub(super) fn in_place(mut self, place: Permit) -> Self {
        self._place = Some(place);
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
        if self.rest.is_empty() {
            let next = match &mut self.kind {
                Kind::Full(bytes) => Poll::Ready(bytes.take()),
                Kind::Events(events) => events.poll_next(cx),
            };
            match next {
                Poll::Ready(Some(message)) => self.rest = message,
                // With nothing to send, a delay is the server's own and not a stalled reader.
                Poll::Ready(None) | Poll::Pending => {
                    streams::nothing_handed_out();
                    return next.map(|_| None);
                }
            }
        }
        let data = match streams::piece_handed_out() {
            true => next_piece(&mut self.rest),
            false => std::mem::take(&mut self.rest),
        };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && matches!(self.kind, Kind::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(bytes) => {
                let length = self.rest.len() + bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

/// The largest piece of a message on HTTP/2: the size of a frame.
const PIECE: usize = 16 << 10;

/// A message up to this length is sent in one piece.
const SMALL: usize = 1 << 10;

/// As soon as a stream may send a single byte, hyper passes a whole piece to h2. After the last
/// piece hyper is done with the stream, and nothing watches what is left of it in h2's buffers.
/// So pieces are no longer than a frame, and the last one is short: when it is taken, there was
/// room for everything before it.
fn next_piece(rest: &mut Bytes) -> Bytes {
    match rest.len() {
        0..=SMALL => std::mem::take(rest),
        length => rest.split_to(PIECE.min(length - 1)),
    }
}

/// An exchange as an event stream.
pub(super) struct Events {
    handle: Option<ExchangeHandle>,
    /// The events to send first: a greeting, or a replay.
    first: std::vec::IntoIter<SseEvent>,
    /// The memory budget they use.
    first_weight: Option<Permit>,
    /// The rest of an event that is sent in parts.
    parts: Option<std::array::IntoIter<Bytes, 3>>,
    /// Numbers and stores the events, where a stream can be resumed.
    numbering: Option<Numbering>,
    keep_alive: KeepAlive,
    /// Dropped when the stream ends.
    _open: Option<Box<dyn Send + Sync>>,
}

impl Events {
    /// A stream of all messages of an exchange.
    pub(super) fn new(handle: ExchangeHandle, keep_alive: Duration) -> Self {
        Self {
            handle: Some(handle),
            first: Vec::new().into_iter(),
            first_weight: None,
            parts: None,
            numbering: None,
            keep_alive: KeepAlive::new(keep_alive),
            _open: None,
        }
    }

    /// A stream of stored events, which ends after them.
    pub(super) fn replay(events: Vec<SseEvent>) -> Self {
        Self {
            handle: None,
            first: events.into_iter(),
            first_weight: None,
            parts: None,
            numbering: None,
            keep_alive: KeepAlive::new(Duration::MAX),
            _open: None,
        }
    }

    /// Sends these events first.
    pub(super) fn after(mut self, first: Vec<SseEvent>) -> Self {
        self.first = first.into_iter();
        self
    }

    /// Holds the memory budget of the first events until they are sent.
    pub(super) fn weighed(mut self, first_weight: Permit) -> Self {
        self.first_weight = Some(first_weight);
        self
    }

    pub(super) fn numbered(mut self, numbering: Numbering) -> Self {
        self.numbering = Some(numbering);
        self
    }

    /// Keeps a value until the stream ends.
    pub(super) fn keeping(mut self, kept: impl Send + Sync + 'static) -> Self {
        self._open = Some(Box::new(kept));
        self
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(part) = self.next_part() {
            return Poll::Ready(Some(part));
        }
        if let Some(first) = self.first.next() {
            return Poll::Ready(Some(self.begin(&first)));
        }
        self.first_weight = None;
        let Some(handle) = &mut self.handle else {
            return Poll::Ready(None);
        };
        // Being polled again means that the last frame was taken.
        handle.written();
        match handle.poll_step(cx) {
            Poll::Ready(ExchangeStep::Write(_)) => {
                let taken = match &self.numbering {
                    Some(numbering) => {
                        let taken = numbering.take(handle);
                        taken.map(|(id, frame)| (Some(id), frame))
                    }
                    None => handle.take().map(|frame| (None, frame)),
                };
                if let Some((id, frame)) = taken {
                    self.keep_alive.rest();
                    // A frame that is copied into the event is accounted for by the copy.
                    let shared = frame.len() > PIECE;
                    let frame = match shared {
                        true => handle.weighed(frame),
                        false => frame,
                    };
                    let event = SseEvent {
                        id,
                        ..SseEvent::message(frame)
                    };
                    let first = self.begin(&event);
                    return Poll::Ready(Some(match &self.handle {
                        Some(handle) if !shared => handle.weighed(first),
                        _ => first,
                    }));
                }
                // The frame was withdrawn in between; there may be another.
                cx.waker().wake_by_ref();
            }
            // The client reconnects and resumes the stream here.
            Poll::Ready(ExchangeStep::CloseStream(again)) if self.numbering.is_some() => {
                self.leave();
                let retry = SseEvent {
                    retry: Some(again.as_millis().try_into().unwrap_or(u64::MAX)),
                    ..SseEvent::default()
                };
                return Poll::Ready(Some(retry.encode()));
            }
            Poll::Ready(ExchangeStep::Over(_) | ExchangeStep::Replaced) => {
                self.leave();
                return Poll::Ready(None);
            }
            // This stream cannot be resumed, so it goes on.
            Poll::Ready(ExchangeStep::CloseStream(_)) => {
                handle.keep_stream();
                cx.waker().wake_by_ref();
            }
            Poll::Pending => {}
        }
        ready!(self.keep_alive.poll(cx));
        Poll::Ready(Some(Bytes::from_static(b":\n\n")))
    }

    /// The first part of an event. Large data is shared with the store and with replays; small
    /// data is copied into one buffer.
    fn begin(&mut self, event: &SseEvent) -> Bytes {
        if event.data.len() <= PIECE {
            return event.encode();
        }
        self.parts = Some(event.parts().into_iter());
        self.next_part().unwrap_or_default()
    }

    fn next_part(&mut self) -> Option<Bytes> {
        let parts = self.parts.as_mut()?;
        let next = parts.find(|part| !part.is_empty());
        if next.is_none() {
            self.parts = None;
        }
        next
    }

    /// Stops carrying the exchange.
    fn leave(&mut self) {
        let handle = self.handle.take();
        if let Some(numbering) = self.numbering.take() {
            numbering.leave(handle);
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.leave();
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Events")
    }
}

/// Sends comments on a silent stream, so that a closed connection is noticed. The first comes after
/// a second and the interval doubles, because most clients that leave do so early.
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

    /// Restarts the interval, because a message was sent.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_a_message_and_the_last_one_is_short() {
        for length in [
            1,
            SMALL,
            SMALL + 1,
            PIECE,
            PIECE + 1,
            PIECE + SMALL,
            5 * PIECE,
        ] {
            let message = Bytes::from(vec![7; length]);
            let (mut rest, mut pieces) = (message.clone(), Vec::new());
            while !rest.is_empty() {
                pieces.push(next_piece(&mut rest));
            }
            assert_eq!(pieces.concat(), message, "{length}");
            assert!(pieces.iter().all(|piece| piece.len() <= PIECE), "{length}");
            assert!(pieces.last().unwrap().len() <= SMALL, "{length}");
        }
    }
}
