//! Child processes without a client: servers that were started but have not finished the handshake.
//!
//! A client closes its child and waits for it. Before the client exists, the SDK ends the child on
//! background threads. If this process exited earlier, those threads would end with it, and a child
//! that ignores the end of stdin and SIGTERM would never be killed (**no-orphan-processes**). This
//! module waits for such a child. Children are found in `/proc`; without it (macOS) nothing is
//! waited for.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::time::{sleep, timeout};

/// Polling interval for whether a child still exists.
const INTERVAL: Duration = Duration::from_millis(10);
/// Time between SIGTERM and SIGKILL, the same as in the SDK.
const PATIENCE: Duration = Duration::from_secs(2);
/// Limit for the SDK's whole sequence: end of stdin, SIGTERM after a while, SIGKILL.
const IN_ORDER: Duration = Duration::from_secs(5);

/// A snapshot of the children of this process.
pub(crate) struct Children(BTreeSet<i32>);

/// Children that were started after a snapshot, each with its process group.
pub(crate) struct Started(Vec<Pid>);

impl Children {
    pub(crate) fn now() -> Self {
        Self(children())
    }

    pub(crate) fn since(&self) -> Started {
        let started = children();
        let started = started.difference(&self.0).copied();
        Started(started.filter_map(Pid::from_raw).collect())
    }
}

impl Started {
    /// Waits until they have exited. The SDK has closed their stdin and kills them in the end.
    pub(crate) async fn gone(&self) {
        let gone = async {
            while self.0.iter().any(|child| is_there(*child)) {
                sleep(INTERVAL).await;
            }
        };
        // A process in uninterruptible sleep (disk I/O) cannot be killed; stop waiting for it.
        let _ = timeout(IN_ORDER, gone).await;
    }

    /// Ends them: SIGTERM, which they would get anyway when this process exits, then SIGKILL.
    pub(crate) async fn end(&self) {
        self.signal(Signal::TERM);
        if timeout(PATIENCE, self.gone()).await.is_err() {
            self.kill().await;
        }
    }

    /// Kills them and the processes they have started.
    pub(crate) async fn kill(&self) {
        self.signal(Signal::KILL);
        self.gone().await;
    }

    fn signal(&self, signal: Signal) {
        for child in &self.0 {
            // A child that has just been forked has no group yet.
            let _ = kill_process_group(*child, signal).or_else(|_| kill_process(*child, signal));
        }
    }
}

/// The fields of `/proc/PID/stat` that are used here.
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    /// It has exited, and its parent has not reaped it yet.
    is_zombie: bool,
}

/// Whether a child or a process of its group exists. Zombies of other parents do not count: their
/// parents may never reap them.
fn is_there(child: Pid) -> bool {
    let child = child.as_raw_pid();
    processes().any(|it| it.id == child || (it.group == child && !it.is_zombie))
}

fn children() -> BTreeSet<i32> {
    let us = rustix::process::getpid().as_raw_pid();
    let children = processes().filter(|process| process.parent == us);
    children.map(|child| child.id).collect()
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // `7 (name) S 1 7 …`: state, parent, group. The name may contain brackets and spaces.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        Some(Process {
            id,
            is_zombie: fields.next()? == "Z",
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
        })
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[tokio::test]
    async fn only_children_that_were_started_since_are_ended() {
        let sleep = || Command::new("sleep").arg("1000").spawn().unwrap();
        let mut before = sleep();
        let children = Children::now();
        let mut since = sleep();
        let started = children.since();
        assert_eq!(started.0, [Pid::from_child(&since)]);
        // A child that has ended is there until it is waited for.
        let waiting = std::thread::spawn(move || since.wait().unwrap());
        started.end().await;
        assert!(waiting.join().unwrap().code().is_none());
        assert_eq!(before.try_wait().unwrap(), None);
        before.kill().unwrap();
        before.wait().unwrap();
    }
}
