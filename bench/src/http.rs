//! POSTs on a few connections, one after the other on each.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::load::{Round, spent};
use crate::{Era, Who};

fn connections() -> usize {
    std::env::var("BENCH_CONNECTIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(8)
}

pub(crate) struct Server {
    child: Child,
    connections: Vec<Connection>,
}

struct Connection {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
}

impl Server {
    pub(crate) fn start(who: Who, era: Era) -> Self {
        let itself = std::env::current_exe().expect("ourselves");
        let mut child = Command::new(itself)
            .args(["serve", "http", who.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut address = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut address).expect("an address");
        let connections = (0..connections()).map(|_| Connection::open(address.trim(), era));
        Self {
            child,
            connections: connections.collect(),
        }
    }

    pub(crate) fn load(&mut self, span: Duration) -> Round {
        let (begun, before) = (Instant::now(), spent(self.child.id()));
        let answers = std::thread::scope(|scope| {
            let loads: Vec<_> = self
                .connections
                .iter_mut()
                .map(|connection| scope.spawn(move || connection.load(begun, span)))
                .collect();
            loads.into_iter().map(|load| load.join().expect("no panic")).sum()
        });
        Round {
            answers,
            span: begun.elapsed(),
            spent: spent(self.child.id()) - before,
        }
    }
}

impl Connection {
    fn open(address: &str, era: Era) -> Self {
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_nodelay(true).expect("a socket");
        let mut connection = Self {
            stream: BufReader::with_capacity(1 << 16, stream),
            request: Vec::new(),
        };
        let mut headers = match era {
            Era::Modern => "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n".to_owned(),
            Era::Legacy => String::new(),
        };
        if era == Era::Legacy {
            connection.request = post(&headers, crate::servers::INITIALIZE);
            let head = connection.ask();
            headers = "MCP-Protocol-Version: 2025-11-25\r\n".to_owned();
            let session = head.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id"));
            if let Some(session) = session {
                headers.push_str(&format!("{session}\r\n"));
            }
            connection.request = post(&headers, crate::servers::INITIALIZED);
            connection.ask();
        }
        connection.request = post(&headers, &crate::servers::echo(era));
        connection
    }

    fn load(&mut self, begun: Instant, span: Duration) -> u64 {
        let mut answers = 0;
        while begun.elapsed() < span {
            self.ask();
            answers += 1;
        }
        answers
    }

    /// Sends the request and reads all of its answer; gives its head.
    fn ask(&mut self) -> String {
        self.stream.get_mut().write_all(&self.request).expect("a reader");
        let mut head = String::new();
        let mut length = None;
        loop {
            let start = head.len();
            self.stream.read_line(&mut head).expect("a head");
            let line = head[start..].trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse::<usize>().ok();
            }
        }
        assert!(head.starts_with("HTTP/1.1 20"), "{head}");
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        match length {
            Some(length) => {
                let mut body = vec![0; length];
                self.stream.read_exact(&mut body).expect("a body");
            }
            None if chunked => self.read_chunks(),
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
