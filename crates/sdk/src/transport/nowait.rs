//! Pipes and sockets that are read and written without ever blocking, and without being changed.
//!
//! An inherited descriptor is shared with whoever started us, so it is never set non-blocking. But
//! Linux can be asked, for one call, not to wait: `RWF_NOWAIT` on a pipe, `MSG_DONTWAIT` on a socket.
//! With epoll to tell when a call is worth making, no thread has to sit in one.

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

/// The position of whatever has none.
const HERE: u64 = u64::MAX;

/// Something that can be read and written so.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pipe,
    Socket,
}

impl Kind {
    /// What a descriptor is; `None` if threads are needed for it.
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
                // A socket as stdout is rare: one buffer at a time will do.
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

/// Whether this kernel can be asked that of a pipe.
fn pipes_can() -> bool {
    let Ok((reader, writer)) = rustix::pipe::pipe() else {
        return false;
    };
    let mut byte = [0];
    Kind::Pipe.write(writer.as_fd(), &[IoSlice::new(b"x")]) == Ok(1)
        && Kind::Pipe.read(reader.as_fd(), &mut byte) == Ok(1)
        && Kind::Pipe.read(reader.as_fd(), &mut byte) == Err(Errno::AGAIN)
}

/// Comes to its end when whoever writes an input is gone, or writes no more, although not all was
/// read. It looks only once it is asked, and makes others no work before.
pub(super) fn hung_up(input: &File) -> Option<BoxFuture<()>> {
    Kind::of(input.as_fd())?;
    let input = input.try_clone().ok()?;
    Some(Box::pin(async move {
        // On its own, so that nobody else misses what is seen here.
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

/// Comes to its end when nobody can read an output any more, although nothing is written.
fn reader_gone(output: &File) -> Option<BoxFuture<()>> {
    // Neither of the two is ready for anything but a hang-up.
    let interest = match Kind::of(output.as_fd())? {
        Kind::Pipe => Interest::ERROR,
        // One that only sends no more may still read.
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

/// Reads. The output is only looked at: if nobody reads it, the end of the input is no end but a
/// loss, and neither is waited for.
pub(super) struct NowaitReader {
    kind: Kind,
    input: AsyncFd<File>,
    output: File,
    reader_gone: Option<BoxFuture<()>>,
    /// What is read goes here first: only memory that was written to can be lent to the call that
    /// reads, and writing to all of the reader's each time costs more than copying what has come.
    read: Box<[u8]>,
}

/// So much is read at once: all that a pipe holds.
const CHUNK: usize = 64 << 10;

impl NowaitReader {
    /// Of this descriptor, if that is possible.
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

    /// Nothing can be read for now. An error if nobody would hear the answer.
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
                    // Nothing is left: whoever writes more makes it ready again.
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

/// Writes. What was taken has left our hands: there is nothing to flush.
pub(super) struct NowaitWriter {
    kind: Kind,
    output: AsyncFd<File>,
}

impl NowaitWriter {
    /// To this descriptor, if that is possible.
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
