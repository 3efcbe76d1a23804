//! Non-blocking reads and writes on pipes and sockets, without changing their flags.
//!
//! An inherited descriptor is shared with the parent process, so it is never set non-blocking. But
//! Linux has non-blocking calls: `RWF_NOWAIT` on a pipe, `MSG_DONTWAIT` on a socket. With epoll for
//! readiness, no thread has to block.

use std::fs::File;
use std::future::pending;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use super::stdio::nobody_reads;
use crate::driver::BoxFuture;

/// The offset for files without a position.
const HERE: u64 = u64::MAX;

/// The kinds of file that have non-blocking calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
}

impl Kind {
    /// The kind of a descriptor, or `None` if it needs threads.
    fn of(fd: BorrowedFd<'_>) -> Option<Self> {
        match FileType::from_raw_mode(fstat(fd).ok()?.st_mode) {
            FileType::Fifo if pipes_can() => Some(Self::Pipe),
            FileType::Socket => Some(Self::Socket),
            _ => None,
        }
    }

    fn read(self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        match self {
            Self::Pipe => {
                let mut buffers = [IoSliceMut::new(buffer)];
                preadv2(fd, &mut buffers, HERE, ReadWriteFlags::NOWAIT)
            }
            Self::Socket => recv(fd, buffer, RecvFlags::DONTWAIT).map(|(count, _)| count),
        }
    }

    fn write(self, fd: BorrowedFd<'_>, buffers: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        match self {
            Self::Pipe => pwritev2(fd, buffers, HERE, ReadWriteFlags::NOWAIT),
            Self::Socket => {
                // A socket as stdout is rare, so writing one buffer at a time is enough.
                let first = buffers.iter().find(|buffer| !buffer.is_empty());
                let first = first.map_or(&[][..], |first| first);
                send(fd, first, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            }
        }
    }
}

#[allow(
    deprecated,
    reason = "what is wrong with it are types whose descriptor changes, or is closed early; a File's \
              does neither, and what replaces it is unsafe"
)]
fn register(file: File, interest: Interest) -> Option<AsyncFd<File>> {
    AsyncFd::with_interest(file, interest).ok()
}

/// Whether this kernel supports `RWF_NOWAIT` on pipes.
fn pipes_can() -> bool {
    let Ok((reader, writer)) = rustix::pipe::pipe() else {
        return false;
    };
    let mut byte = [0];
    Kind::Pipe.write(writer.as_fd(), &[IoSlice::new(b"x")]) == Ok(1)
        && Kind::Pipe.read(reader.as_fd(), &mut byte) == Ok(1)
        && Kind::Pipe.read(reader.as_fd(), &mut byte) == Err(Errno::AGAIN)
}

/// Completes when the writing end of an input is closed, although not everything was read. It
/// registers with epoll only when it is first polled.
pub(super) fn hung_up(input: &File) -> Option<BoxFuture<()>> {
    Kind::of(input.as_fd())?;
    let input = input.try_clone().ok()?;
    Some(Box::pin(async move {
        // A registration of its own, so that no event is taken away from the reader's.
        let Some(input) = register(input, Interest::READABLE) else {
            return pending().await;
        };
        while let Ok(mut seen) = input.readable().await {
            if seen.ready().is_read_closed() {
                return;
            }
            seen.clear_ready();
        }
        pending().await
    }))
}

/// Completes when the reading end of an output is closed, without writing to it.
fn reader_gone(output: &File) -> Option<BoxFuture<()>> {
    // Neither interest becomes ready through data, only through a hang-up.
    let interest = match Kind::of(output.as_fd())? {
        Kind::Pipe => Interest::ERROR,
        // A socket that was shut down for writing may still read.
        Kind::Socket => Interest::PRIORITY,
    };
    let output = register(output.try_clone().ok()?, interest)?;
    Some(Box::pin(async move {
        let seen = output.ready(interest).await.is_ok();
        if !seen || !nobody_reads(output.get_ref()) {
            pending().await
        }
    }))
}

/// Reads the input. The output is only watched: if its reader is gone, the end of the input is a
/// loss instead of an orderly end, and the loss is reported without waiting for input.
pub(super) struct NowaitReader {
    kind: Kind,
    input: AsyncFd<File>,
    output: File,
    reader_gone: Option<BoxFuture<()>>,
    /// Read into first, then copied: a read needs initialised memory, and initialising all of the
    /// caller's buffer each time costs more than copying what was read.
    read: Box<[u8]>,
}

/// The most that is read at once: the capacity of a pipe.
const CHUNK: usize = 64 << 10;

impl NowaitReader {
    /// A reader of this descriptor, if its kind is supported.
    pub(super) fn new(input: &File, output: &File) -> Option<Self> {
        let kind = Kind::of(input.as_fd())?;
        let input = register(input.try_clone().ok()?, Interest::READABLE)?;
        Some(Self {
            kind,
            input,
            output: output.try_clone().ok()?,
            reader_gone: reader_gone(output),
            read: vec![0; CHUNK].into_boxed_slice(),
        })
    }

    /// The input is not readable. Fails when the reader of the output is gone.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(gone) = &mut self.reader_gone else {
            return Poll::Pending;
        };
        ready!(gone.as_mut().poll(cx));
        self.reader_gone = None;
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
}

impl AsyncRead for NowaitReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            let Poll::Ready(ready) = this.input.poll_read_ready(cx) else {
                return this.poll_idle(cx);
            };
            let mut ready = ready?;
            let room = this.read.len().min(buffer.remaining());
            let read = &mut this.read[..room];
            match this.kind.read(this.input.as_fd(), read) {
                Ok(0) if nobody_reads(&this.output) => {
                    return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                }
                Ok(count) => {
                    // The pipe is empty, so the next write to it will make it ready again.
                    if 0 < count && count < room {
                        ready.clear_ready();
                    }
                    buffer.put_slice(&read[..count]);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

/// Writes the output. Data is handed to the operating system at once, so there is nothing to flush.
pub(super) struct NowaitWriter {
    kind: Kind,
    output: AsyncFd<File>,
}

impl NowaitWriter {
    /// A writer to this descriptor, if its kind is supported.
    pub(super) fn new(output: &File) -> Option<Self> {
        let kind = Kind::of(output.as_fd())?;
        let output = output.try_clone().ok()?;
        let output = register(output, Interest::WRITABLE)?;
        Some(Self { kind, output })
    }
}

impl AsyncWrite for NowaitWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buffer)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.output.poll_write_ready(cx))?;
            match self.kind.write(self.output.as_fd(), buffers) {
                Ok(count) => return Poll::Ready(Ok(count)),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
