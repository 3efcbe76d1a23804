//! Reading lines and writing frames on one task, where neither waits for the other.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use belay_protocol::framing::LineDecoder;
use belay_protocol::jsonrpc::{self, DecodeError, Message};
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::{LINK, Link, Peer, Pool, fenced};

/// The most buffers in one system call: two for each frame.
const SLICES: usize = 256;
/// The most bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The two ends of a pipe, with the data that is partly read or written.
pub(super) struct Io<R, W> {
    reader: R,
    writer: W,
    lines: LineDecoder,
    /// The decoder may hold more lines: the engine wanted no more when the last one was taken.
    backlog: bool,
    input: Input,
    depth: usize,
    partial: Partial,
    unflushed: bool,
    /// A write has failed, and writing is not tried again.
    mute: bool,
    /// The last poll wrote something, so the next one reads first.
    wrote: bool,
    tap: Option<Tap>,
}

/// A callback for every frame that is sent or received.
pub(crate) type Tap = Arc<dyn Fn(Direction, &[u8]) + Send + Sync>;

/// The direction of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Sent to the peer. The write of the frame has begun.
    Out,
    /// Received from the peer, as it came: it may be malformed.
    In,
}

/// The rest of a frame that the operating system took in part.
#[derive(Default)]
struct Partial {
    rest: Bytes,
    newline: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    Ended,
}

/// The result of [`Io::poll_move`].
pub(super) enum Moved {
    /// Data was read, and there may be messages in it.
    Read,
    /// The input has ended.
    InputEnded,
    /// Data was written.
    Wrote,
    /// Reading failed.
    ReadFailed(io::Error),
    /// Writing failed.
    WriteFailed(io::Error),
}

/// A message that was read.
pub(super) struct Incoming {
    pub(super) message: Result<Message, DecodeError>,
    /// Whether the memory budget has room for it.
    pub(super) fits: bool,
}

impl<R, W> Io<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    pub(super) fn new(
        reader: R,
        writer: W,
        line_limit: usize,
        depth: usize,
        tap: Option<Tap>,
    ) -> Self {
        Self {
            reader,
            writer,
            lines: LineDecoder::new(line_limit),
            backlog: false,
            input: Input::Open,
            depth,
            partial: Partial::default(),
            unflushed: false,
            mute: false,
            wrote: false,
            tap,
        }
    }

    /// Reads and writes what is possible, in turn, so that neither starves the other.
    pub(super) fn poll_move(
        &mut self,
        cx: &mut Context<'_>,
        link: &Link,
        reads: bool,
    ) -> Poll<Moved> {
        let reads_first = std::mem::take(&mut self.wrote) && reads;
        if reads_first && let Poll::Ready(moved) = self.poll_input(cx) {
            return Poll::Ready(moved);
        }
        match self.poll_write(cx, link) {
            Poll::Ready(Ok(())) => {
                self.wrote = true;
                link.room.notify_waiters();
                return Poll::Ready(Moved::Wrote);
            }
            Poll::Ready(Err(error)) => {
                self.mute = true;
                return Poll::Ready(Moved::WriteFailed(error));
            }
            Poll::Pending => {}
        }
        match reads && !reads_first {
            true => self.poll_input(cx),
            false => Poll::Pending,
        }
    }

    fn poll_input(&mut self, cx: &mut Context<'_>) -> Poll<Moved> {
        if self.input == Input::Ended {
            return Poll::Pending;
        }
        // The lines in the decoder come before new data, and before the end of the input.
        if std::mem::take(&mut self.backlog) {
            return Poll::Ready(Moved::Read);
        }
        match ready!(self.poll_read(cx)) {
            Ok(0) => {
                self.input = Input::Ended;
                Poll::Ready(Moved::InputEnded)
            }
            Ok(_) => Poll::Ready(Moved::Read),
            Err(error) => {
                self.input = Input::Ended;
                Poll::Ready(Moved::ReadFailed(error))
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let buffer = self.lines.buffer();
        buffer.reserve(CHUNK);
        pin!(self.reader.read_buf(buffer)).poll(cx)
    }

    /// Waits for more data. Returns false if there will be none.
    pub(super) async fn reads_more(&mut self) -> bool {
        self.input == Input::Open
            && matches!(poll_fn(|cx| self.poll_read(cx)).await, Ok(count) if count > 0)
    }

    /// Stops taking messages for now.
    pub(super) fn pause(&mut self) {
        self.backlog = true;
    }

    /// The next message. Its bytes count against the peer's share until they are no longer used.
    pub(super) fn next_message(&mut self, peer: &Arc<Peer>) -> Option<Incoming> {
        let line = match self.lines.next_line()? {
            Ok(line) => line,
            Err(oversize) => {
                let message = Err(oversize.into());
                return Some(Incoming {
                    message,
                    fits: true,
                });
            }
        };
        self.show(Direction::In, &line);
        let mut weight = peer.begin(Pool::Bytes);
        let fits = weight.resize(0, line.len());
        let message = jsonrpc::decode(&weight.attach(line), self.depth);
        Some(Incoming { message, fits })
    }

    fn show(&self, way: Direction, frame: &[u8]) {
        if let Some(tap) = &self.tap {
            fenced("tap", || tap(way, frame));
        }
    }

    /// The text after the last newline, if it is a message.
    pub(super) fn last_message(&mut self) -> Option<Message> {
        let tail = self.lines.finish()?.ok()?;
        self.show(Direction::In, &tail);
        jsonrpc::decode(&tail, self.depth).ok()
    }

    /// Passes frames to the operating system, as many as it takes. Frames that it has not touched
    /// stay in the engine's queue, and can still be withdrawn.
    fn poll_write(&mut self, cx: &mut Context<'_>, link: &Link) -> Poll<io::Result<()>> {
        if self.mute {
            return Poll::Pending;
        }
        let mut state = link.lock();
        let written = {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = self.partial.fill(&mut slices);
            for frame in state.engine.queued(LINK) {
                if count + 2 > SLICES {
                    break;
                }
                slices[count] = IoSlice::new(frame);
                slices[count + 1] = IoSlice::new(b"\n");
                count += 2;
            }
            if count == 0 {
                drop(state);
                return self.poll_flush(cx);
            }
            ready!(Pin::new(&mut self.writer).poll_write_vectored(cx, &slices[..count]))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.unflushed = true;
        let now = link.now();
        let mut begun = Vec::new();
        let engine = &mut state.engine;
        engine.handle_bytes_taken(now);
        let mut left = written;
        if !self.partial.is_empty() {
            left = self.partial.advance(left);
            if self.partial.is_empty() {
                engine.handle_write_done(now, LINK);
            }
        }
        while left > 0 {
            let Some(rest) = engine.begin_write(now, LINK) else {
                break;
            };
            if self.tap.is_some() {
                begun.push(rest.clone());
            }
            let newline = true;
            self.partial = Partial { rest, newline };
            left = self.partial.advance(left);
            if self.partial.is_empty() {
                engine.handle_write_done(now, LINK);
            }
        }
        // Outside of the lock, because the tap is user code.
        drop(state);
        for frame in begun {
            self.show(Direction::Out, &frame);
        }
        Poll::Ready(Ok(()))
    }

    /// Flushes and closes the writer, within `span`.
    pub(super) async fn finish(&mut self, span: std::time::Duration) {
        if !self.mute {
            use tokio::io::AsyncWriteExt;
            let _ = tokio::time::timeout(span, self.writer.shutdown()).await;
        }
    }

    /// Flushes a buffering writer when no frame waits. Never ready, unless the flush fails.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unflushed {
            ready!(Pin::new(&mut self.writer).poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Pending
    }
}

impl Partial {
    fn is_empty(&self) -> bool {
        self.rest.is_empty() && !self.newline
    }

    fn fill<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        if self.is_empty() {
            return 0;
        }
        slices[0] = IoSlice::new(&self.rest);
        slices[1] = IoSlice::new(b"\n");
        2
    }

    /// Removes the written bytes. Returns how many more were written than it had.
    fn advance(&mut self, written: usize) -> usize {
        let of_rest = written.min(self.rest.len());
        self.rest.advance(of_rest);
        match written - of_rest {
            0 => 0,
            more => {
                self.newline = false;
                more - 1
            }
        }
    }
}
