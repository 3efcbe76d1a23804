//! A server on its own stdin and stdout.
//!
//! Three things make sure that the process can end at any time:
//!
//! 1. Nothing blocks (`nowait`). Where that is not possible (a terminal, a file, another
//!    system), reading stdin and writing stdout block on threads of their own: a tokio
//!    runtime waits for its blocking pool when it is dropped, and a read of an idle stdin
//!    would stay in that pool forever.
//! 2. These threads are never joined. At the end, data that was handed to the writer
//!    gets a moment to be written.
//! 3. Inherited descriptors are never set non-blocking, because they are shared
//!    with the parent process.
//!
//! Stdout belongs to the protocol. It is moved away from descriptor 1, which becomes stderr, so
//! that stray prints go there (it never blocks: see `stderr.rs`). Stdin is moved away from
//! descriptor 0, which becomes `/dev/null` for child processes of handlers.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::mpsc as blocking;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use bytes::{Buf, Bytes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{mpsc, oneshot};

#[cfg(target_os = "linux")]
use super::nowait::hung_up;
use super::stderr::guard_stderr;
use crate::server::Server;

/// The most bytes that are passed to or from a thread at once.
const CHUNK: usize = 64 << 10;

/// Serves on stdin and stdout until the input ends or a signal arrives.
///
/// Installs handlers for SIGTERM and SIGINT: the first signal begins an orderly shutdown, a second
/// one ends its drain. When this returns, the process can exit with status 0, even if a handler is
/// still running. An async handler that never yields cannot be dropped, and a runtime would wait
/// for it forever, so in that case the process is ended, with status 0, a second after this has
/// returned. (On a single-threaded runtime such a handler stops everything, including this
/// function. Blocking code belongs in [`Tool::blocking`](crate::Tool::blocking).)
///
/// # Cancel safety
///
/// Dropping the future stops the handlers at once, without a drain. Stdin and
/// stdout are not restored.
pub async fn serve_stdio(server: impl Into<Server>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let _stderr = guard_stderr();
    let (stdin, stdout) = take_stdio()?;
    // Kept open until the process exits, because its reader waits for both.
    let output = stdout.try_clone()?;
    let hung_up = hung_up(&stdin);
    let (reader, writer) = (reader(stdin, &stdout)?, writer(stdout)?);
    let mut serving = server.into().serve_watched(reader, writer, hung_up);
    loop {
        tokio::select! {
            biased;
            _ = &mut serving => {
                if serving.is_stuck() {
                    leave_anyway(output);
                }
                return Ok(());
            }
            _ = terminate.recv() => serving.shutdown(),
            _ = interrupt.recv() => serving.shutdown(),
        }
    }
}

/// A reader without a thread where that is possible, else with one.
fn reader(input: File, output: &File) -> io::Result<Box<dyn AsyncRead + Send + Unpin>> {
    #[cfg(target_os = "linux")]
    if let Some(reader) = super::nowait::NowaitReader::new(&input, output) {
        return Ok(Box::new(reader));
    }
    Ok(Box::new(ThreadReader::new(input, output.try_clone()?)?))
}

fn writer(output: File) -> io::Result<Box<dyn AsyncWrite + Send + Unpin>> {
    #[cfg(target_os = "linux")]
    if let Some(writer) = super::nowait::NowaitWriter::new(&output) {
        return Ok(Box::new(writer));
    }
    Ok(Box::new(ThreadWriter::new(output)?))
}

/// On other systems a hang-up is not noticed before everything was read.
#[cfg(not(target_os = "linux"))]
fn hung_up(_: &File) -> Option<crate::driver::BoxFuture<()>> {
    None
}

/// Ends the process although a handler never yields (**orderly-close**).
fn leave_anyway(output: File) {
    tracing::error!("a handler never yields; the process ends without it (stop-is-real)");
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        drop(output);
        std::process::exit(0);
    });
}

/// Moves stdin and stdout to descriptors that only the protocol uses.
fn take_stdio() -> io::Result<(File, File)> {
    use rustix::io::fcntl_dupfd_cloexec;
    use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

    // Not below 3, where the standard streams are.
    let input: OwnedFd = fcntl_dupfd_cloexec(stdin(), 3)?;
    let output: OwnedFd = fcntl_dupfd_cloexec(stdout(), 3)?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(stderr())?;
    Ok((input.into(), output.into()))
}

/// Reads on a thread.
struct ThreadReader {
    chunks: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl ThreadReader {
    /// Starts the thread. The output is only watched: if its reader is gone, the end of the input
    /// is a loss instead of an orderly end, and the loss is reported without waiting for input.
    fn new(mut input: File, output: File) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(2);
        thread::Builder::new()
            .name("belay-stdin".into())
            .spawn(move || {
                let mut buffer = vec![0; CHUNK];
                loop {
                    let read = match read_unless_unheard(&mut input, &output, &mut buffer) {
                        Ok(0) if nobody_reads(&output) => Err(io::ErrorKind::BrokenPipe.into()),
                        Ok(0) => return,
                        Ok(count) => Ok(Bytes::copy_from_slice(&buffer[..count])),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            wait_for(&input, PollFlags::IN);
                            continue;
                        }
                        Err(error) => Err(error),
                    };
                    let failed = read.is_err();
                    if sender.blocking_send(read).is_err() || failed {
                        return;
                    }
                }
            })?;
        Ok(Self {
            chunks,
            current: Bytes::new(),
        })
    }
}

impl AsyncRead for ThreadReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.current.is_empty() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(Ok(chunk)) => self.current = chunk,
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
        let count = self.current.len().min(buffer.remaining());
        buffer.put_slice(&self.current[..count]);
        self.current.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// Writes on a thread, one chunk at a time. A chunk counts as written when the thread has it. A
/// flush waits until the operating system has it.
struct ThreadWriter {
    jobs: blocking::SyncSender<Job>,
    busy: Option<oneshot::Receiver<io::Result<()>>>,
}

type Job = (Vec<u8>, oneshot::Sender<io::Result<()>>);

impl ThreadWriter {
    fn new(mut output: File) -> io::Result<Self> {
        let (jobs, todo) = blocking::sync_channel::<Job>(1);
        thread::Builder::new()
            .name("belay-stdout".into())
            .spawn(move || {
                for (chunk, done) in todo {
                    let _ = done.send(write_all(&mut output, &chunk));
                }
            })?;
        Ok(Self { jobs, busy: None })
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(busy) = &mut self.busy else {
            return Poll::Ready(Ok(()));
        };
        let done = ready!(Pin::new(busy).poll(cx));
        self.busy = None;
        Poll::Ready(done.unwrap_or(Err(io::ErrorKind::BrokenPipe.into())))
    }

    fn hand_over(&mut self, chunk: Vec<u8>) -> io::Result<usize> {
        let count = chunk.len();
        let (done, busy) = oneshot::channel();
        match self.jobs.try_send((chunk, done)) {
            Ok(()) => {
                self.busy = Some(busy);
                Ok(count)
            }
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl AsyncWrite for ThreadWriter {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buffer)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_idle(cx))?;
        let mut chunk = Vec::new();
        for buffer in buffers {
            let room = CHUNK.saturating_sub(chunk.len());
            chunk.extend_from_slice(&buffer[..buffer.len().min(room)]);
        }
        if chunk.is_empty() {
            return Poll::Ready(Ok(0));
        }
        Poll::Ready(self.hand_over(chunk))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_idle(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Writes everything, even if the parent process has made the descriptor non-blocking.
fn write_all(output: &mut File, mut chunk: &[u8]) -> io::Result<()> {
    while !chunk.is_empty() {
        match output.write(chunk) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => chunk = &chunk[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(output, PollFlags::OUT);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for input. Fails when the reader of the output is gone.
fn read_unless_unheard(input: &mut File, output: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut either = [
        PollFd::new(&*input, PollFlags::IN),
        PollFd::new(output, PollFlags::empty()),
    ];
    // If `poll` fails, the read reports the problem.
    let asked = poll(&mut either, None).is_ok();
    let [input_says, output_says] = either.map(|it| it.revents());
    if asked && input_says.is_empty() && output_says.intersects(GONE) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    input.read(buffer)
}

/// The events of an output without a reader.
const GONE: PollFlags = PollFlags::ERR.union(PollFlags::HUP);

fn wait_for(file: &File, event: PollFlags) {
    // If this fails, the next read or write reports why.
    let _ = poll(&mut [PollFd::new(file, event)], None);
}

/// Whether the reading end of a pipe is closed.
pub(super) fn nobody_reads(output: &File) -> bool {
    let mut output = [PollFd::new(output, PollFlags::empty())];
    let at_once = Timespec::default();
    poll(&mut output, Some(&at_once)).is_ok() && output[0].revents().intersects(GONE)
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn pipe() -> (File, File) {
        let (read, write) = std::io::pipe().unwrap();
        (OwnedFd::from(read).into(), OwnedFd::from(write).into())
    }

    /// The threads are a fallback for what `nowait` does not support, but both must
    /// behave the same.
    #[tokio::test]
    async fn a_reader_of_the_output_that_is_gone_is_noticed_with_the_input_idle() {
        let (input, mut to_input) = pipe();
        let (from_output, output) = pipe();
        let mut reader = ThreadReader::new(input, output).unwrap();
        let mut read = [0; 8];
        to_input.write_all(b"hello").unwrap();
        assert_eq!(reader.read(&mut read).await.unwrap(), 5);
        drop(from_output);
        let noticed = tokio::time::timeout(Duration::from_secs(10), reader.read(&mut read)).await;
        let error = noticed.expect("it is noticed").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
