//! What it means when a caller hangs up: in the modern era a cancellation, in the legacy one not.

use std::time::Duration;

use belay::outcome::End;
use belay_testkit::{RawHttp, until};
use serde_json::json;

use super::Running;

#[tokio::test]
async fn stops_with_its_caller_modern_before_the_first_byte() {
    let server = Running::with(|it| it.stream_after(Duration::from_secs(600))).await;
    let mut http = server.raw().await;
    http.call(1, "hang", json!({})).await;
    server.hanging.comes_to(1).await;
    drop(http);
    server.hanging.comes_to(0).await;
    until("it is in the books", || {
        let requests = server.listening.ledger().requests;
        requests.ended_as(End::Cancelled) == 1 && requests.in_flight() == 0
    })
    .await;
}

#[tokio::test]
async fn stops_with_its_caller_modern_after_the_head() {
    let server = Running::with(|it| it.stream_after(Duration::ZERO)).await;
    let mut http = server.raw().await;
    http.call(1, "hang", json!({})).await;
    assert!(http.answer().await.is_stream());
    server.hanging.comes_to(1).await;
    drop(http);
    server.hanging.comes_to(0).await;
}

#[tokio::test]
async fn stops_with_its_caller_modern_after_the_first_event() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    http.call(1, "count", json!({ "to": 1_000_000, "delay_ms": 1 }))
        .await;
    assert!(http.answer().await.is_stream());
    http.message().await.unwrap();
    drop(http);
    until("it is over", || server.listening.service().handlers() == 0).await;
}

/// With a byte that nobody asked for in its buffer, hyper does not see the end of a connection. What
/// is written does.
#[tokio::test]
async fn stops_with_its_caller_modern_with_one_byte_too_many() {
    for stream_after in [Duration::ZERO, Duration::from_millis(50)] {
        let server = Running::with(|it| {
            it.stream_after(stream_after)
                .keep_alive(Duration::from_millis(20))
        })
        .await;
        let mut http = server.raw().await;
        http.call(1, "hang", json!({})).await;
        http.bytes(b"G").await;
        server.hanging.comes_to(1).await;
        drop(http);
        server.hanging.comes_to(0).await;
    }
}

#[tokio::test]
async fn stops_with_its_caller_modern_when_only_its_sending_half_is_closed() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    http.call(1, "hang", json!({})).await;
    server.hanging.comes_to(1).await;
    http.half_close().await;
    server.hanging.comes_to(0).await;
}

#[tokio::test]
async fn a_modern_cancel_is_accepted_and_means_nothing() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    http.call(1, "hang", json!({})).await;
    server.hanging.comes_to(1).await;
    let mut other = server.raw().await;
    other.set("MCP-Protocol-Version", "2026-07-28");
    let params = json!({ "requestId": 1 });
    other
        .post(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    assert_eq!(other.answer().await.status, 202);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.hanging.count(), 1);
}

async fn hang_in_a_session(server: &Running) -> RawHttp {
    let mut http = server.session("2025-11-25").await;
    http.call(7, "hang", json!({})).await;
    assert!(http.answer().await.is_stream());
    server.hanging.comes_to(1).await;
    http
}

#[tokio::test]
async fn legacy_a_disconnect_is_no_cancellation_until_the_window_ends() {
    let window = Duration::from_millis(400);
    let server = Running::of(
        |server| server.timeouts(|timeouts| timeouts.resume_window = Some(window)),
        |it| it.stream_after(Duration::ZERO),
    )
    .await;
    let http = hang_in_a_session(&server).await;
    let since = std::time::Instant::now();
    drop(http);
    server.hanging.comes_to(0).await;
    assert!(since.elapsed() >= window, "it was cancelled too early");
}

#[tokio::test]
async fn legacy_resuming_delivers_what_was_missed_and_the_answer() {
    let server = Running::start().await;
    let mut http = server.session("2025-11-25").await;
    http.call(7, "count", json!({ "to": 5, "delay_ms": 30 }))
        .await;
    assert!(http.answer().await.is_stream());
    let (greeting, nothing) = http.event().await.unwrap();
    assert!(
        greeting.is_some() && nothing.is_null(),
        "a stream is primed"
    );
    let (last, first) = http.event().await.unwrap();
    assert_eq!(first["params"]["progress"], 1);
    let mut again = server.beside(&http).await;
    drop(http);
    tokio::time::sleep(Duration::from_millis(70)).await;
    again.set("Last-Event-ID", last.as_deref());
    again.send("GET", b"").await;
    assert!(again.answer().await.is_stream());
    for step in 2..=5 {
        assert_eq!(again.message().await.unwrap()["params"]["progress"], step);
    }
    assert_eq!(again.message().await.unwrap()["id"], 7);
    assert!(again.message().await.is_none(), "then nothing");
    assert_eq!(server.listening.service().handlers(), 0);
}

#[tokio::test]
async fn legacy_an_answer_that_was_lost_on_its_way_is_delivered_by_resuming() {
    let server = Running::start().await;
    let mut http = server.session("2025-11-25").await;
    http.call(7, "count", json!({ "to": 2, "delay_ms": 10 }))
        .await;
    assert!(http.answer().await.is_stream());
    let (greeting, _) = http.event().await.unwrap();
    // All of it is said by now, and this side pretends that nothing came.
    until("it is over", || server.listening.service().handlers() == 0).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut again = server.beside(&http).await;
    drop(http);
    again.set("Last-Event-ID", greeting.as_deref());
    again.send("GET", b"").await;
    assert!(again.answer().await.is_stream());
    let mut messages = Vec::new();
    while let Some(message) = again.message().await {
        messages.push(message);
    }
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert_eq!(messages[2]["id"], 7);
}

#[tokio::test]
async fn legacy_resuming_replays_that_stream_and_no_other() {
    let server = Running::start().await;
    let mut http = server.session("2025-11-25").await;
    let mut other = server.beside(&http).await;
    http.call(1, "count", json!({ "to": 3, "delay_ms": 5 }))
        .await;
    other
        .call(2, "count", json!({ "to": 3, "delay_ms": 5 }))
        .await;
    assert!(http.answer().await.is_stream() && other.answer().await.is_stream());
    let (greeting, _) = http.event().await.unwrap();
    until("both are over", || {
        server.listening.service().handlers() == 0
    })
    .await;
    let mut again = server.beside(&http).await;
    again.set("Last-Event-ID", greeting.as_deref());
    again.send("GET", b"").await;
    again.answer().await;
    while let Some(message) = again.message().await {
        let about_one = message["id"] == 1 || message["params"]["progressToken"] == 1;
        assert!(about_one, "{message}");
    }
}

#[tokio::test]
async fn legacy_the_newest_carrier_of_a_stream_wins() {
    let server = Running::with(|it| it.stream_after(Duration::ZERO)).await;
    let mut http = hang_in_a_session(&server).await;
    let (greeting, _) = http.event().await.unwrap();
    let mut again = server.beside(&http).await;
    again.set("Last-Event-ID", greeting.as_deref());
    again.send("GET", b"").await;
    assert!(again.answer().await.is_stream());
    assert!(http.message().await.is_none(), "the old one ends");
    drop(http);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.hanging.count(), 1, "and its end means nothing");
}

#[tokio::test]
async fn legacy_older_revisions_are_not_greeted() {
    let server = Running::start().await;
    for version in ["2025-03-26", "2025-06-18"] {
        let mut http = server.session(version).await;
        http.call(1, "count", json!({ "to": 1, "delay_ms": 1 }))
            .await;
        assert!(http.answer().await.is_stream());
        let (id, first) = http.event().await.unwrap();
        assert!(id.is_some() && !first.is_null(), "{version}");
    }
}

fn cancel(id: i64) -> serde_json::Value {
    let params = json!({ "requestId": id });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

#[tokio::test]
async fn silence_a_cancelled_legacy_request_ends_its_stream_in_good_order() {
    for stream_after in [Duration::ZERO, Duration::from_secs(600)] {
        let server = Running::with(|it| it.stream_after(stream_after)).await;
        let mut http = server.session("2025-11-25").await;
        let mut beside = server.beside(&http).await;
        http.call(7, "hang", json!({})).await;
        server.hanging.comes_to(1).await;
        beside.post(&cancel(7)).await;
        assert_eq!(beside.answer().await.status, 202);
        server.hanging.comes_to(0).await;
        let answer = http.answer().await;
        assert_eq!((answer.status, answer.is_stream()), (200, true));
        assert!(http.message().await.is_none(), "nothing is in it");
        http.call(8, "echo", json!({ "text": "the connection lives" }))
            .await;
        assert_eq!(http.answer().await.status, 200);
    }
}

#[tokio::test]
async fn cancel_overtakes_its_request_on_legacy_http() {
    let server = Running::start().await;
    let mut http = server.session("2025-11-25").await;
    http.post(&cancel(7)).await;
    assert_eq!(http.answer().await.status, 202);
    http.call(7, "hang", json!({})).await;
    let answer = http.answer().await;
    assert_eq!((answer.status, answer.is_stream()), (200, true));
    assert!(http.message().await.is_none());
    assert_eq!(server.hanging.count(), 0, "it never started");
}

#[tokio::test]
async fn a_session_that_is_deleted_stops_its_handlers_at_once() {
    let server = Running::with(|it| it.stream_after(Duration::ZERO)).await;
    let http = hang_in_a_session(&server).await;
    let mut beside = server.beside(&http).await;
    beside.send("DELETE", b"").await;
    assert_eq!(beside.answer().await.status, 204);
    server.hanging.comes_to(0).await;
    beside.call(1, "echo", json!({ "text": "hi" })).await;
    assert_eq!(beside.answer().await.status, 404);
    assert_eq!(server.listening.service().sessions(), 0);
}

#[tokio::test]
async fn without_sessions_a_disconnect_is_the_end() {
    let server = Running::with(|it| it.sessionless()).await;
    let mut http = server.raw().await;
    http.set("MCP-Protocol-Version", "2025-06-18");
    let params = json!({ "name": "hang", "arguments": {} });
    http.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
        .await;
    server.hanging.comes_to(1).await;
    drop(http);
    server.hanging.comes_to(0).await;
}

#[tokio::test]
async fn stops_with_its_caller_event_stream() {
    let server = Running::start().await;
    let mut stream = server.raw().await;
    stream.path = "/sse".into();
    stream.send("GET", b"").await;
    assert!(stream.answer().await.is_stream());
    let client = belay::Client::http(&format!("http://{}/sse", server.address()))
        .await
        .unwrap();
    let call = client.call_tool("hang", json!({})).start();
    server.hanging.comes_to(1).await;
    // Its stream goes, and with it all that was asked.
    drop((client, call));
    server.hanging.comes_to(0).await;
}
