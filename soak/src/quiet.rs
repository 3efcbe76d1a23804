//! Checks that a server is at rest: no handler is left, and its ledger is balanced (**ledger**).

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::ask::Ask;
use crate::observer::Request;
use crate::pipe::{Input, Observed, Output};
use crate::{Done, PATIENCE};

/// The counters that a server reports.
#[derive(Clone, Debug)]
pub(crate) struct Books {
    pub(crate) active: String,
    pub(crate) started: u64,
    pub(crate) ended: u64,
    pub(crate) running: u64,
}

impl Books {
    /// Reads the answers to [`Ask::Active`] and [`Ask::Ledger`].
    pub(crate) fn read(active: &Value, ledger: &Value) -> Result<Self, String> {
        let books = &ledger["result"]["structuredContent"];
        let number = |name: &str| {
            let number = books[name].as_u64();
            number.ok_or_else(|| format!("the ledger has no {name:?}: {ledger}"))
        };
        let active = active["result"]["content"][0]["text"].as_str();
        Ok(Self {
            active: active.unwrap_or("nothing said").to_owned(),
            started: number("started")?,
            ended: number("ended")?,
            running: number("running")?,
        })
    }

    /// Checks that `started = ended + running`, and that nothing is running.
    pub(crate) fn check(&self) -> Done {
        match (self.started == self.ended + self.running, self.running) {
            (true, 0) if self.active == "0" => Ok(()),
            _ => Err(format!(
                "ledger: {} started, {} ended, {} running, {} hang",
                self.started, self.ended, self.running, self.active
            )),
        }
    }
}

/// Waits until a server on a pipe is at rest.
pub(crate) async fn on_pipe(
    input: &mut impl Input,
    output: &mut impl Output,
    observed: &Observed,
) -> Done {
    let until = Instant::now() + PATIENCE;
    loop {
        let active = told(Ask::Active, input, output, observed).await?;
        let ledger = told(Ask::Ledger, input, output, observed).await?;
        match Books::read(&active, &ledger)?.check() {
            Ok(()) => return Ok(()),
            Err(problem) if Instant::now() > until => return Err(problem),
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn told(
    ask: Ask,
    input: &mut impl Input,
    output: &mut impl Output,
    observed: &Observed,
) -> Result<Value, String> {
    let Request { id, frame } = observed.lock().ask(ask);
    let bytes = frame.to_string().into_bytes();
    input.write_frames(&[bytes], false, observed).await?;
    loop {
        let read = timeout(PATIENCE, output.read_frame()).await;
        let read = read.map_err(|_| format!("{ask:?} is not answered"))??;
        let frame = read.ok_or("the pipe ended")?;
        observed.lock().received(&frame);
        let message: Value = serde_json::from_slice(&frame).map_err(|error| error.to_string())?;
        if message["id"] == id && message.get("method").is_none() {
            return Ok(message);
        }
    }
}
