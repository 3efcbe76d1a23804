//! Which server to speak to.

use std::process::Command;
use std::time::Duration;

use belay::engine::Mode;
use belay::{Client, Error};
use clap::{Args, ValueEnum};

/// The server, and how to reach it.
#[derive(Args)]
pub(crate) struct Target {
    /// Give up after so many seconds without progress
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    pub(crate) timeout: f64,
    /// Give up after so many seconds in all
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    pub(crate) max_time: f64,
    /// Which era of the protocol to speak
    #[arg(long, value_enum, default_value_t = Era::Auto)]
    era: Era,
    /// Print JSON of the protocol's shape, and failures as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The command that starts the server
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    /// The server decides
    Auto,
    /// 2025-11-25 and earlier
    Legacy,
    /// 2026-07-28
    Modern,
}

impl Target {
    pub(crate) async fn connect(&self) -> Result<Client, Error> {
        let mode = match self.era {
            Era::Auto => Mode::Auto,
            Era::Legacy => Mode::Legacy,
            Era::Modern => Mode::Modern,
        };
        let (program, arguments) = match self.command.split_first() {
            Some((program, arguments)) => (program.as_str(), arguments),
            None => ("", &[][..]),
        };
        let mut command = Command::new(program);
        command.args(arguments);
        Client::builder("belay", env!("CARGO_PKG_VERSION"))
            .mode(mode)
            .spawn(command)
            .await
    }

    pub(crate) fn idle(&self) -> Duration {
        seconds(self.timeout)
    }

    pub(crate) fn total(&self) -> Duration {
        seconds(self.max_time)
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
