//! Which server to speak to.

use std::process::Command;
use std::time::{Duration, Instant};

use belay::Client;
use belay::engine::Mode;
use belay::types::Tool;
use clap::{Args, ValueEnum};
use tokio::time::timeout;

use crate::exit::Code;
use crate::output;

/// The server, and how to reach it.
#[derive(Args)]
pub(crate) struct Target {
    /// Give up after so many seconds without progress
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    timeout: Duration,
    /// Give up after so many seconds in all, the start of the server included
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    max_time: Duration,
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

/// A server that is there, and the time that is left.
pub(crate) struct Connected<'a> {
    pub(crate) client: Client,
    target: &'a Target,
    since: Instant,
}

impl Target {
    /// Connects. What stands in the way has been told.
    pub(crate) async fn connect(&self) -> Result<Connected<'_>, Code> {
        let since = Instant::now();
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
        let connecting = Client::builder("belay", env!("CARGO_PKG_VERSION"))
            .mode(mode)
            .spawn(command);
        match timeout(self.max_time, connecting).await {
            Ok(Ok(client)) => Ok(Connected {
                client,
                target: self,
                since,
            }),
            Ok(Err(error)) => Err(output::fail_to("connect", &error, self.json)),
            Err(_) => Err(output::out_of_time(
                self.max_time,
                "the server did not say hello",
                self.json,
            )),
        }
    }
}

impl Connected<'_> {
    /// All tools of the server. What stands in the way has been told.
    pub(crate) async fn tools(&self) -> Result<Vec<Tool>, Code> {
        let Target { max_time, json, .. } = self.target;
        match timeout(self.time_left(), self.client.list_all_tools()).await {
            Ok(Ok(tools)) => Ok(tools),
            Ok(Err(error)) => Err(output::fail(&error, *json)),
            Err(_) => {
                let what = "the server did not list its tools";
                Err(output::out_of_time(*max_time, what, *json))
            }
        }
    }

    /// A call with the deadlines of the command line.
    pub(crate) fn timed<T>(&self, call: belay::Call<T>) -> belay::Call<T> {
        call.idle_timeout(self.target.timeout)
            .timeout(self.time_left())
    }

    fn time_left(&self) -> Duration {
        self.target.max_time.saturating_sub(self.since.elapsed())
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let span = seconds.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    span.ok_or_else(|| "expected a number of seconds, such as 5 or 0.5".into())
}
