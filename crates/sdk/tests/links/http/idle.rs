//! **bounded**: HTTP/2 connections on which nobody asks anything.

use std::time::{Duration, Instant};

use serde_json::json;

use super::Running;
use super::frames::{Frames, GOAWAY, HEADERS};

const IDLE: Duration = Duration::from_millis(600);
const WINDOW: u32 = 65_535;

async fn server() -> Running {
    Running::with(|it| {
        it.read_timeouts(IDLE, Duration::from_secs(30))
            .stream_after(Duration::ZERO)
    })
    .await
}

#[tokio::test]
async fn bounded_a_connection_that_only_answers_pings_is_closed() {
    // Pings come often, and each is answered.
    let server = Running::with(|it| {
        it.read_timeouts(IDLE, Duration::from_secs(30))
            .keep_alive(Duration::from_millis(50))
    })
    .await;
    let since = Instant::now();
    let mut frames = Frames::connect(server.address(), WINDOW).await;
    assert_eq!(frames.until(GOAWAY).await.code(), 0, "in good order");
    assert!(since.elapsed() >= IDLE, "{:?}", since.elapsed());
    frames.ends().await;
}

/// A peer that does not say that it has heard of the end is not waited for.
#[tokio::test]
async fn bounded_a_connection_that_answers_nothing_is_closed() {
    let server = server().await;
    let mut frames = Frames::connect(server.address(), WINDOW).await;
    frames.ignores_pings = true;
    frames.until(GOAWAY).await;
    frames.ends().await;
}

#[tokio::test]
async fn a_connection_with_an_open_stream_is_never_idle() {
    let server = server().await;
    let mut frames = Frames::connect(server.address(), WINDOW).await;
    frames.call(1, "hang", json!({}), &[]).await;
    assert_eq!(frames.next().await.unwrap().kind, HEADERS);
    server.hanging.comes_to(1).await;
    let waited = tokio::time::timeout(IDLE * 2, async {
        loop {
            assert_ne!(frames.next().await.unwrap().kind, GOAWAY);
        }
    });
    assert!(waited.await.is_err());
    assert_eq!(server.hanging.count(), 1);
    // Nor is one on which something was asked just now.
    for stream in [3, 5, 7, 9] {
        frames
            .call(stream, "echo", json!({ "text": "hi" }), &[])
            .await;
        frames.body(stream).await;
    }
    frames.reset(1).await;
    server.hanging.comes_to(0).await;
    let since = Instant::now();
    for stream in [11, 13, 15, 17, 19, 21] {
        tokio::time::sleep(IDLE / 5).await;
        frames
            .call(stream, "echo", json!({ "text": "hi" }), &[])
            .await;
        frames.body(stream).await;
    }
    assert!(since.elapsed() > IDLE);
    frames.until(GOAWAY).await;
    frames.ends().await;
}

/// A request and the end of its connection can cross.
#[tokio::test]
async fn whoever_asks_while_a_connection_closes_is_answered() {
    let server = server().await;
    let mut frames = Frames::connect(server.address(), WINDOW).await;
    frames.ignores_pings = true;
    frames.until(GOAWAY).await;
    frames
        .call(1, "nap", json!({ "to": 0, "delay_ms": 1500 }), &[])
        .await;
    let body = String::from_utf8(frames.body(1).await).unwrap();
    assert!(body.contains("awake"), "{body}");
    frames.ends().await;
}
