//! Processes: signals, stderr, resource usage, and which of them still exist.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::{Done, PATIENCE};

pub(crate) fn signal(pid: u32, signal: Signal) -> Done {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or("that is no process id")?;
    kill_process(pid, signal).map_err(|error| format!("no signal could be sent: {error}"))
}

/// The stderr of a server. It is read all the time, and unexpected lines are kept.
pub(crate) struct Stderr(JoinHandle<Vec<String>>);

impl Stderr {
    pub(crate) fn read(stderr: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self::rest_of(BufReader::new(stderr).lines())
    }

    pub(crate) fn rest_of<R>(mut lines: Lines<BufReader<R>>) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
    {
        Self(tokio::spawn(async move {
            let mut unexpected = Vec::new();
            while let Ok(Some(line)) = lines.next_line().await {
                if !is_expected(&line) && unexpected.len() < 20 {
                    unexpected.push(line);
                }
            }
            unexpected
        }))
    }

    /// Checks that there were no unexpected lines. The process must have ended.
    pub(crate) async fn check(self) -> Done {
        let unexpected = timeout(PATIENCE, self.0).await;
        let unexpected = unexpected.map_err(|_| "its stderr is held by somebody")?;
        let unexpected = unexpected.map_err(|error| error.to_string())?;
        match unexpected.is_empty() {
            true => Ok(()),
            false => Err(format!("it printed {unexpected:?}")),
        }
    }
}

/// The tool `panic` of the demo server prints these lines, and so does the library because of it.
fn is_expected(line: &str) -> bool {
    line.is_empty()
        || line == "the demo server was asked to panic"
        || line.contains(" panicked at ") && line.contains("demo_server.rs")
        || line.starts_with("note: run with `RUST_BACKTRACE=1`")
        || line.starts_with("belay: error: a handler panicked (panic-fence)")
            && line.ends_with("the demo server was asked to panic)")
        || line.starts_with("belay: warnings that were not shown: ")
}

/// The resources that a process holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// Resident memory in bytes.
    pub(crate) memory: usize,
}

impl Figures {
    pub(crate) fn least(self, other: Self) -> Self {
        Self {
            descriptors: self.descriptors.min(other.descriptors),
            threads: self.threads.min(other.threads),
            memory: self.memory.min(other.memory),
        }
    }

    pub(crate) fn of(pid: u32) -> Result<Self, String> {
        let gone = |error: std::io::Error| format!("process {pid} cannot be looked at: {error}");
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(gone)?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(gone)?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            number.ok_or_else(|| format!("process {pid} has no {name}"))
        };
        Ok(Self {
            descriptors: descriptors.count(),
            threads: number("Threads:")?,
            memory: number("VmRSS:")? << 10,
        })
    }
}

/// Waits until no process of this run is left: none with its mark in the environment, and no child
/// of this process.
pub(crate) async fn until_none_is_left(mark: &str) -> Done {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = left(mark);
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("no-orphan-processes: still there: {left:?}"));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn left(mark: &str) -> Vec<String> {
    let own = std::process::id();
    let parent = format!("PPid:\t{own}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_ours = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        status.lines().any(|line| line == parent) || variables.any(|it| it == mark.as_bytes())
    };
    let ours = numbers.filter(|pid| *pid != own).filter(is_ours);
    ours.map(|pid| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        format!("{pid} {command}")
    })
    .collect()
}
