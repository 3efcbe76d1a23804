//! The setup of a scenario: a server in a child process and a client connected to it.

use std::process::{Command, Stdio};
use std::time::Duration;

use belay::Client;
use belay::client::Mode;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Child;

pub(super) type Failure = Box<dyn std::error::Error>;

/// A transport and a protocol era.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Stdio(Mode),
    Http(Mode),
    EventStream,
}

impl Wire {
    pub(super) const ALL: [Self; 5] = [
        Self::Stdio(Mode::Legacy),
        Self::Stdio(Mode::Modern),
        Self::Http(Mode::Legacy),
        Self::Http(Mode::Modern),
        Self::EventStream,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdio(Mode::Legacy) => "stdio, legacy",
            Self::Stdio(_) => "stdio, modern",
            Self::Http(Mode::Legacy) => "HTTP, legacy",
            Self::Http(_) => "HTTP, modern",
            Self::EventStream => "HTTP+SSE",
        }
    }

    fn mode(self) -> Mode {
        match self {
            Self::Stdio(mode) | Self::Http(mode) => mode,
            Self::EventStream => Mode::Legacy,
        }
    }
}

/// A client and its server.
pub(super) struct Stage {
    pub(super) client: Client,
    pid: u32,
    server: Option<HttpServer>,
}

/// The child process of an HTTP server.
struct HttpServer {
    child: Child,
    /// Its stderr after the first line.
    stderr: BufReader<tokio::process::ChildStderr>,
}

/// How a server process ended.
pub(super) struct Ended {
    pub(super) status: std::process::ExitStatus,
    /// Number of bytes that it wrote to stderr while it ended.
    pub(super) noise: usize,
}

impl Stage {
    /// Starts a server and connects to it. Its handlers log their clean-up to the given file.
    pub(super) async fn set(wire: Wire, log: Option<&std::path::Path>) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve");
        if let Some(log) = log {
            command.env("BELAY_DEMO_CLEANUP_LOG", log);
        }
        let builder = Client::builder("belay-demo", env!("CARGO_PKG_VERSION")).mode(wire.mode());
        let path = match wire {
            Wire::Stdio(_) => {
                let client = builder.spawn(command).await?;
                let pid = client.pid().ok_or("the server has no process id")?;
                return Ok(Self {
                    client,
                    pid,
                    server: None,
                });
            }
            Wire::Http(_) => "mcp",
            Wire::EventStream => "sse",
        };
        command
            .args(["--http", "127.0.0.1:0", "--sse"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = tokio::process::Command::from(command)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().ok_or("the server has no process id")?;
        let mut stderr = BufReader::new(child.stderr.take().ok_or("the server has no stderr")?);
        let mut line = String::new();
        stderr.read_line(&mut line).await?;
        let address = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address = address.ok_or("the server did not print its address")?;
        let client = builder.http(&format!("http://{address}/{path}")).await?;
        Ok(Self {
            client,
            pid,
            server: Some(HttpServer { child, stderr }),
        })
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = Pid::from_raw(self.pid as i32);
        kill_process(pid.ok_or("the server has no process id")?, signal)?;
        Ok(())
    }

    /// Ends an HTTP server with SIGTERM and waits for its exit.
    pub(super) async fn terminate(&mut self) -> Result<Ended, Failure> {
        self.signal(Signal::TERM)?;
        let server = self
            .server
            .as_mut()
            .ok_or("this server has no HTTP process to end")?;
        let mut noise = Vec::new();
        server.stderr.read_to_end(&mut noise).await?;
        Ok(Ended {
            status: server.child.wait().await?,
            noise: noise.len(),
        })
    }

    /// Asks the server for its number of running `hang` calls.
    pub(super) async fn active(&self) -> Result<usize, Failure> {
        let result = self.client.call_tool("active", json!({})).await?;
        let text = result.content.first().and_then(|block| block.as_text());
        Ok(text.unwrap_or_default().parse()?)
    }

    /// Polls until that number of calls is running, at most 1000 times.
    pub(super) async fn until_active(&self, count: usize) -> Result<(), Failure> {
        for _ in 0..1000 {
            if self.active().await? == count {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }
}
