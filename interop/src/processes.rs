//! The processes and files that the checks use.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::Checked;

/// The timeout of a check. It is long, so that a busy machine does not fail.
const PATIENCE: Duration = Duration::from_secs(20);

/// A temporary file that is removed on drop.
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

/// A listening server that is killed on drop.
pub(crate) struct Listener {
    child: Child,
    pub(crate) address: String,
}

impl Listener {
    /// Starts a server. Its first line shows that it listens, and may contain the address.
    pub(crate) async fn start(
        command: &mut Command,
        address: Option<String>,
    ) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdout = BufReader::new(child.stdout.take().ok_or("it has no stdout")?);
        let stderr = BufReader::new(child.stderr.take().ok_or("it has no stderr")?);
        let (mut out, mut err) = (stdout.lines(), stderr.lines());
        // Belay prints that line to stderr, the peers print it to stdout. Later output must not
        // block them.
        let listens = async {
            match &address {
                Some(_) => out.next_line().await,
                None => err.next_line().await,
            }
        };
        let line = tokio::time::timeout(PATIENCE, listens).await;
        let line = line
            .map_err(|_| "it does not listen")?
            .ok()
            .flatten()
            .unwrap_or_default();
        let said = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address = address.or(said.map(str::to_owned));
        tokio::spawn(async move { while let Ok(Some(_)) = out.next_line().await {} });
        tokio::spawn(async move { while let Ok(Some(_)) = err.next_line().await {} });
        Ok(Self {
            child,
            address: address.ok_or_else(|| format!("it says {line:?}"))?,
        })
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0");
    let address = listener.and_then(|listener| listener.local_addr());
    address
        .map(|address| address.port())
        .map_err(|error| error.to_string())
}

/// Waits until a condition is true; an error after a timeout.
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

/// Whether a process exists. One that has ended but was not reaped still exists.
pub(crate) fn exists(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid).is_ok())
}
