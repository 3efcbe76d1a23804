//! Children of this process that no client holds: servers that were started and have not said hello.
//!
//! A client closes its child and waits for it. Before there is a client, the SDK ends the child on
//! threads of its own, and this is how to wait for that: a process that exits takes the threads along,
//! and nobody is left to kill a child that ignores the end of its input and SIGTERM
//! (**no-orphan-processes**). Only Linux tells whose children there are; elsewhere nothing is waited
//! for.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::time::{sleep, timeout};

/// How often it is looked whether a child is still there.
const INTERVAL: Duration = Duration::from_millis(10);
/// How long a child has to go after SIGTERM. The SDK has the same patience.
const PATIENCE: Duration = Duration::from_secs(2);
/// After the end of its input, and again after SIGTERM; then it is killed, which takes a moment.
const IN_ORDER: Duration = Duration::from_secs(5);

/// The children there were at some time.
pub(crate) struct Children(BTreeSet<i32>);

/// Children that were started since, each with what it has started itself.
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
    /// Waits until they are gone. Somebody else has closed their input, and will kill them in the end.
    pub(crate) async fn gone(&self) {
        let gone = async {
            while self.0.iter().any(|child| is_there(*child)) {
                sleep(INTERVAL).await;
            }
        };
        // What cannot be killed, such as a process that waits for a disk, is not waited for.
        let _ = timeout(IN_ORDER, gone).await;
    }

    /// Ends them soon: SIGTERM, which they would get in any case when this process exits, and SIGKILL.
    pub(crate) async fn end(&self) {
        self.signal(Signal::TERM);
        if timeout(PATIENCE, self.gone()).await.is_err() {
            self.kill().await;
        }
    }

    /// Kills them, with all they have started.
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

/// A process, as far as it matters here.
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    /// It has ended, and whoever started it has not noticed yet.
    is_zombie: bool,
}

/// Whether a child is there, or something that it has started. What has ended and belongs to others is
/// not waited for: they may never notice.
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
        // `7 (name) S 1 7 …`: state, parent, group. The name may have brackets and spaces of its own.
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
