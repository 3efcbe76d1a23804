//! The options that name a server, and the connection to it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use belay::client::ClientBuilder;
use belay::client::Mode;
use belay::limits::Deadlines;
use belay::types::ToolDefinition;
use belay::{Client, Error};
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;
use tokio::time::timeout;

use crate::children::Children;
use crate::commands::completions::paths;
use crate::exit::Code;
use crate::interrupt::{Interrupt, interrupted};
use crate::known_servers::KnownServers;
use crate::output;
use crate::place::{Place, is_header};
use crate::progress::Bar;
use crate::questions::Questions;
use crate::trace::Trace;

/// The server, the connection to it, and the timeouts.
#[derive(Args)]
pub(crate) struct Target {
    /// Idle timeout in seconds; progress resets it
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    timeout: Duration,
    /// Total timeout in seconds, including the start of the server
    /// [default: 600; none for `listen`]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    max_time: Option<Duration>,
    /// Connection timeout in seconds, including the handshake
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    connect_timeout: Duration,
    /// Protocol era to use
    #[arg(long, value_enum, default_value_t = Era::Auto)]
    era: Era,
    /// Add an HTTP request header; can be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// Additional CA certificates (PEM)
    #[arg(long, value_name = "FILE", add = ArgValueCompleter::new(paths))]
    cacert: Option<PathBuf>,
    /// Set an environment variable for the server; can be repeated
    #[arg(short = 'e', long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// Working directory of the server
    #[arg(long, value_name = "FOLDER", add = ArgValueCompleter::new(paths))]
    cwd: Option<PathBuf>,
    /// Read this configuration file only
    #[arg(long, value_name = "FILE", add = ArgValueCompleter::new(paths))]
    config: Option<PathBuf>,
    /// Print results as protocol JSON to stdout, and errors as one line of JSON to stderr
    #[arg(long)]
    pub(crate) json: bool,
    /// Print protocol messages to stderr: `>` sent, `<` received
    #[arg(short, long)]
    verbose: bool,
    /// Write protocol messages to this file, one line of JSON for each message
    #[arg(long, value_name = "FILE", add = ArgValueCompleter::new(paths))]
    trace_file: Option<PathBuf>,
    /// Command that starts the server
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    /// Negotiate with the server
    Auto,
    /// Protocol revision 2025-11-25 or earlier
    Legacy,
    /// Protocol revision 2026-07-28
    Modern,
}

/// A connected server, and the start of the total timeout.
pub(crate) struct Connected<'a> {
    pub(crate) client: Client,
    target: &'a Target,
    since: Instant,
    questions: Arc<Questions>,
    pub(crate) bar: Bar,
}

impl Target {
    /// Whether the server is a command after `--`. If not, the first word is its name or URL.
    pub(crate) fn has_command(&self) -> bool {
        !self.command.is_empty()
    }

    /// The total timeout, or its default.
    pub(crate) fn max_time(&self) -> Duration {
        self.max_time.unwrap_or(Duration::from_secs(600))
    }

    /// The total timeout, if `--max-time` was given.
    pub(crate) fn max_time_given(&self) -> Option<Duration> {
        self.max_time
    }

    /// Connects to the named server or the command. An error has already been reported.
    pub(crate) async fn connect(
        &self,
        name: Option<&str>,
        interrupt: &Interrupt,
    ) -> Result<Connected<'_>, Code> {
        let since = Instant::now();
        let place = self.place(name);
        let place = place.map_err(|problem| output::usage(&problem, self.json))?;
        let digest = place.digest();
        let bar = Bar::new(self.json);
        let who = name.map_or_else(|| self.command.join(" "), str::to_owned);
        let questions = Arc::new(Questions::new(bar.clone(), self.json, who));
        let builder = self.builder(&questions)?;
        let client = self.opened(builder, place, interrupt).await?;
        if let (Some(known), Some(digest)) = (KnownServers::of_user(), digest) {
            // Only completion needs this, so an error is ignored.
            let _ = known.remember(&digest);
        }
        Ok(Connected {
            client,
            target: self,
            since,
            questions,
            bar,
        })
    }

    /// Opens a connection within the connection timeout, unless a signal arrives. On failure, a
    /// child that was started has ended when this returns.
    async fn opened(
        &self,
        builder: ClientBuilder,
        place: Place,
        interrupt: &Interrupt,
    ) -> Result<Client, Code> {
        let children = Children::now();
        let patience = self.connect_timeout.min(self.max_time());
        let mut opening = Box::pin(timeout(patience, self.open(builder, place)));
        let opened = tokio::select! {
            opened = &mut opening => opened,
            () = interrupt.once() => {
                let started = children.since();
                drop(opening);
                interrupt.waits_for(&started).await;
                return Err(interrupted(self.json));
            }
        };
        let code = match opened {
            Ok(Ok(client)) => return Ok(client),
            Ok(Err(error)) => output::fail_to("connect", &error, self.json),
            Err(_) => {
                let what = "no answer to the handshake";
                output::out_of_time(patience, what, self.json)
            }
        };
        let started = children.since();
        drop(opening);
        started.end().await;
        Err(code)
    }

    /// The tools of a server, for completion: reports no errors, writes no trace, and starts or
    /// connects to known servers only.
    pub(crate) async fn tools_if_known(&self, name: Option<&str>) -> Option<Vec<ToolDefinition>> {
        let place = self.place(name).ok()?;
        if !KnownServers::of_user()?.contains(&place.digest()?) {
            return None;
        }
        let builder = Client::builder("belay", env!("CARGO_PKG_VERSION"));
        let client = self.open(builder, place).await.ok()?;
        let tools = client.list_all_tools().await.ok();
        match client.pid() {
            Some(_) => client.kill().await,
            None => client.close().await,
        };
        tools
    }

    fn builder(&self, questions: &Arc<Questions>) -> Result<ClientBuilder, Code> {
        let mode = match self.era {
            Era::Auto => Mode::Auto,
            Era::Legacy => Mode::Legacy,
            Era::Modern => Mode::Modern,
        };
        let deadlines = Deadlines {
            idle: Some(self.timeout),
            total: Some(self.max_time()),
        };
        let mut builder = Client::builder("belay", env!("CARGO_PKG_VERSION"))
            .mode(mode)
            .deadlines(deadlines);
        let trace = Trace::open(self.verbose, self.trace_file.as_deref());
        let trace = trace.map_err(|problem| output::usage(&problem, self.json))?;
        if let Some(file) = &self.cacert {
            let read = std::fs::read(file);
            let read = read.map_err(|error| {
                output::usage(&format!("{}: {error}", file.display()), self.json)
            })?;
            builder = builder.trust(&read);
        }
        if let Some(trace) = trace {
            builder = builder.tap(move |way, frame| trace.frame(way, frame));
        }
        Ok(questions.clone().answer_for(builder))
    }

    async fn open(&self, mut builder: ClientBuilder, place: Place) -> Result<Client, Error> {
        match place {
            Place::Command { command, .. } => builder.spawn(*command).await,
            Place::Address { url, headers, .. } => {
                // Headers of the command line override those of the file.
                let said = |name: &str| {
                    let mut said = self.headers.iter();
                    said.any(|(known, _)| known.eq_ignore_ascii_case(name))
                };
                let configured = headers.iter().filter(|(name, _)| !said(name));
                for (name, value) in configured.chain(&self.headers) {
                    builder = builder.header(name, value);
                }
                let builder = builder.connect_timeout(self.connect_timeout);
                builder.http(&url).await
            }
        }
    }

    fn place(&self, name: Option<&str>) -> Result<Place, String> {
        let mut place = match (self.command.split_first(), name) {
            (Some((program, arguments)), _) => Place::command(program, arguments),
            (None, Some(name)) => Place::named(name, self.config.as_deref())?,
            (None, None) => return Err(which_server().into()),
        };
        let Place::Command { command, .. } = &mut place else {
            return match self.environment.is_empty() && self.cwd.is_none() {
                true => Ok(place),
                false => Err("-e and --cwd apply to a command, not to a URL".into()),
            };
        };
        if !self.headers.is_empty() {
            return Err("-H applies to a URL, not to a command".into());
        }
        command.envs(self.environment.iter().map(|(key, value)| (key, value)));
        if let Some(folder) = &self.cwd {
            command.current_dir(folder);
        }
        Ok(place)
    }
}

/// The usage error for a command line without a server.
pub(crate) fn which_server() -> &'static str {
    "no server given: write its URL or a name from `belay servers` first, or its command after `--`"
}

impl Connected<'_> {
    /// All tools of the server. An error has already been reported.
    pub(crate) async fn tools(&self) -> Result<Vec<ToolDefinition>, Code> {
        self.listed("tools", self.client.list_all_tools()).await
    }

    /// Awaits a listing within the total timeout. An error has already been reported.
    pub(crate) async fn listed<T>(
        &self,
        what: &str,
        listing: impl Future<Output = Result<Vec<T>, belay::Error>>,
    ) -> Result<Vec<T>, Code> {
        let json = self.target.json;
        match timeout(self.time_left(), listing).await {
            Ok(Ok(listed)) => Ok(listed),
            Ok(Err(error)) if output::is_unknown(&error) && !json => {
                output::tell(&format!("belay: this server has no {what}"));
                Err(Code::of(&error))
            }
            Ok(Err(error)) => Err(output::fail(&error, json)),
            Err(_) => {
                let what = format!("the server did not list its {what}");
                Err(output::out_of_time(self.target.max_time(), &what, json))
            }
        }
    }

    /// Adds the timeouts of the command line to a call.
    pub(crate) fn timed<T>(&self, call: belay::Call<T>) -> belay::Call<T> {
        call.idle_timeout(self.target.timeout)
            .timeout(self.time_left())
    }

    /// Whether the server asked for input and the user could not be asked.
    pub(crate) fn nobody_to_ask(&self) -> bool {
        self.questions.nobody_to_ask()
    }

    pub(crate) fn time_left(&self) -> Duration {
        self.target.max_time().saturating_sub(self.since.elapsed())
    }

    /// Whether `--json` was given.
    pub(crate) fn json(&self) -> bool {
        self.target.json
    }
}

/// Whether stdin and stderr are terminals, so that the user can be asked.
pub(crate) fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok();
    let span = seconds.and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    span.ok_or_else(|| "expected a number of seconds, such as 5 or 0.5".into())
}

/// Parses `Name: value`, as in curl.
fn header(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(':').ok_or("expected NAME: VALUE")?;
    let (name, value) = (pair.0.trim(), pair.1.trim());
    if !is_header(name, value) {
        return Err("not a valid HTTP header".into());
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("expected KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
