//! Calls that are given up where everything the client says is a POST: no POST carries another's
//! bytes, no cancel is lost, and none overtakes its request.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use belay::Client;
use belay::client::Mode;
use belay_testkit::until;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;

/// A server that the test plays, on legacy HTTP or on an event stream. It closes each connection
/// after one POST, so that every POST has to connect first.
#[derive(Clone)]
struct Played {
    wire: Wire,
    address: SocketAddr,
    posted: Arc<Mutex<Vec<Posted>>>,
    events: broadcast::Sender<String>,
    /// Takes this long to take note of a call.
    slow: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wire {
    Http,
    EventStream,
}

/// What was posted, in the order in which the server took note of it.
#[derive(Clone, Debug)]
enum Posted {
    Whole(Value),
    /// The connection ended before the length that was named.
    Torn(String),
}

impl Played {
    async fn new(wire: Wire, slow: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let played = Self {
            wire,
            address: listener.local_addr().unwrap(),
            posted: Arc::default(),
            events: broadcast::channel(10_000).0,
            slow,
        };
        let server = played.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        played
    }

    async fn client(&self) -> Client {
        let url = format!("http://{}/mcp", self.address);
        let builder = Client::builder("test", "1").mode(Mode::Legacy);
        builder.http(&url).await.unwrap()
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut read = Vec::new();
        let end = loop {
            if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut read).await.ok()? == 0 {
                return None;
            }
        };
        let head = String::from_utf8(read[..end].to_vec())
            .unwrap()
            .to_lowercase();
        if head.starts_with("get") {
            return self.open_stream(stream).await;
        }
        if !head.starts_with("post") || (self.wire == Wire::EventStream && head.contains("/mcp")) {
            return say(&mut stream, "405 No", "text/plain", "").await;
        }
        let length = head.split("content-length: ").nth(1)?;
        let length: usize = length.split("\r\n").next()?.parse().unwrap();
        while read.len() < end + length {
            if stream.read_buf(&mut read).await.ok()? == 0 {
                let torn = String::from_utf8_lossy(&read[end..]).into_owned();
                self.note(Posted::Torn(torn));
                return None;
            }
        }
        match serde_json::from_slice(&read[end..end + length]) {
            Ok(message) => self.take(stream, message).await,
            Err(_) => {
                let torn = String::from_utf8_lossy(&read[end..]).into_owned();
                self.note(Posted::Torn(torn));
                None
            }
        }
    }

    async fn open_stream(&self, mut stream: TcpStream) -> Option<()> {
        if self.wire == Wire::Http {
            return say(&mut stream, "405 No", "text/plain", "").await;
        }
        let mut events = self.events.subscribe();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\
                    event: endpoint\ndata: /messages\n\n";
        stream.write_all(head.as_bytes()).await.ok()?;
        loop {
            let event = format!("data: {}\n\n", events.recv().await.ok()?);
            stream.write_all(event.as_bytes()).await.ok()?;
        }
    }

    /// Takes note of a message, and answers it, unless it is a `hang`.
    async fn take(&self, mut stream: TcpStream, message: Value) -> Option<()> {
        if message["method"] == "tools/call" {
            tokio::time::sleep(self.slow).await;
        }
        self.note(Posted::Whole(message.clone()));
        if message["params"]["name"] == "overloaded" {
            let error = json!({ "code": -31001, "message": "overloaded" });
            let body = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
            let body = body.to_string();
            return say(&mut stream, "429 Later", "application/json", &body).await;
        }
        let answer = match message["method"].as_str()? {
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "serverInfo": { "name": "played", "version": "1" }
            }),
            "tools/call" if message["params"]["name"] == "hang" => Value::Null,
            "tools/list" => json!({ "tools": [] }),
            _ => json!({ "content": [] }),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer });
        let answered = message.get("id").is_some() && !answer["result"].is_null();
        match (self.wire, answered, message.get("id").is_some()) {
            (Wire::Http, true, _) => {
                say(
                    &mut stream,
                    "200 OK",
                    "application/json",
                    &answer.to_string(),
                )
                .await
            }
            (Wire::Http, false, true) => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                stream.write_all(head.as_bytes()).await.ok()?;
                // Until the client goes.
                let _ = stream.read(&mut [0]).await;
                None
            }
            _ => {
                say(&mut stream, "202 Accepted", "text/plain", "").await?;
                if answered {
                    let _ = self.events.send(answer.to_string());
                }
                None
            }
        }
    }

    fn note(&self, posted: Posted) {
        self.posted.lock().unwrap().push(posted);
    }

    fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    /// The ids of the calls it has, and of those that were cancelled.
    fn calls_and_cancels(&self) -> (HashSet<i64>, HashSet<i64>) {
        let (mut calls, mut cancels) = (HashSet::new(), HashSet::new());
        for posted in self.posted() {
            let Posted::Whole(message) = posted else {
                continue;
            };
            match message["method"].as_str() {
                Some("tools/call") => calls.insert(message["id"].as_i64().unwrap()),
                Some("notifications/cancelled") => {
                    let id = message["params"]["requestId"].as_i64().unwrap();
                    assert!(cancels.insert(id), "{id} is cancelled twice");
                    assert!(
                        calls.contains(&id),
                        "the cancel of {id} came before its call"
                    );
                    true
                }
                _ => true,
            };
        }
        (calls, cancels)
    }
}

async fn say(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> Option<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).await.ok()
}

#[tokio::test]
async fn smallest_scope_a_call_that_is_given_up_takes_nothing_of_another() {
    for wire in [Wire::Http, Wire::EventStream] {
        let server = Played::new(wire, Duration::ZERO).await;
        let client = server.client().await;
        for round in 0..200 {
            let long = "x".repeat(100 * (round % 3));
            let given_up = client.call_tool("hang", json!({ "text": long })).start();
            let kept = client.call_tool("echo", json!({ "round": round })).start();
            // Before it is posted, while it connects, or after it has.
            for _ in 0..round % 20 {
                tokio::task::yield_now().await;
            }
            drop(given_up);
            kept.await
                .unwrap_or_else(|error| panic!("{wire:?}: {error:?}"));
        }
        for posted in server.posted() {
            if let Posted::Torn(torn) = posted {
                panic!("{wire:?}: a POST was cut off: {torn}");
            }
        }
        client.close().await;
    }
}

#[tokio::test]
async fn announce_once_every_call_that_was_posted_and_given_up_is_cancelled_after_it() {
    for wire in [Wire::Http, Wire::EventStream] {
        for slow in [0, 40] {
            let server = Played::new(wire, Duration::from_millis(slow)).await;
            let client = server.client().await;
            for round in 0..60 {
                let call = client.call_tool("hang", json!({})).start();
                tokio::time::sleep(Duration::from_millis(round % 4)).await;
                drop(call);
            }
            until("all are cancelled", || {
                let (calls, cancels) = server.calls_and_cancels();
                calls == cancels && client.ledger().calls.in_flight() == 0
            })
            .await;
            let (calls, _) = server.calls_and_cancels();
            assert!(calls.len() > 20, "{wire:?}: only {} got out", calls.len());
            client.close().await;
            let (calls, cancels) = server.calls_and_cancels();
            assert_eq!(calls, cancels, "{wire:?}, {slow} ms");
        }
    }
}

#[tokio::test]
async fn cancel_never_waits_behind_a_post_that_is_not_acknowledged() {
    for wire in [Wire::Http, Wire::EventStream] {
        let server = Played::new(wire, Duration::from_secs(3600)).await;
        let client = server.client().await;
        let stuck = client.call_tool("hang", json!({})).start();
        client.list_tools().await.unwrap();
        drop(stuck);
        until("it is cancelled", || {
            let cancelled = |posted: &Posted| {
                matches!(posted, Posted::Whole(it) if it["method"] == "notifications/cancelled")
            };
            server.posted().iter().any(cancelled)
        })
        .await;
    }
}

/// A server that does not take a call says so by its id, and that is its answer.
#[tokio::test]
async fn typed_end_a_call_that_is_not_taken_is_refused() {
    for wire in [Wire::Http, Wire::EventStream] {
        let server = Played::new(wire, Duration::ZERO).await;
        let client = server.client().await;
        let error = client.call_tool("overloaded", json!({})).await.unwrap_err();
        let code = error.refusal().map(|refusal| refusal.code);
        assert_eq!(code, Some(-31001), "{wire:?}: {error:?}");
        client.close().await;
    }
}
