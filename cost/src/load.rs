//! Runs one process with a number of calls, and reads its cost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

use crate::counts::Counts;
use crate::scenario::{Scenario, Side, Who, Wire};
use belay_cost::messages::{Era, INITIALIZE, INITIALIZED, call};

/// The number of calls in flight on a pipe.
pub(crate) const IN_FLIGHT: usize = 32;

/// The cost of one process.
pub(crate) struct Cost {
    pub(crate) counts: Counts,
    /// Counted only under callgrind.
    pub(crate) instructions: u64,
}

impl Scenario {
    /// Runs a process with this many calls, under a valgrind tool if one is named.
    pub(crate) fn run(&self, who: Who, calls: usize, tool: Option<&str>) -> Cost {
        let calls_text = calls.to_string();
        let (wire, era) = (self.wire.name(), self.era.name());
        let arguments = match self.side {
            Side::Server => vec!["serve", wire, who.name()],
            Side::Client => vec!["call", wire, era, who.name(), &calls_text],
        };
        let mut child = start(&arguments, tool);
        // Read on another thread, so that a process that prints much does not block.
        let mut stderr = child.stderr.take().expect("a pipe");
        let said = thread::spawn(move || {
            let mut said = String::new();
            stderr.read_to_string(&mut said).map(|_| said)
        });
        let input = child.stdin.take().expect("a pipe");
        if self.side == Side::Server {
            self.load(&mut child, input, calls);
        }
        let status = child.wait().expect("an exit");
        let said = said.join().expect("no panic").expect("text");
        let counts = Counts::read(&said).filter(|_| status.success());
        Cost {
            counts: counts.unwrap_or_else(|| panic!("{arguments:?} failed, {status}:\n{said}")),
            instructions: instructions(&said).unwrap_or(0),
        }
    }

    fn load(&self, child: &mut Child, input: ChildStdin, calls: usize) {
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        match self.wire {
            Wire::Stdio => load_stdio(input, output, self.era, calls),
            Wire::Http | Wire::HttpEvents => {
                let tool = if self.wire == Wire::Http {
                    "echo"
                } else {
                    "count"
                };
                load_http(output, self.era, tool, calls);
                // The server runs until the end of its input.
                drop(input);
            }
        }
    }
}

/// Starts this program again with these arguments.
pub(crate) fn start(arguments: &[&str], tool: Option<&str>) -> Child {
    let itself = std::env::current_exe().expect("ourselves");
    let mut command = match tool {
        None => Command::new(itself),
        Some(tool) => {
            let mut command = Command::new("valgrind");
            command.arg(format!("--tool={tool}"));
            let kept = std::env::var("COST_PROFILE").ok();
            let file = kept.as_deref().unwrap_or("/dev/null");
            command
                .arg(format!("--callgrind-out-file={file}"))
                .arg(itself);
            command
        }
    };
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process (is valgrind installed?)")
}

/// Parses the last line of callgrind: `==1== Collected : 123`.
fn instructions(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn load_stdio(mut input: ChildStdin, mut output: impl BufRead, era: Era, calls: usize) {
    let mut line = String::new();
    if era == Era::Legacy {
        writeln!(input, "{INITIALIZE}").expect("a reader");
        output.read_line(&mut line).expect("an answer");
        writeln!(input, "{INITIALIZED}").expect("a reader");
    }
    for first in (0..calls).step_by(IN_FLIGHT) {
        let ids = first..calls.min(first + IN_FLIGHT);
        let requests: String = ids.clone().map(|id| call(id, era, "echo") + "\n").collect();
        input.write_all(requests.as_bytes()).expect("a reader");
        for _ in ids {
            line.clear();
            output.read_line(&mut line).expect("an answer");
            assert!(line.contains("sixty-four"), "{line}");
        }
    }
}

fn load_http(mut output: impl BufRead, era: Era, tool: &str, calls: usize) {
    let mut address = String::new();
    output.read_line(&mut address).expect("an address");
    let stream = TcpStream::connect(address.trim()).expect("a server");
    stream.set_nodelay(true).expect("a socket");
    let mut stream = BufReader::new(stream);
    let mut headers = match era {
        Era::Modern => format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        ),
        Era::Legacy => {
            let (head, _) = post(&mut stream, "", INITIALIZE);
            let session = head.lines().find(|line| line.starts_with("mcp-session-id"));
            let session = session.map_or(String::new(), |session| format!("{session}\r\n"));
            format!("MCP-Protocol-Version: 2025-11-25\r\n{session}")
        }
    };
    if era == Era::Legacy {
        post(&mut stream, &headers, INITIALIZED);
    }
    headers.push_str("X-Cost: 1\r\n");
    for id in 0..calls {
        let (head, body) = post(&mut stream, &headers, &call(id, era, tool));
        assert!(body.contains("sixty-four"), "{head}{body}");
    }
}

/// Sends one POST, and returns the head and the body of the response.
fn post(stream: &mut BufReader<TcpStream>, headers: &str, body: &str) -> (String, String) {
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream
        .get_mut()
        .write_all(request.as_bytes())
        .expect("a reader");
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = stream.read_line(&mut head).expect("a head");
        assert!(read > 0, "it hung up: {head}");
    }
    let head = head.to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = Vec::new();
    match length {
        Some(length) => {
            body.resize(length.parse().expect("a length"), 0);
            stream.read_exact(&mut body).expect("a body");
        }
        None if head.contains("transfer-encoding: chunked") => read_chunks(stream, &mut body),
        None => {}
    }
    (head, String::from_utf8(body).expect("text"))
}

fn read_chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) {
    let mut line = String::new();
    loop {
        line.clear();
        stream.read_line(&mut line).expect("a chunk");
        let size = usize::from_str_radix(line.trim(), 16).expect("a size");
        let start = body.len();
        body.resize(start + size + 2, 0);
        stream.read_exact(&mut body[start..]).expect("a chunk");
        body.truncate(start + size);
        if size == 0 {
            return;
        }
    }
}
