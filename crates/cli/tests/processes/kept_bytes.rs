//! **bounded**: whatever clients do, a server keeps no more bytes than it may, and honest clients are
//! answered meanwhile. What is looked at is the memory of the process.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use belay_testkit::RawHttp;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::http::{HttpServer, Way};
use crate::support::{memory, peak_memory, processor_time};

/// What the server may keep.
const BUDGET: usize = 24 << 20;

/// And what it takes besides: its program, its buffers, and what it makes of a message for a moment.
const BESIDES: usize = 64 << 20;

/// Just less than the longest body.
const LARGE: usize = 3_900_000;

/// Attacks a server, with an honest client beside it.
async fn attack(attack: impl AsyncFn(&HttpServer, SocketAddr)) {
    let server = HttpServer::with(&["--sse", "--kept-bytes", "24M"]).await;
    let address = server.address.parse().unwrap();
    let honest = server.client(Way::Modern).await;
    let mut waits = Vec::new();
    let echoing = async {
        loop {
            let start = Instant::now();
            let echo = honest.call_tool("echo", json!({ "text": "hi" })).await;
            echo.expect("an honest client is answered");
            waits.push(start.elapsed());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        biased;
        () = echoing => unreachable!("it echoes for ever"),
        () = attack(&server, address) => {}
    }
    waits.sort();
    let median = waits
        .get(waits.len() / 2)
        .expect("an echo during the attack");
    assert!(*median < Duration::from_millis(500), "{median:?}");
    let peak = peak_memory(server.pid());
    println!("peak {} KiB, median wait {median:?}", peak >> 10);
    assert!(peak < BUDGET + BESIDES, "the server took {peak} bytes");
}

/// A connection that takes in little of what nobody reads.
async fn connect(address: SocketAddr) -> RawHttp {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    RawHttp::over(socket.connect(address).await.unwrap())
}

async fn session(address: SocketAddr, version: &str) -> RawHttp {
    let mut http = connect(address).await;
    http.initialize(version).await;
    http
}

/// Another connection of the same session.
async fn beside(http: &RawHttp, address: SocketAddr) -> RawHttp {
    let mut beside = connect(address).await;
    beside.headers.clone_from(&http.headers);
    beside
}

/// Waits until the server grows no more, or has grown too much.
async fn until_still(server: &HttpServer) {
    let mut since = Instant::now();
    let mut last = memory(server.pid());
    while since.elapsed() < Duration::from_secs(1) && last < (256 << 20) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = memory(server.pid());
        if now > last + (256 << 10) {
            (since, last) = (Instant::now(), now);
        }
    }
}

fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Counts what was let in, of what was tried; what was refused was refused in a typed way.
#[derive(Default, Debug)]
struct Tally {
    accepted: usize,
    refused: usize,
}

impl Tally {
    fn count(&mut self, status: u16) {
        match status {
            200 => self.accepted += 1,
            429 | 503 => self.refused += 1,
            other => panic!("{other}"),
        }
    }

    fn check(&self) {
        assert!(self.accepted > 0 && self.refused > 0, "{self:?}");
    }
}

#[tokio::test]
async fn bounded_listens() {
    attack(async |_, address| {
        let mut tally = Tally::default();
        let mut open = Vec::new();
        for _ in 0..40 {
            let uri = |number| format!("demo://echo/{number:0>4000}");
            let uris: Vec<String> = (0..450).map(uri).collect();
            let filter = json!({ "notifications": { "resourceSubscriptions": uris } });
            let mut http = connect(address).await;
            http.set("MCP-Protocol-Version", "2026-07-28");
            http.set("Mcp-Method", "subscriptions/listen");
            http.post(&modern("subscriptions/listen", filter)).await;
            tally.count(http.answer().await.status);
            open.push(http);
        }
        tally.check();
    })
    .await;
}

#[tokio::test]
async fn bounded_introductions_of_sessions() {
    attack(async |_, address| {
        let mut tally = Tally::default();
        for _ in 0..10 {
            let mut http = connect(address).await;
            for _ in 0..200 {
                let params = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": { "name": "x".repeat(60_000), "version": "1" }
                });
                let hello =
                    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
                http.post(&hello).await;
                tally.count(http.answer().await.status);
            }
        }
        tally.check();
    })
    .await;
}

#[tokio::test]
async fn bounded_replays() {
    attack(async |_, address| {
        let mut http = session(address, "2025-03-26").await;
        let call = |id: u32, text: String| {
            let params = json!({ "name": "echo", "arguments": { "text": text } });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        };
        // A batch is answered on a stream, which is kept.
        http.post(&json!([call(1, "hi".into()), call(2, "x".repeat(LARGE))]))
            .await;
        assert!(http.answer().await.is_stream());
        let (first, _) = http.event().await.unwrap();
        let first = first.expect("an id to go on from");
        assert!(http.message().await.is_some());
        let mut tally = Tally::default();
        let mut unread = Vec::new();
        for _ in 0..60 {
            let mut again = beside(&http, address).await;
            again.set("Last-Event-ID", first.as_str());
            again.send("GET", b"").await;
            tally.count(again.answer().await.status);
            unread.push(again);
        }
        tally.check();
    })
    .await;
}

#[tokio::test]
async fn bounded_bodies_of_running_requests() {
    attack(async |_, address| {
        let mut tally = Tally::default();
        let mut open = Vec::new();
        for id in 0..60 {
            let mut http = connect(address).await;
            let padding = json!({ "padding": "x".repeat(LARGE) });
            http.call(id, "hang", padding).await;
            tally.count(http.answer().await.status);
            open.push(http);
        }
        tally.check();
    })
    .await;
}

#[tokio::test]
async fn bounded_answers_that_nobody_reads() {
    attack(async |server, address| {
        let mut unread = Vec::new();
        for id in 0..60 {
            let mut http = connect(address).await;
            // It may be refused before all of it was sent.
            let call = http.call(id, "echo", json!({ "text": "x".repeat(LARGE) }));
            let _ = tokio::time::timeout(Duration::from_secs(2), call).await;
            unread.push(http);
        }
        until_still(server).await;
    })
    .await;
}

#[tokio::test]
async fn bounded_broken_streams_that_go_on_talking() {
    attack(async |server, address| {
        let http = session(address, "2025-11-25").await;
        for id in 0..100 {
            let mut broken = beside(&http, address).await;
            broken
                .call(id, "count", json!({ "to": 4_000_000, "delay_ms": 0 }))
                .await;
            assert!(broken.answer().await.is_stream());
        }
        until_still(server).await;
        // Whoever waits for room waits, and does not look again and again.
        let before = processor_time(server.pid());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let took = processor_time(server.pid()) - before;
        assert!(took < Duration::from_millis(400), "{took:?}");
    })
    .await;
}

#[tokio::test]
async fn bounded_subscriptions_of_sessions() {
    attack(async |_, address| {
        let mut tally = Tally::default();
        for session_number in 0..2 {
            let mut http = session(address, "2025-11-25").await;
            for number in 0..250 {
                let uri = format!("demo://echo/{session_number}{number:0>60000}");
                let params = json!({ "uri": uri });
                let subscribe = json!({ "jsonrpc": "2.0", "id": number,
                    "method": "resources/subscribe", "params": params });
                http.post(&subscribe).await;
                let answer = http.answer().await;
                match answer.json()["error"]["code"].as_i64() {
                    None => tally.count(answer.status),
                    Some(-31001) => tally.refused += 1,
                    Some(other) => panic!("{other}"),
                }
            }
        }
        tally.check();
    })
    .await;
}

/// What was kept for clients goes back to the system when they are gone.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn bounded_memory_is_given_back() {
    let server = HttpServer::with(&["--kept-bytes", "128M"]).await;
    let address = server.address.parse().unwrap();
    let before = memory(server.pid());
    for round in 0..3 {
        let mut unread = Vec::new();
        for id in 0..30 {
            let mut http = connect(address).await;
            let call = http.call(id, "echo", json!({ "text": "x".repeat(LARGE) }));
            let _ = tokio::time::timeout(Duration::from_secs(2), call).await;
            unread.push(http);
        }
        until_still(&server).await;
        let kept = memory(server.pid());
        assert!(
            kept > before + (48 << 20),
            "round {round}: only {kept} bytes"
        );
        drop(unread);
        let start = Instant::now();
        while memory(server.pid()) > before + (32 << 20) {
            let left = memory(server.pid());
            let waited = start.elapsed();
            assert!(
                waited < Duration::from_secs(10),
                "round {round}: {left} bytes"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
