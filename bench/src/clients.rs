//! The clients, each in a process of its own. They call for as long as the bench tells them to.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command};
use std::time::{Duration, Instant};

use belay::client::Mode;
use belay_cost::bare;
use belay_cost::messages::{Era, TEXT};
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::json;

use crate::Who;
use crate::measure::Subject;
use crate::process::Process;
use crate::raw::listening;
use crate::servers::runtime;

/// The number of calls in flight on a pipe.
const WINDOW: usize = 32;
/// The number of calls in flight on HTTP, where each has a connection.
const CONNECTIONS: usize = 8;

/// A client in its own process.
pub(crate) struct Client {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    /// Starts a client with this many threads, and with `beside` other calls in flight that are
    /// never answered.
    pub(crate) fn start(wire: &str, era: Era, who: Who, beside: usize, threads: usize) -> Self {
        let (beside, threads) = (beside.to_string(), threads.to_string());
        let mut process =
            Process::start(&["call", wire, era.name(), who.name(), &beside, &threads]);
        Self {
            input: process.0.stdin.take().expect("a pipe"),
            output: BufReader::new(process.0.stdout.take().expect("a pipe")),
            process,
        }
    }
}

impl Subject for Client {
    fn process(&self) -> &Process {
        &self.process
    }

    fn answers(&mut self, span: Duration) -> u64 {
        writeln!(self.input, "{}", span.as_millis()).expect("a reader");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        line.trim().parse().expect("a number")
    }
}

/// Runs the client process: for each number on its input it calls for this many milliseconds, and
/// prints how many answers there were.
pub(crate) fn run(wire: &str, era: Era, who: Who, beside: usize, threads: usize) {
    if wire == "stdio" && who == Who::Floor {
        return bare_pipe(era);
    }
    runtime(threads).block_on(async {
        match (who, wire) {
            (Who::Floor, _) => bare_http(era).await,
            (Who::Belay, _) => belay(wire, era, beside).await,
            _ => rmcp(wire, era).await,
        }
    });
}

fn told() -> Option<Duration> {
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).expect("a pipe");
    let millis = (read > 0).then(|| line.trim().parse().expect("a number"));
    millis.map(Duration::from_millis)
}

fn say(answers: u64) {
    println!("{answers}");
}

fn bare_pipe(era: Era) {
    let mut server = Process::start(&["serve", "stdio", "floor"]);
    let mut input = server.0.stdin.take().expect("a pipe");
    let mut output = BufReader::new(server.0.stdout.take().expect("a pipe"));
    while let Some(span) = told() {
        let (begun, mut answers) = (Instant::now(), 0);
        while begun.elapsed() < span {
            bare::calls_on_pipe(&mut input, &mut output, era, WINDOW, WINDOW);
            answers += WINDOW as u64;
        }
        say(answers);
    }
}

async fn bare_http(era: Era) {
    let (_server, address) = listening(Who::Floor);
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(bare::Connection::open(&address, era).await);
    }
    while let Some(span) = told() {
        let begun = Instant::now();
        let calling = connections.drain(..).map(|mut connection| {
            tokio::spawn(async move {
                let mut answers = 0;
                while begun.elapsed() < span {
                    connection.call().await;
                    answers += 1;
                }
                (connection, answers)
            })
        });
        let calling: Vec<_> = calling.collect();
        let mut answers = 0;
        for calling in calling {
            let (connection, more) = calling.await.expect("no panic");
            connections.push(connection);
            answers += more;
        }
        say(answers);
    }
}

fn itself() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("ourselves"));
    command.args(["serve", "stdio", "floor"]);
    command
}

async fn belay(wire: &str, era: Era, beside: usize) {
    let mode = match era {
        Era::Legacy => Mode::Legacy,
        Era::Modern => Mode::Modern,
    };
    let builder = belay::Client::builder("bench", "1").mode(mode).limits(|limits| {
        limits.calls = 1 << 20;
    });
    let (client, _server) = match wire {
        "stdio" => (builder.spawn(itself()).await, None),
        _ => {
            let (server, address) = listening(Who::Floor);
            let client = builder.http(&format!("http://{address}/mcp")).await;
            (client, Some(server))
        }
    };
    let client = client.expect("a server");
    let hang = || client.call_tool("hang", json!({ "text": TEXT })).no_timeout().start();
    let _hanging: Vec<_> = (0..beside).map(|_| hang()).collect();
    if beside > 0 {
        // Wait until all of them were sent.
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let at_once = at_once(wire);
    while let Some(span) = told() {
        let begun = Instant::now();
        let calling = (0..at_once).map(|_| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut answers = 0;
                while begun.elapsed() < span {
                    let call = client.call_tool("echo", json!({ "text": TEXT }));
                    call.await.expect("an answer");
                    answers += 1;
                }
                answers
            })
        });
        say(sum(calling.collect()).await);
    }
}

fn at_once(wire: &str) -> usize {
    match wire {
        "stdio" => WINDOW,
        _ => CONNECTIONS,
    }
}

async fn sum(calling: Vec<tokio::task::JoinHandle<u64>>) -> u64 {
    let mut answers = 0;
    for calling in calling {
        answers += calling.await.expect("no panic");
    }
    answers
}

async fn rmcp(wire: &str, era: Era) {
    let lifecycle = match era {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    };
    let (client, _server) = match wire {
        "stdio" => {
            let child = tokio::process::Command::from(itself());
            let transport = TokioChildProcess::new(child).expect("a process");
            (().serve_with_lifecycle(transport, lifecycle).await, None)
        }
        _ => {
            let (server, address) = listening(Who::Floor);
            let transport = StreamableHttpClientTransport::from_uri(format!("http://{address}/mcp"));
            (().serve_with_lifecycle(transport, lifecycle).await, Some(server))
        }
    };
    let client = client.expect("a server");
    let at_once = at_once(wire);
    let arguments = json!({ "text": TEXT });
    let arguments = arguments.as_object().cloned().expect("an object");
    while let Some(span) = told() {
        let begun = Instant::now();
        let calling = (0..at_once).map(|_| {
            let (peer, arguments) = (client.peer().clone(), arguments.clone());
            tokio::spawn(async move {
                let mut answers = 0;
                while begun.elapsed() < span {
                    let params = CallToolRequestParams::new("echo").with_arguments(arguments.clone());
                    peer.call_tool(params).await.expect("an answer");
                    answers += 1;
                }
                answers
            })
        });
        say(sum(calling.collect()).await);
    }
}
