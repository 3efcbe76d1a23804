//! The body of a client's POST.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use belay_protocol::engine::ExchangeId;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::driver::{Direction, ExchangeHandle, Link, Tap, fenced};

/// The body of a client's POST: a frame that is taken from the engine only when it is written.
/// Until then it can be withdrawn, which fails the POST, and no other frame takes its place.
pub(super) struct PostBody {
    source: Source,
    length: usize,
    state: State,
}

enum Source {
    /// A frame that waits on an exchange.
    Frame {
        link: Arc<Link>,
        exchange: ExchangeId,
        frame: Bytes,
        /// A call counts as written when its body is; other messages when they are answered.
        is_call: bool,
        tap: Option<Tap>,
    },
    /// Bytes that do not come from an exchange.
    Bytes(Bytes),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Begun,
    Over,
}

impl PostBody {
    pub(super) fn empty() -> Self {
        Self::bytes(Bytes::new())
    }

    fn bytes(bytes: Bytes) -> Self {
        Self {
            length: bytes.len(),
            state: match bytes.is_empty() {
                true => State::Over,
                false => State::Waiting,
            },
            source: Source::Bytes(bytes),
        }
    }

    pub(super) fn frame(
        handle: &ExchangeHandle,
        frame: &Bytes,
        is_call: bool,
        tap: Option<Tap>,
    ) -> Self {
        Self {
            source: Source::Frame {
                link: handle.link().clone(),
                exchange: handle.exchange(),
                frame: frame.clone(),
                is_call,
                tap,
            },
            length: frame.len(),
            state: State::Waiting,
        }
    }

    fn begin(&mut self) -> Result<Bytes, Withdrawn> {
        let Source::Frame {
            link,
            exchange,
            frame,
            tap,
            ..
        } = &self.source
        else {
            return Ok(self.take_bytes());
        };
        let begun = link.begin_write_of(*exchange, frame);
        let frame = begun.ok_or(Withdrawn)?;
        if let Some(tap) = tap {
            fenced("tap", || tap(Direction::Out, &frame));
        }
        Ok(frame)
    }

    fn take_bytes(&mut self) -> Bytes {
        match &mut self.source {
            Source::Bytes(bytes) => std::mem::take(bytes),
            Source::Frame { .. } => Bytes::new(),
        }
    }

    fn written(&mut self) {
        if let Source::Frame {
            link,
            exchange,
            is_call: true,
            ..
        } = &self.source
            && self.state == State::Begun
        {
            link.write_done(*exchange);
        }
        self.state = State::Over;
    }
}

impl Body for PostBody {
    type Data = Bytes;
    type Error = Withdrawn;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Withdrawn>>> {
        if self.state == State::Waiting {
            let begun = self.begin();
            self.state = match begun {
                Ok(_) => State::Begun,
                Err(_) => State::Over,
            };
            return Poll::Ready(Some(begun.map(Frame::data)));
        }
        self.written();
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Over
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length.try_into().unwrap_or(u64::MAX))
    }
}

impl Drop for PostBody {
    fn drop(&mut self) {
        self.written();
    }
}

/// The call was cancelled before a byte of it was written.
#[derive(Debug)]
pub(super) struct Withdrawn;

impl fmt::Display for Withdrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it was given up before it was sent")
    }
}

impl std::error::Error for Withdrawn {}
