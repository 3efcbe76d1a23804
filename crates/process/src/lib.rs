//! Child processes that end with their parent.
//!
//! This is the only unsafe code in Belay. It asks, between `fork` and `exec`, for a signal to the
//! child when the parent dies, and it makes the allocator return memory.

use std::ffi::OsStr;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};
use std::thread;

/// Spawns a child in its own process group. On Linux the child gets SIGTERM when this process dies;
/// elsewhere it has to notice that its stdin has ended.
///
/// Linux sends the signal when the *thread* that spawned the child ends. So one thread, which lives
/// as long as the process, spawns all children. This call waits for that thread while it forks and
/// executes.
///
/// ```
/// let mut command = std::process::Command::new("true");
/// let mut child = belay_process::spawn(command)?;
/// assert!(child.wait()?.success());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn spawn(command: Command) -> io::Result<Child> {
    let (done, spawned) = mpsc::channel();
    spawn_then(Prepared::new(command), move |spawned, _| {
        // The receiver waits below.
        let _ = done.send(spawned);
    });
    spawned.recv().map_err(|_| gone())?
}

/// A command that is ready to be spawned, any number of times.
#[derive(Debug)]
pub struct Prepared(Command);

impl Prepared {
    /// Prepares a command: its own process group, and a signal when the parent dies.
    pub fn new(mut command: Command) -> Self {
        prepare(&mut command);
        Self(command)
    }

    /// The program that is run.
    pub fn program(&self) -> &OsStr {
        self.0.get_program()
    }
}

/// Spawns without waiting. `then` runs on the spawning thread, with the child and with the command
/// for another use. It must not block, because it delays the next spawn.
///
/// ```
/// use belay_process::Prepared;
///
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let command = Prepared::new(std::process::Command::new("true"));
/// belay_process::spawn_then(command, move |spawned, again| sender.send((spawned, again)).unwrap());
/// let (spawned, _again) = receiver.recv().unwrap();
/// assert!(spawned?.wait()?.success());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn spawn_then(
    command: Prepared,
    then: impl FnOnce(io::Result<Child>, Prepared) + Send + 'static,
) {
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = match SPAWNER.get() {
        Some(spawner) => spawner,
        None => match start_spawner() {
            Ok(started) => SPAWNER.get_or_init(|| started),
            Err(error) => return then(Err(error), command),
        },
    };
    if let Err(mpsc::SendError((command, then))) = spawner.send((command, Box::new(then))) {
        then(Err(gone()), command);
    }
}

/// Makes glibc's allocator return blocks of 256 KiB and more to the system as soon as they are
/// freed. Call this once, at the start of a program. With any other allocator it does nothing.
///
/// By default glibc takes the first large blocks that are freed as a sign that more will follow. It
/// then keeps blocks of up to 32 MiB in its heaps, which soon become too fragmented to be reused: a
/// server that has handled 200 MiB of large messages stays at 300 MiB.
///
/// ```
/// belay_process::return_large_blocks();
/// ```
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        const M_MMAP_THRESHOLD: c_int = -3;
        // SAFETY: `mallopt` is thread-safe, and supports this parameter in every version of glibc.
        // Setting the threshold also ends its automatic adjustment.
        unsafe { mallopt(M_MMAP_THRESHOLD, 256 << 10) };
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that spawns children is gone")
}

type Job = (Prepared, Then);
type Then = Box<dyn FnOnce(io::Result<Child>, Prepared) + Send>;

fn start_spawner() -> io::Result<Sender<Job>> {
    let (spawner, jobs) = mpsc::channel::<Job>();
    thread::Builder::new()
        .name("belay-spawner".into())
        .spawn(move || {
            for (mut command, then) in jobs {
                let spawned = command.0.spawn();
                // A panic is caught: if this thread ended, every child would get its signal.
                let _ = catch_unwind(AssertUnwindSafe(move || then(spawned, command)));
            }
        })?;
    Ok(spawner)
}

#[cfg(not(unix))]
fn prepare(_: &mut Command) {}

#[cfg(unix)]
fn prepare(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    command.process_group(0);
    #[cfg(target_os = "linux")]
    {
        let parent = rustix::process::getpid();
        // SAFETY: between `fork` and `exec` only async-signal-safe calls are allowed. Both of these
        // are plain system calls, and neither allocates nor takes a lock.
        unsafe {
            command.pre_exec(move || die_with(parent));
        }
    }
}

/// Asks for SIGTERM when the parent dies. If the parent died before this call, the signal would
/// never be sent, so check the parent afterwards.
#[cfg(target_os = "linux")]
fn die_with(parent: rustix::process::Pid) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::TERM))?;
    match getppid() == Some(parent) {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(
            rustix::io::Errno::SRCH.raw_os_error(),
        )),
    }
}
