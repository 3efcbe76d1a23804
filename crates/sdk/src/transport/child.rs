//! A server as a child process.
//!
//! A child has a process group of its own. To end it, its stdin is closed; after 2 s the group gets
//! SIGTERM, after 2 s more SIGKILL, and the child is reaped (**no-orphan-processes**). This runs on
//! threads, so that it outlives the runtime. Descendants that leave the group are not found.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use belay_process::Prepared;
use belay_protocol::engine::{Loss, LossKind, Mode, Outcome};
use belay_protocol::types::Era;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use crate::Error;
use crate::client::{Client, ClientBuilder, Established, supervise};
use crate::driver::{BoxFuture, Ends, Process};

/// The time for a child to exit after its stdin was closed, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many bytes of its stderr are kept.
const STDERR_TAIL: usize = 64 << 10;

impl Client {
    /// Starts a server as a child process and connects to it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the child, as closing the client does.
    pub async fn stdio<I, A>(
        program: impl AsRef<std::ffi::OsStr>,
        arguments: I,
    ) -> Result<Self, Error>
    where
        I: IntoIterator<Item = A>,
        A: AsRef<std::ffi::OsStr>,
    {
        let mut command = Command::new(program);
        command.args(arguments);
        ClientBuilder::default().spawn(command).await
    }
}

impl ClientBuilder {
    /// Starts a server as a child process and connects to it. The child's stdin, stdout and stderr
    /// are replaced by pipes; everything else is as the command says.
    ///
    /// If the child exits on the era probe, it is started once more with the legacy handshake.
    ///
    /// The child has a process group of its own. When the connection ends, stdin is closed. The
    /// group gets SIGTERM when the child has exited, or after 2 s, and what is left of it gets
    /// SIGKILL 2 s later. A process that leaves the group on purpose (a daemon, anything started
    /// by `setsid`) is not found and lives on; where that matters, start the server in a
    /// container, or in a systemd scope.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the child, as closing the client does.
    pub async fn spawn(self, command: Command) -> Result<Client, Error> {
        let command = prepare(command);
        let (established, command) = self.spawn_once(command).await.map_err(|(error, _)| error)?;
        let Some(supervision) = self.supervision.clone() else {
            return Ok(self.client(established));
        };
        // Restarts skip the era probe: the era is known.
        let builder = self.again(match established.version().era() {
            Era::Legacy => Mode::Legacy,
            Era::Modern => Mode::Modern,
        });
        let respawn = Respawn {
            builder,
            command: Some(command),
        };
        Ok(supervise::start(&self, supervision, established, respawn))
    }

    /// Starts a child and opens a connection to it, once. The command is returned for a restart.
    pub(crate) async fn spawn_once(
        &self,
        command: Prepared,
    ) -> Result<(Established, Prepared), (Error, Prepared)> {
        let (started, command) = start(command).await;
        let (ends, warden) = match started.and_then(Started::ends) {
            Ok(started) => started,
            Err(error) => return Err((error, command)),
        };
        let error = match self.establish(ends).await {
            Ok(established) => return Ok((established, command)),
            Err(error) => error,
        };
        // Some legacy servers exit when they receive an unknown method.
        if !self.is_auto() || !exited(&error) || warden.ended_by_signal() {
            return Err((error, command));
        }
        let legacy = self.again(Mode::Legacy);
        let (started, command) = start(command).await;
        let ends = match started.and_then(Started::ends) {
            Ok((ends, _)) => ends,
            Err(error) => return Err((error, command)),
        };
        match legacy.establish(ends).await {
            Ok(established) => Ok((established, command)),
            Err(error) => Err((error, command)),
        }
    }
}

/// Starts the same command again.
struct Respawn {
    builder: ClientBuilder,
    /// `None` if an attempt was dropped and has taken the command along.
    command: Option<Prepared>,
}

impl supervise::Opener for Respawn {
    async fn open(&mut self) -> Result<Established, Error> {
        let Some(command) = self.command.take() else {
            return Err(Error::connect("the command is gone", None));
        };
        let (opened, command) = match self.builder.spawn_once(command).await {
            Ok((established, command)) => (Ok(established), command),
            Err((error, command)) => (Err(error), command),
        };
        self.command = Some(command);
        opened
    }
}

fn prepare(mut command: Command) -> Prepared {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Prepared::new(command)
}

fn exited(error: &Error) -> bool {
    matches!(
        error.outcome(),
        Some(Outcome::Lost { cause, .. }) if cause.kind == LossKind::ProcessExit
    )
}

/// A running child with its warden. Dropping it ends the child.
struct Started {
    program: String,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    warden: EndsChild,
}

/// Starts a child. The command is returned unchanged, so that a second start is the
/// same as the first.
///
/// # Cancel safety
///
/// Dropping the future ends the child, if it was started already.
async fn start(command: Prepared) -> (Result<Started, Error>, Prepared) {
    let program = command.program().to_string_lossy().into_owned();
    let (done, started) = oneshot::channel();
    belay_process::spawn_then(command, {
        let program = program.clone();
        move |spawned, command| {
            let started = spawned.and_then(|mut child| {
                Ok(Started {
                    program,
                    stdin: child.stdin.take(),
                    stdout: child.stdout.take(),
                    warden: Warden::start(child)?,
                })
            });
            // If the receiver was dropped, so is the child, which ends it.
            let _ = done.send((started, command));
        }
    });
    match started.await {
        Ok((started, command)) => {
            let started = started.map_err(|error| cannot_start(&program, error));
            (started, command)
        }
        Err(_) => {
            let gone = io::Error::other("the thread that spawns children is gone");
            let again = Prepared::new(Command::new(&program));
            (Err(cannot_start(&program, gone)), again)
        }
    }
}

fn cannot_start(program: &str, error: io::Error) -> Error {
    Error::connect(format!("cannot start {program:?}"), Some(error.into()))
}

type ChildEnds = Ends<pipe::Receiver, pipe::Sender>;

impl Started {
    fn ends(self) -> Result<(ChildEnds, Arc<Warden>), Error> {
        let failed = |error| cannot_start(&self.program, error);
        let (Some(stdin), Some(stdout)) = (self.stdin, self.stdout) else {
            return Err(failed(io::Error::other("it has no stdin or no stdout")));
        };
        let warden = self.warden.0.clone();
        let ends = Ends {
            reader: pipe::Receiver::from_owned_fd(OwnedFd::from(stdout)).map_err(failed)?,
            writer: pipe::Sender::from_owned_fd(OwnedFd::from(stdin)).map_err(failed)?,
            exit: Some(warden.exit()),
            hung_up: None,
            process: Some(Process {
                pid: warden.group.as_raw_pid().unsigned_abs(),
                kill: Arc::new({
                    let warden = warden.clone();
                    move || warden.signal(Signal::KILL)
                }),
                gone: warden.gone.subscribe(),
            }),
            keep: Some(Box::new(self.warden)),
            tap: None,
        };
        Ok((ends, warden))
    }
}

/// Ends the child when it is dropped, on a detached thread.
struct EndsChild(Arc<Warden>);

impl Drop for EndsChild {
    fn drop(&mut self) {
        let warden = self.0.clone();
        let end = move || warden.end();
        if thread::Builder::new()
            .name("belay-reaper".into())
            .spawn(end)
            .is_err()
        {
            // No thread can be started, so the child is killed without a grace period.
            self.0.signal(Signal::KILL);
        }
    }
}

/// The threads' shared state about one child.
struct Warden {
    group: Pid,
    state: Mutex<ChildState>,
    changed: Condvar,
    /// How the child exited; the inner `None` means that its status is unknown.
    exit: watch::Sender<Option<Option<ExitStatus>>>,
    /// Whether its whole process group is gone.
    gone: watch::Sender<bool>,
    stderr: Arc<Tail>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChildState {
    Running,
    /// Reaped. Its id may be reused by now; the id of the group is not, while the
    /// group has members.
    Gone,
}

impl Warden {
    /// Starts the threads. If that fails, the child is killed.
    fn start(mut child: Child) -> io::Result<EndsChild> {
        let warden = Arc::new(Self {
            group: Pid::from_child(&child),
            state: Mutex::new(ChildState::Running),
            changed: Condvar::new(),
            exit: watch::Sender::new(None),
            gone: watch::Sender::new(false),
            stderr: Arc::new(Tail::default()),
        });
        match warden.clone().start_threads(child.stderr.take()) {
            Ok(give) => {
                // The thread is running and receives it.
                let _ = give.send(child);
                Ok(EndsChild(warden))
            }
            Err(error) => {
                let _ = kill_process_group(warden.group, Signal::KILL);
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn start_threads(self: Arc<Self>, stderr: Option<ChildStderr>) -> io::Result<Sender<Child>> {
        if let Some(stderr) = stderr {
            self.stderr.clone().drain(stderr)?;
        }
        let (give, take) = mpsc::channel();
        thread::Builder::new()
            .name("belay-warden".into())
            .spawn(move || {
                if let Ok(mut child) = take.recv() {
                    self.watch(&mut child);
                }
            })?;
        Ok(give)
    }

    /// Waits for the child to exit, reports it, and ends what is left of its group.
    fn watch(&self, child: &mut Child) {
        // Does not reap it yet, so that its id cannot be reused before the signal below.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(self.group), options) {}
        {
            let mut state = self.lock();
            // Ends the processes that the child has left behind in its group.
            let _ = kill_process_group(self.group, Signal::TERM);
            let status = child.wait();
            *state = ChildState::Gone;
            self.changed.notify_all();
            self.exit.send_replace(Some(status.ok()));
        }
        self.sweep();
        self.gone.send_replace(true);
    }

    /// Waits for the group to end, and kills it when the time is up.
    fn sweep(&self) {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if test_kill_process_group(self.group).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    /// Called after stdin was closed: waits, and sends the next signal when the time is up.
    fn end(&self) {
        for signal in [Signal::TERM, Signal::KILL] {
            if self.is_gone_within(PATIENCE) {
                return;
            }
            self.signal(signal);
        }
    }

    fn is_gone_within(&self, span: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), span, |state| *state == ChildState::Running);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *state == ChildState::Gone
    }

    fn signal(&self, signal: Signal) {
        let state = self.lock();
        if *state == ChildState::Running {
            let _ = kill_process_group(self.group, signal);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ChildState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A future of the connection's end, once the child has exited.
    fn exit(&self) -> BoxFuture<Loss> {
        let mut exit = self.exit.subscribe();
        let stderr = self.stderr.clone();
        Box::pin(async move {
            let exited = exit.wait_for(Option::is_some).await;
            let status = exited.map(|exited| exited.flatten()).unwrap_or(None);
            // The last output on stderr may not have been read yet.
            stderr.settle().await;
            let stderr = stderr.text();
            Loss {
                kind: LossKind::ProcessExit,
                source: Some(Arc::new(ProcessExit { status, stderr })),
            }
        })
    }

    fn ended_by_signal(&self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        let status = self.exit.borrow().flatten();
        status.is_some_and(|status| status.signal().is_some())
    }
}

/// How a server's process exited, with the end of its stderr.
///
/// [`Error::exited`](crate::Error::exited) gives it for every call that was lost because of the exit.
#[derive(Clone, Debug)]
pub struct ProcessExit {
    status: Option<ExitStatus>,
    stderr: String,
}

impl ProcessExit {
    /// The exit status, or `None` if it is unknown.
    pub fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// The signal that killed it, if one did.
    pub fn signal(&self) -> Option<i32> {
        use std::os::unix::process::ExitStatusExt;
        self.status.and_then(|status| status.signal())
    }

    /// The last 64 KiB that the process wrote to stderr.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{status}")?,
            None => f.write_str("its exit status is unknown")?,
        }
        match self
            .stderr
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
        {
            Some(line) => write!(f, "; its last words: {line}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ProcessExit {}

/// The end of a stream, in a bounded buffer that is always drained, so that the child never blocks.
#[derive(Default)]
struct Tail {
    bytes: Mutex<VecDeque<u8>>,
    ended: tokio::sync::Notify,
    has_ended: std::sync::atomic::AtomicBool,
}

impl Tail {
    fn drain(self: Arc<Self>, mut stream: ChildStderr) -> io::Result<()> {
        use std::sync::atomic::Ordering;
        thread::Builder::new()
            .name("belay-stderr".into())
            .spawn(move || {
                let mut buffer = [0; 4096];
                loop {
                    match stream.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(count) => self.push(&buffer[..count]),
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => break,
                    }
                }
                self.has_ended.store(true, Ordering::SeqCst);
                self.ended.notify_waiters();
            })?;
        Ok(())
    }

    fn push(&self, more: &[u8]) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend(more);
        let excess = bytes.len().saturating_sub(STDERR_TAIL);
        bytes.drain(..excess);
    }

    /// Waits briefly for the end of the stream, since a grandchild may hold it open.
    async fn settle(&self) {
        let ended = self.ended.notified();
        if !self.has_ended.load(std::sync::atomic::Ordering::SeqCst) {
            let _ = tokio::time::timeout(Duration::from_millis(50), ended).await;
        }
    }

    fn text(&self) -> String {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(bytes.make_contiguous()).into_owned()
    }
}
