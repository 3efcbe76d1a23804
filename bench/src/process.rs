//! Starts this program again in another role, and reads its resource usage.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A process that is killed on drop.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let itself = std::env::current_exe().expect("ourselves");
        let child = Command::new(itself)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("a process"))
    }

    /// The CPU time used so far.
    pub(crate) fn spent(&self) -> Duration {
        let stat = self.read("stat");
        let rest = stat.rsplit(") ").next().unwrap_or_default();
        let ticks = rest.split(' ').skip(11).take(2);
        let ticks: u64 = ticks.filter_map(|tick| tick.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// The peak memory in KiB.
    pub(crate) fn peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// The current memory in KiB.
    pub(crate) fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = self.read("status");
        let value = status.lines().find_map(|line| line.strip_prefix(name));
        let number = value.and_then(|value| value.split_whitespace().next()?.parse().ok());
        number.unwrap_or_default()
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
