//! A server on HTTP that a test plays, request by request.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belay::client::Mode;
use belay::outcome::LossKind;
use belay::{Client, Error};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as the played server sees it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    headers: Vec<(String, String)>,
    pub(super) body: Value,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn asks(&self, method: &str) -> bool {
        self.body["method"] == method
    }
}

/// What it answers.
pub(super) enum Reply {
    /// These bytes, and the connection stays.
    Bytes(String),
    /// These bytes, and the connection ends.
    AndClose(String),
    /// Nothing, for ever.
    Nothing,
}

pub(super) struct Played {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Played {
    pub(super) async fn new(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (answer, log) = (Arc::new(answer), asked.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), log.clone()));
            }
        });
        Self { address, asked }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) async fn client(&self, mode: Mode) -> Client {
        let builder = Client::builder("test", "1").mode(mode);
        builder.http(&self.url()).await.unwrap()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Arc<impl Fn(&Asked) -> Reply>,
    log: Arc<Mutex<Vec<Asked>>>,
) {
    while let Some(asked) = read(&mut stream).await {
        log.lock().unwrap().push(asked.clone());
        match answer(&asked) {
            Reply::Bytes(bytes) => stream.write_all(bytes.as_bytes()).await.unwrap(),
            Reply::AndClose(bytes) => {
                let _ = stream.write_all(bytes.as_bytes()).await;
                return;
            }
            Reply::Nothing => std::future::pending().await,
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(read[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let method = lines.next()?.split(' ').next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, length)| length.parse::<usize>().unwrap());
    while read.len() < end + 4 + length {
        if stream.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&read[end + 4..end + 4 + length]).unwrap_or(Value::Null);
    Some(Asked {
        method,
        headers,
        body,
    })
}

pub(super) fn response(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(super) fn result(asked: &Asked, result: Value) -> String {
    let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result });
    response("200 OK", "application/json", &body.to_string())
}

pub(super) const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";

/// What both eras need before the first call. `None` if it is something else.
pub(super) fn greeting(asked: &Asked) -> Option<Reply> {
    if asked.asks("server/discover") {
        let answer = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} });
        return Some(Reply::Bytes(result(asked, answer)));
    }
    if asked.asks("initialize") {
        let answer = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "serverInfo": { "name": "played", "version": "1" }
        });
        let answer = result(asked, answer).replace("\r\n\r\n", "\r\nMcp-Session-Id: s1\r\n\r\n");
        return Some(Reply::Bytes(answer));
    }
    match asked.method.as_str() {
        "GET" if asked.header("last-event-id").is_none() => {
            Some(Reply::Bytes(response("405 No", "text/plain", "")))
        }
        "DELETE" => Some(Reply::Bytes(response("405 No", "text/plain", ""))),
        _ if asked.body.get("id").is_none() && asked.method == "POST" => Some(Reply::Bytes(
            "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".into(),
        )),
        _ => None,
    }
}

pub(super) const MODES: [Mode; 2] = [Mode::Legacy, Mode::Modern];

pub(super) async fn lost(mode: Mode, reply: fn() -> Reply) -> (Error, Duration) {
    let server = Played::new(move |asked| greeting(asked).unwrap_or_else(reply)).await;
    let client = server.client(mode).await;
    let called = Instant::now();
    let call = client.list_tools().timeout(Duration::from_secs(15));
    let error = call.await.unwrap_err();
    assert_eq!(client.ledger().calls.in_flight(), 0);
    (error, called.elapsed())
}

pub(super) fn kind(error: &Error) -> LossKind {
    match error.outcome() {
        Some(belay::outcome::Outcome::Lost { cause, .. }) => cause.kind,
        other => panic!("{other:?}"),
    }
}
