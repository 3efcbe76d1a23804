//! What a handler says on the way to its answer, and what is left of its request then.

use belay_testkit::{RawHttp, until};
use serde_json::{Value, json};
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
