//! Processes and files that the checks look at.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::Checked;

/// A busy machine is no reason to fail.
const PATIENCE: Duration = Duration::from_secs(20);

/// A file of our own, gone when this is.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let file = format!("belay-interop-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(file);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) -> Checked {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > until {
            return Err(format!("it never came to be: {what}"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

pub(crate) fn kill(pid: u32) -> Checked {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or("that is no process id")?;
    kill_process(pid, Signal::KILL).map_err(|error| error.to_string())
}

/// Whether a process exists; one that nobody has reaped yet does.
pub(crate) fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid).is_ok())
}
