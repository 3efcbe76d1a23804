//! A stderr that never blocks.
//!
//! A parent process may give a server a pipe as stderr and never read it. When that pipe is full,
//! the next write to it blocks forever: a panic message blocks a runtime thread, which holds std's
//! lock on stderr, and in the end neither the end of input nor a signal ends the process
//! (**panic-fence**, **orderly-close**).
//!
//! ```text
//!   prints, panics ──► descriptor 2 ──► pipe ──► taking ──► buffer ──► writing ──► the real stderr
//!                                                thread    (bounded)   thread       (may block)
//! ```
//!
//! The first thread always reads, and drops what does not fit the buffer. The second may block, and
//! is never joined. The number of dropped bytes is printed as soon as the stderr is read again.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};

/// The most bytes that wait to be written.
const BUFFER: usize = 256 << 10;

/// At the end, printed bytes have this long to reach the real stderr.
const LAST_WORDS: Duration = Duration::from_millis(200);

static REDIRECTED: OnceLock<Option<Redirected>> = OnceLock::new();

/// Keeps a stderr that nobody reads from stopping this process.
///
/// If stderr is a pipe or a socket, a pipe of our own takes its place at descriptor 2, and threads
/// carry on what is printed. What nobody reads is dropped beyond 256 KiB, and that is said. For any
/// other stderr nothing happens.
///
/// [`serve_stdio`](crate::serve_stdio) and `http::serve` do this by themselves. Children that are
/// started later inherit the pipe.
///
/// Dropping the guard gives what was printed a moment to arrive: threads do not outlive a process,
/// and its last words should. If somebody reads the real stderr, what is printed after that goes
/// there directly.
///
/// ```no_run
/// let _stderr = belay::server::guard_stderr();
/// ```
pub fn guard_stderr() -> StderrGuard {
    REDIRECTED.get_or_init(|| {
        Redirected::new().unwrap_or_else(|error| {
            tracing::warn!(%error, "a full stderr will block this process");
            None
        })
    });
    StderrGuard(())
}

/// The guard of [`guard_stderr`]. Dropping it flushes what was printed.
#[must_use = "dropping it ends the guard"]
#[derive(Debug)]
pub struct StderrGuard(());

impl Drop for StderrGuard {
    fn drop(&mut self) {
        if let Some(Some(handle)) = REDIRECTED.get() {
            handle.flush();
        }
    }
}

struct Redirected {
    real: OwnedFd,
    pipe: OwnedFd,
    buffer: Arc<Buffer>,
}

/// Bytes that were printed and not yet written to the real stderr.
#[derive(Default)]
struct Buffer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    dropped: usize,
    /// Some bytes are being written.
    writing: bool,
    /// The real stderr is closed.
    broken: bool,
}

impl Redirected {
    /// `None` if stderr cannot block, or is a terminal, where a user reads it.
    fn new() -> io::Result<Option<Self>> {
        let kind = FileType::from_raw_mode(fstat(stderr())?.st_mode);
        if !matches!(kind, FileType::Fifo | FileType::Socket) {
            return Ok(None);
        }
        let real = rustix::io::fcntl_dupfd_cloexec(stderr(), 3)?;
        let (taken, pipe) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let buffer = Arc::new(Buffer::default());
        let (filled, emptied) = (buffer.clone(), buffer.clone());
        let (mut taken, mut written) = (File::from(taken), File::from(real.try_clone()?));
        let named = |name: &str| thread::Builder::new().name(name.into());
        named("belay-stderr").spawn(move || filled.take(&mut taken))?;
        named("belay-stderr-out").spawn(move || emptied.write(&mut written))?;
        dup2_stderr(&pipe)?;
        Ok(Some(Self { real, pipe, buffer }))
    }

    fn flush(&self) {
        // Everything is forwarded once both the pipe and the buffer are empty.
        let until = std::time::Instant::now() + LAST_WORDS;
        while !self.is_flushed() && std::time::Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        if self.is_flushed() && is_ready(&self.real, PollFlags::OUT) {
            // Stdout may be the same pipe.
            let same = |descriptor| same_file(descriptor, self.pipe.as_fd());
            if same(stdout()) {
                let _ = dup2_stdout(&self.real);
            }
            let _ = dup2_stderr(&self.real);
        }
    }

    fn is_flushed(&self) -> bool {
        let state = self.buffer.lock();
        // The buffer first: a byte moves from the pipe into it.
        let idle = state.bytes.is_empty() && !state.writing && state.dropped == 0;
        idle && rustix::io::ioctl_fionread(&self.pipe).is_ok_and(|left| left == 0)
    }
}

impl Buffer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the pipe, without ever waiting for the writing thread.
    fn take(&self, pipe: &mut File) {
        let mut chunk = vec![0; 16 << 10];
        loop {
            let count = match pipe.read(&mut chunk) {
                Ok(0) => return,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let mut state = self.lock();
            // Once bytes were dropped, so are all others until that was printed, so that the
            // message stands where the gap is.
            let full = state.dropped > 0 || count > BUFFER - state.bytes.len();
            match full {
                _ if state.broken => {}
                true => state.dropped += count,
                false => state.bytes.extend(&chunk[..count]),
            }
            self.changed.notify_all();
        }
    }

    /// Writes to the real stderr, and may block.
    fn write(&self, real: &mut File) {
        loop {
            let chunk = {
                let mut state = self.lock();
                while state.bytes.is_empty() && state.dropped == 0 {
                    let waited = self.changed.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
                state.writing = true;
                match state.bytes.is_empty() {
                    false => state.bytes.drain(..).collect(),
                    true => {
                        let dropped = std::mem::take(&mut state.dropped);
                        format!("\nbelay: {dropped} bytes of stderr were dropped: nobody read it\n")
                            .into_bytes()
                    }
                }
            };
            let written = real.write_all(&chunk);
            let mut state = self.lock();
            state.writing = false;
            if written.is_err() {
                state.broken = true;
                state.dropped = 0;
                state.bytes.clear();
                return;
            }
        }
    }
}

fn is_ready(file: &impl AsFd, event: PollFlags) -> bool {
    let mut polled = [PollFd::new(file, event)];
    let at_once = Timespec::default();
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents() == event
}

fn same_file(one: impl AsFd, other: impl AsFd) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}
