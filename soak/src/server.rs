//! `belay serve --http`: the server that all workers on HTTP share, or a worker's own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use belay_testkit::RawHttp;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::time::{sleep, timeout};

use crate::ask::Ask;
use crate::exchange;
use crate::observer::{Era, Observer};
use crate::processes::{self, Figures, Stderr};
use crate::quiet::Books;
use crate::soak::{self, Headers};
use crate::{Done, PATIENCE};

/// How long a broken legacy stream can be resumed. Workers resume within half a second, and a busy
/// machine must not make them late. Streams that are not resumed must be over when the server is to
/// be at rest.
const RESUME_WINDOW: Duration = Duration::from_secs(5);

pub(crate) struct Server {
    child: Killed,
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
    stderr: Stderr,
}

impl Server {
    pub(crate) async fn start(belay: &Path) -> Result<Self, String> {
        let (name, value) = soak::mark();
        let mut command = Command::new(belay);
        command
            .args(["serve", "--http", "127.0.0.1:0", "--sse"])
            .args(["--resume-window", &RESUME_WINDOW.as_secs().to_string()])
            .env(name, value)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // It has no stdin whose end it could notice, so it gets a signal when this process dies.
        let child = belay_process::spawn(command);
        let child = child.map_err(|error| format!("no server could be started: {error}"))?;
        let mut child = Killed(child);
        let stderr = child.0.stderr.take().ok_or("the server has no stderr")?;
        let stderr = Receiver::from_owned_fd(stderr.into()).map_err(|error| error.to_string())?;
        let mut lines = BufReader::new(stderr).lines();
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line.map_err(|_| "the server does not say where it is")?;
        let line = line.ok().flatten().unwrap_or_default();
        let address = line.split("http://").nth(1);
        let address = address.and_then(|rest| rest.split('/').next()?.parse().ok());
        Ok(Self {
            address: address.ok_or_else(|| format!("the server says {line:?}"))?,
            pid: child.0.id(),
            child,
            stderr: Stderr::rest_of(lines),
        })
    }

    pub(crate) fn figures(&self) -> Result<Figures, String> {
        Figures::of(self.pid)
    }

    /// Waits until no handler runs, then deletes the sessions that were left open, and waits until
    /// no connection is left either.
    pub(crate) async fn come_to_rest(&self, sessions: Vec<Headers>) -> Result<Books, String> {
        let until = Instant::now() + RESUME_WINDOW + PATIENCE;
        while let Err(problem) = self.books().await?.check() {
            if Instant::now() > until {
                return Err(problem);
            }
            sleep(Duration::from_millis(50)).await;
        }
        for headers in sessions {
            let mut http = RawHttp::connect(self.address).await;
            http.headers = headers;
            http.send("DELETE", b"").await;
            let status = http.answer().await.status;
            // A session without requests may have expired already.
            if !matches!(status, 204 | 404) {
                return Err(format!("a session was deleted with status {status}"));
            }
        }
        self.until_metrics_are_zero(until).await?;
        self.books().await
    }

    /// The counters that the server reports.
    async fn books(&self) -> Result<Books, String> {
        let mut observer = Observer::new("the last".into(), Era::Modern);
        let mut answers = Vec::new();
        for ask in [Ask::Active, Ask::Ledger] {
            let mut http = RawHttp::connect(self.address).await;
            let request = observer.ask(ask);
            exchange::post(&mut http, &request, &mut observer).await?;
            let mut answer = http.answer().await;
            answers.push(serde_json::from_slice(&std::mem::take(&mut answer.body)));
        }
        match answers.as_slice() {
            [Ok(active), Ok(ledger)] => Books::read(active, ledger),
            _ => Err("the server does not tell its books".into()),
        }
    }

    /// Waits until all gauges are zero, including the streams and sessions of legacy clients.
    async fn until_metrics_are_zero(&self, until: Instant) -> Done {
        loop {
            let mut http = RawHttp::connect(self.address).await;
            http.path = "/metrics".into();
            http.send("GET", b"").await;
            let page = http.answer().await.body;
            let page = String::from_utf8_lossy(&page);
            let gauges = ["handlers", "handlers_overrun", "sessions", "streams"];
            let of = |name: &str| {
                let mut lines = page.lines();
                let start = format!("belay_{name} ");
                let line = lines.find(|line| line.starts_with(&start));
                line.unwrap_or(name).to_owned()
            };
            let left: Vec<String> = gauges.into_iter().map(of).collect();
            if left.iter().all(|line| line.ends_with(" 0")) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("the server is not at rest: {left:?}"));
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends SIGTERM, and checks that the server shuts down in good order (**orderly-close**).
    pub(crate) async fn terminate(mut self) -> Done {
        processes::signal(self.pid, Signal::TERM)?;
        let status = self.child.ended().await?;
        match status.success() {
            true => self.stderr.check().await,
            false => Err(format!("orderly-close: it ended with {status}")),
        }
    }

    /// Kills the server.
    pub(crate) async fn kill(mut self) -> Done {
        processes::signal(self.pid, Signal::KILL)?;
        self.child.ended().await?;
        self.stderr.check().await
    }
}

/// A child that is killed on drop.
struct Killed(Child);

impl Killed {
    async fn ended(&mut self) -> Result<ExitStatus, String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if Instant::now() < until => sleep(Duration::from_millis(5)).await,
                Ok(None) => return Err(format!("it runs on for {PATIENCE:?} after its signal")),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
