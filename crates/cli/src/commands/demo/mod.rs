//! `belay demo`: shows how requests end when servers die, callers give up and transports close.

mod scenarios;
mod stage;

use std::time::{Duration, Instant};

use clap::Args;

use crate::children::Children;
use crate::exit::{self, Code};
use crate::interrupt::Interrupt;
use crate::output;
use scenarios::SCENARIOS;
use stage::Wire;

/// Show what happens to requests when things go wrong.
///
/// Replays four bug reports of the Python SDK against Belay with real child processes and sockets,
/// on every transport and in both eras of the protocol. Exits with 0 if every check passes, and
/// with 7 if one fails.
#[derive(Args)]
pub(crate) struct Demo {}

/// The result of a scenario on one transport.
struct Shown {
    /// The error that the caller got.
    caller: String,
    /// What the server did, or how it ended.
    server: String,
    /// Number of handlers that were left running.
    leaked: usize,
    /// Whether every check passed.
    kept: bool,
}

/// Prints each step with the time since the start.
struct Timeline {
    start: Instant,
}

impl Timeline {
    fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    fn say(&self, what: &str) {
        let millis = self.start.elapsed().as_secs_f64() * 1e3;
        output::print(&format!("  {millis:>6.0} ms  {what}"));
    }
}

/// `Err` if the scenario could not be run.
type Played = Result<Shown, stage::Failure>;

impl Demo {
    pub(crate) async fn run(self) -> Code {
        let interrupt = Interrupt::new();
        let children = Children::now();
        let mut playing = Box::pin(Self::play());
        tokio::select! {
            code = &mut playing => return code,
            () = interrupt.once() => {}
        }
        // Dropping it ends the servers it has started.
        let started = children.since();
        drop(playing);
        interrupt.waits_for(&started).await;
        exit::INTERRUPTED
    }

    async fn play() -> Code {
        let mut rows = Vec::new();
        let mut kept = true;
        for scenario in SCENARIOS {
            output::print(&format!("{} — {}", scenario.report, scenario.question));
            for wire in Wire::ALL {
                output::print(&format!(" {}", wire.name()));
                let played = (scenario.play)(wire);
                let shown = match tokio::time::timeout(Duration::from_secs(60), played).await {
                    Ok(Ok(shown)) => shown,
                    Ok(Err(error)) => failed(error.to_string()),
                    Err(_) => failed("did not end in 60 s".into()),
                };
                kept &= shown.kept;
                rows.push((scenario.name, wire.name(), shown));
            }
            output::print("");
        }
        table(&rows);
        match kept {
            true => {
                output::print("\nAll checks passed.");
                exit::OK
            }
            false => {
                output::print("\nSome checks failed.");
                exit::CHECK_FAILED
            }
        }
    }
}

fn failed(problem: String) -> Shown {
    Shown {
        caller: problem,
        server: "–".into(),
        leaked: 0,
        kept: false,
    }
}

fn table(rows: &[(&str, &str, Shown)]) {
    let cells: Vec<[String; 6]> = rows
        .iter()
        .map(|(name, wire, shown)| {
            [
                (*name).to_owned(),
                (*wire).to_owned(),
                shown.caller.clone(),
                shown.server.clone(),
                shown.leaked.to_string(),
                if shown.kept { "ok" } else { "FAILED" }.to_owned(),
            ]
        })
        .collect();
    let head = ["scenario", "wire", "caller's error", "server", "leaked", ""];
    let head = head.map(str::to_owned);
    let width = |column: usize| {
        let all = cells.iter().chain([&head]);
        all.map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    for row in [&head].into_iter().chain(&cells) {
        let line: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        output::print(line.join("  ").trim_end());
    }
}
