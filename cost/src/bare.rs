//! The floor of a client: it writes bytes, and parses the answers with `serde_json`.

use std::io::{BufRead, Write};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use crate::messages::{Era, TEXT, call};

/// Makes this many calls on a pipe, a window of them at a time.
pub fn calls_on_pipe(
    mut input: impl Write,
    mut output: impl BufRead,
    era: Era,
    calls: usize,
    window: usize,
) {
    let mut line = String::new();
    for first in (0..calls).step_by(window) {
        let ids = first..calls.min(first + window);
        for id in ids.clone() {
            writeln!(input, "{}", call(id, era, "echo")).expect("a reader");
        }
        for _ in ids {
            line.clear();
            output.read_line(&mut line).expect("an answer");
            check(line.as_bytes());
        }
    }
}

/// A hyper connection on which requests are sent one after the other.
#[derive(Debug)]
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    address: String,
    era: Era,
    last_id: usize,
}

impl Connection {
    /// Connects. Must be called within a tokio runtime.
    pub async fn open(address: &str, era: Era) -> Self {
        let stream = TcpStream::connect(address).await.expect("a server");
        stream.set_nodelay(true).expect("a socket");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("a connection");
        tokio::spawn(connection);
        Self {
            sender,
            address: address.to_owned(),
            era,
            last_id: 0,
        }
    }

    /// Makes one call and waits for its answer.
    pub async fn call(&mut self) {
        self.last_id += 1;
        let body = Full::new(Bytes::from(call(self.last_id, self.era, "echo")));
        let post = Request::post("/mcp")
            .header("host", &self.address)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body)
            .expect("a request");
        self.sender.ready().await.expect("a connection");
        let response = self.sender.send_request(post).await.expect("a response");
        let body = response.into_body().collect().await.expect("a body");
        check(&body.to_bytes());
    }
}

#[derive(Deserialize)]
struct Answer {
    result: CallResult,
}

#[derive(Deserialize)]
struct CallResult {
    content: Vec<Content>,
}

#[derive(Deserialize)]
struct Content {
    text: String,
}

fn check(answer: &[u8]) {
    let answer: Answer = serde_json::from_slice(answer).expect("JSON");
    assert_eq!(answer.result.content[0].text, TEXT);
}
