//! Loads servers with requests that were encoded before.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use belay_cost::messages::{Era, INITIALIZE, INITIALIZED, call};

use crate::Who;
use crate::measure::Subject;
use crate::process::Process;

/// The number of connections for POSTs.
const CONNECTIONS: usize = 8;

/// The first id of requests that are never answered.
const HANGING: usize = 1_000_000;

/// A server on stdio.
pub(crate) struct Pipe {
    process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: Vec<u8>,
    window: usize,
}

impl Pipe {
    /// Starts a server. The load is this many requests at a time.
    pub(crate) fn start(who: Who, era: Era, window: usize) -> Self {
        let mut process = Process::start(&["serve", "stdio", who.name()]);
        let mut input = process.0.stdin.take().expect("a pipe");
        let stdout = process.0.stdout.take().expect("a pipe");
        let mut output = BufReader::with_capacity(1 << 16, stdout);
        if era == Era::Legacy {
            writeln!(input, "{INITIALIZE}").expect("a reader");
            output.read_line(&mut String::new()).expect("an answer");
            writeln!(input, "{INITIALIZED}").expect("a reader");
        }
        // Ids of requests in flight must differ.
        let requests = (1..=window).map(|id| call(id, era, "echo") + "\n");
        Self {
            process,
            input,
            output,
            requests: requests.collect::<String>().into_bytes(),
            window,
        }
    }

    /// Sends this many calls that are never answered.
    pub(crate) fn hang(&mut self, era: Era, calls: usize) {
        for id in 0..calls {
            writeln!(self.input, "{}", call(HANGING + id, era, "hang")).expect("a reader");
        }
    }
}

impl Subject for Pipe {
    fn process(&self) -> &Process {
        &self.process
    }

    fn answers(&mut self, span: Duration) -> u64 {
        let (begun, mut answers) = (Instant::now(), 0);
        let mut line = Vec::new();
        while begun.elapsed() < span {
            self.input.write_all(&self.requests).expect("a reader");
            for _ in 0..self.window {
                line.clear();
                self.output.read_until(b'\n', &mut line).expect("an answer");
                assert!(!line.is_empty(), "it has ended");
                answers += 1;
            }
        }
        answers
    }
}

/// A server on HTTP.
pub(crate) struct Http {
    process: Process,
    connections: Vec<Connection>,
}

impl Http {
    pub(crate) fn start(who: Who, era: Era, tool: &str) -> Self {
        let (process, address) = listening(who);
        let connections = (0..CONNECTIONS).map(|_| {
            let mut connection = Connection::open(&address);
            let headers = match era {
                Era::Modern => modern(tool),
                Era::Legacy => connection.begin_session(),
            };
            connection.request = post(&headers, &call(1, era, tool));
            connection
        });
        Self {
            connections: connections.collect(),
            process,
        }
    }
}

/// Starts a server on HTTP, and returns its address.
pub(crate) fn listening(who: Who) -> (Process, String) {
    let mut process = Process::start(&["serve", "http", who.name()]);
    let mut address = String::new();
    let stdout = process.0.stdout.take().expect("a pipe");
    let read = BufReader::new(stdout).read_line(&mut address);
    read.expect("an address");
    (process, address.trim().to_owned())
}

fn modern(tool: &str) -> String {
    format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n")
}

impl Subject for Http {
    fn process(&self) -> &Process {
        &self.process
    }

    fn answers(&mut self, span: Duration) -> u64 {
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let connections = self.connections.iter_mut();
            let loads = connections.map(|one| scope.spawn(move || one.load(begun, span)));
            let loads: Vec<_> = loads.collect();
            loads.into_iter().map(|load| load.join().expect("no panic")).sum()
        })
    }
}

/// A connection on which requests are sent one after the other.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_nodelay(true).expect("a socket");
        Self {
            stream: BufReader::with_capacity(1 << 16, stream),
            request: Vec::new(),
        }
    }

    /// Opens a legacy session, and returns the headers that name it.
    pub(crate) fn begin_session(&mut self) -> String {
        self.request = post("", INITIALIZE);
        let head = self.ask().to_ascii_lowercase();
        let session = head.lines().find(|line| line.starts_with("mcp-session-id"));
        let mut headers = "MCP-Protocol-Version: 2025-11-25\r\n".to_owned();
        if let Some(session) = session {
            headers.push_str(&format!("{session}\r\n"));
        }
        self.request = post(&headers, INITIALIZED);
        self.ask();
        headers
    }

    fn load(&mut self, begun: Instant, span: Duration) -> u64 {
        let mut answers = 0;
        while begun.elapsed() < span {
            self.ask();
            answers += 1;
        }
        answers
    }

    /// Sends the request, reads the whole response, and returns its head.
    fn ask(&mut self) -> String {
        self.stream.get_mut().write_all(&self.request).expect("a reader");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.stream.read_line(&mut head).expect("a head");
            assert!(read > 0, "it hung up: {head}");
        }
        assert!(head.starts_with("HTTP/1.1 20"), "{head}");
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
        match length {
            Some(length) => {
                let mut body = vec![0; length.parse().expect("a length")];
                self.stream.read_exact(&mut body).expect("a body");
            }
            None if lower.contains("transfer-encoding: chunked") => self.read_chunks(),
            None => {}
        }
        head
    }

    fn read_chunks(&mut self) {
        let mut line = String::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("a chunk");
            let size = usize::from_str_radix(line.trim(), 16).expect("a size");
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).expect("a chunk");
            if size == 0 {
                return;
            }
        }
    }
}

fn post(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
