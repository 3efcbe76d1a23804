//! What a handler says on the way to its answer, and what is left of its request then.

use std::time::{Duration, Instant};

use belay_testkit::{RawHttp, until};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

use super::Running;

fn alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Everything on the stream that answers a call.
async fn called(http: &mut RawHttp, tool: &str, arguments: Value) -> Vec<(Option<String>, Value)> {
    http.call(1, tool, arguments).await;
    assert!(http.answer().await.is_stream());
    let mut events = Vec::new();
    while let Some(event) = http.event().await {
        events.push(event);
    }
    events
}

fn text(event: &(Option<String>, Value)) -> &str {
    let message = &event.1;
    let text = message["result"]["content"][0]["text"].as_str();
    text.or(message["params"]["message"].as_str())
        .unwrap_or_default()
}

#[tokio::test]
async fn order_what_was_said_comes_before_the_answer_and_no_task_is_left() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    // It has its connection by then.
    called(&mut http, "brief", json!({})).await;
    let before = alive();
    for _ in 0..10 {
        let events = called(&mut http, "brief", json!({})).await;
        let said: Vec<&str> = events.iter().map(text).collect();
        assert_eq!(said, ["so far", "done"]);
    }
    assert_eq!(alive(), before, "it was over before it was read");
    assert_eq!(server.listening.service().handlers(), 0);
    assert_eq!(server.listening.service().ledger().requests.started(), 11);
}

/// One that waits has a task that turns its link. That ends when all was read.
#[tokio::test]
async fn no_task_is_left_of_a_stream_that_was_read_to_its_end() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    let count = json!({ "to": 2, "delay_ms": 1 });
    called(&mut http, "brief", json!({})).await;
    let before = alive();
    for _ in 0..10 {
        let events = called(&mut http, "count", count.clone()).await;
        assert_eq!(events.len(), 3);
    }
    until("all tasks have ended", || alive() == before).await;
}

/// Nor of one whose client hangs up while the answer is on its way: by then there is no handler to
/// stop, and nothing happens but that the stream is gone.
#[tokio::test]
async fn no_task_is_left_of_a_stream_that_was_dropped_with_its_answer_in_it() {
    let server = Running::of(
        |server| server.limits(|limits| limits.message_bytes = 64 << 20),
        |it| it.kept_bytes(1 << 30),
    )
    .await;
    let mut warm = server.raw().await;
    called(&mut warm, "brief", json!({})).await;
    let before = alive();
    let meta = json!({
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "large", "arguments": {}, "_meta": meta });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let mut http = server.raw().await;
    http.set("MCP-Protocol-Version", "2026-07-28");
    http.set("Mcp-Method", "tools/call");
    http.set("Mcp-Name", "large");
    let request = http.encoded("POST", call.to_string().as_bytes());
    drop(http);
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(&request).await.unwrap();
    // So much is the beginning of its answer.
    let mut read = vec![0; 64 << 10];
    stream.read_exact(&mut read).await.unwrap();
    assert!(read.starts_with(b"HTTP/1.1 200 OK"));
    // To write it took long enough for the watchdog, which wakes the driver for a while after that: no
    // sign of the end of it can be seen from here, and with it nothing would be shown.
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(stream);
    let dropped = Instant::now();
    until("all tasks have ended", || alive() == before).await;
    // Not because another connection is closed, which is after 10 s.
    assert!(dropped.elapsed() < Duration::from_secs(5));
}

/// A legacy client may come back for any event: so each has an id, whenever it was said.
#[tokio::test]
async fn in_a_session_what_was_said_at_once_can_be_resumed() {
    let server = Running::start().await;
    let mut http = server.session("2025-11-25").await;
    let events = called(&mut http, "brief", json!({})).await;
    let said: Vec<&str> = events.iter().map(text).collect();
    assert_eq!(said, ["", "so far", "done"], "after a greeting");
    assert!(events.iter().all(|(id, _)| id.is_some()), "{events:?}");
    let mut again = server.beside(&http).await;
    again.set("Last-Event-ID", events[1].0.as_deref());
    again.send("GET", b"").await;
    assert!(again.answer().await.is_stream());
    assert_eq!(text(&again.event().await.unwrap()), "done");
}
