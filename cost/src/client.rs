//! The clients that are measured, against the floor's server.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use belay::engine::Mode;
use belay::{Client, Error};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpStream;

use crate::counts::Counts;
use crate::load::{IN_FLIGHT, start};
use crate::scenario::{Era, TEXT, Who, Wire, call as request};
use crate::server::runtime;

/// Makes so many calls, and reports what they have cost.
pub(crate) fn call(wire: Wire, era: Era, who: Who, calls: usize) {
    match (wire, who) {
        (Wire::Stdio, Who::Floor) => floor_stdio(era, calls),
        (Wire::Stdio, Who::Belay) => runtime().block_on(async {
            let mut server = Command::new(std::env::current_exe().expect("ourselves"));
            server
                .args(["serve", "stdio", "floor"])
                .stderr(Stdio::null());
            let client = Client::builder("cost", "1")
                .mode(mode(era))
                .spawn(server)
                .await;
            belay_calls(client, calls, IN_FLIGHT).await;
        }),
        _ => {
            let mut server = start(&["serve", "http", "floor"], None);
            let mut address = String::new();
            let output = server.stdout.take().expect("a pipe");
            BufReader::new(output)
                .read_line(&mut address)
                .expect("an address");
            let address = address.trim();
            runtime().block_on(async {
                match who {
                    Who::Floor => floor_http(address, era, calls).await,
                    Who::Belay => {
                        let builder = Client::builder("cost", "1").mode(mode(era));
                        let client = builder.http(&format!("http://{address}/mcp")).await;
                        // One after the other: each call in flight has a connection of its own.
                        belay_calls(client, calls, 1).await;
                    }
                }
            });
            drop(server.stdin.take());
            server.wait().expect("an exit");
        }
    }
    Counts::report();
}

fn mode(era: Era) -> Mode {
    match era {
        Era::Legacy => Mode::Legacy,
        Era::Modern => Mode::Modern,
    }
}

async fn belay_calls(client: Result<Client, Error>, calls: usize, in_flight: usize) {
    let client = client.expect("a server");
    for first in (0..calls).step_by(in_flight) {
        let started: Vec<_> = (first..calls.min(first + in_flight))
            .map(|_| client.call_tool("echo", json!({ "text": TEXT })).start())
            .collect();
        for call in started {
            let result = call.await.expect("an answer");
            assert_eq!(result.content[0].as_text(), Some(TEXT));
        }
    }
    client.close().await;
}

/// Lines down a pipe, and lines back.
fn floor_stdio(era: Era, calls: usize) {
    let mut server = start(&["serve", "stdio", "floor"], None);
    let mut input = server.stdin.take().expect("a pipe");
    let mut output = BufReader::new(server.stdout.take().expect("a pipe"));
    let mut line = String::new();
    for first in (0..calls).step_by(IN_FLIGHT) {
        let ids = first..calls.min(first + IN_FLIGHT);
        for id in ids.clone() {
            writeln!(input, "{}", request(id, era, "echo")).expect("a reader");
        }
        for _ in ids {
            line.clear();
            output.read_line(&mut line).expect("an answer");
            check(line.as_bytes());
        }
    }
    drop(input);
    server.wait().expect("an exit");
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

/// One connection of hyper's, and one request after the other.
async fn floor_http(address: &str, era: Era, calls: usize) {
    let stream = TcpStream::connect(address).await.expect("a server");
    stream.set_nodelay(true).expect("a socket");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("a connection");
    tokio::spawn(connection);
    for id in 0..calls {
        let body = Full::new(Bytes::from(request(id, era, "echo")));
        let post = Request::post("/mcp")
            .header("host", address)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body)
            .expect("a request");
        sender.ready().await.expect("a connection");
        let response = sender.send_request(post).await.expect("a response");
        check(
            &response
                .into_body()
                .collect()
                .await
                .expect("a body")
                .to_bytes(),
        );
    }
}
