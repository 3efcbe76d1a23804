//! **smallest-scope**, **bounded**: streams of HTTP/2 that nobody reads.

use std::time::Duration;

use belay::outcome::End;
use belay_testkit::until;
use serde_json::json;

use super::Running;
use super::frames::{CANCEL, DATA, Frames, RST_STREAM};

const STALL: Duration = Duration::from_millis(400);
const WIDE: u32 = 1 << 24;

async fn server(stream_after: Duration) -> Running {
    Running::with(|it| it.write_stall(STALL).stream_after(stream_after)).await
}

/// A connection with a `hang` on stream 1, which is read.
async fn beside_a_hang(server: &Running, window: u32) -> Frames {
    let mut frames = Frames::connect(server.address(), window).await;
    frames.call(1, "hang", json!({}), &[]).await;
    frames.open_window(1, WIDE).await;
    server.hanging.comes_to(1).await;
    frames
}

/// Streams, and answers in one piece; nothing may be sent, next to nothing, or not all of it.
#[tokio::test]
async fn smallest_scope_a_stream_that_nobody_reads_is_reset_alone() {
    for stream_after in [Duration::ZERO, Duration::from_secs(1)] {
        for window in [0, 1, 65_535] {
            let server = server(stream_after).await;
            let mut frames = beside_a_hang(&server, window).await;
            let long = json!({ "text": "x".repeat(200_000) });
            frames.call(3, "echo", long, &[]).await;
            let reset = frames.until(RST_STREAM).await;
            assert_eq!((reset.stream, reset.code()), (3, CANCEL), "{window}");
            assert_eq!(server.hanging.count(), 1, "{window}");
            frames.call(5, "echo", json!({ "text": "hi" }), &[]).await;
            frames.open_window(5, WIDE).await;
            let body = String::from_utf8(frames.body(5).await).unwrap();
            assert!(body.contains("hi"), "{body}");
            let requests = server.listening.ledger().requests;
            assert_eq!(requests.in_flight(), 1, "{window}");
        }
    }
}

#[tokio::test]
async fn stops_with_its_caller_modern_when_nobody_reads_its_stream() {
    for window in [0, 65_535] {
        let server = server(Duration::ZERO).await;
        let mut frames = beside_a_hang(&server, window).await;
        frames.call(3, "flood", json!({}), &[]).await;
        assert_eq!(frames.until(RST_STREAM).await.stream, 3);
        until("it is cancelled", || {
            let requests = server.listening.ledger().requests;
            requests.ended_as(End::Cancelled) == 1 && requests.in_flight() == 1
        })
        .await;
        until("its handler is gone", || {
            server.listening.service().handlers() == 1
        })
        .await;
        assert_eq!(server.hanging.count(), 1);
    }
}

#[tokio::test]
async fn legacy_a_stream_that_nobody_read_can_be_resumed() {
    let server = server(Duration::ZERO).await;
    let session = server.session("2025-11-25").await;
    // Enough for the greeting, and for no message.
    let mut frames = Frames::connect(server.address(), 40).await;
    let count = json!({ "to": 20, "delay_ms": 1 });
    frames.call(1, "count", count, &session.headers).await;
    let mut said = Vec::new();
    loop {
        let frame = frames.next().await.unwrap();
        match frame.kind {
            DATA => said.extend(frame.payload),
            RST_STREAM => break,
            _ => {}
        }
    }
    let said = String::from_utf8(said).unwrap();
    let greeting = said.lines().find_map(|line| line.strip_prefix("id: "));
    let mut again = server.beside(&session).await;
    again.set("Last-Event-ID", Some(greeting.expect(&said)));
    again.send("GET", b"").await;
    assert!(again.answer().await.is_stream());
    for step in 1..=20 {
        assert_eq!(again.message().await.unwrap()["params"]["progress"], step);
    }
    assert_eq!(again.message().await.unwrap()["id"], 1);
}

#[tokio::test]
async fn a_slow_reader_that_reads_is_waited_for() {
    let stall = Duration::from_secs(1);
    let server = Running::with(|it| it.write_stall(stall)).await;
    let mut frames = Frames::connect(server.address(), 16 << 10).await;
    let long = json!({ "text": "x".repeat(300_000) });
    frames.call(1, "echo", long, &[]).await;
    let since = std::time::Instant::now();
    let mut read = 0;
    loop {
        let frame = frames.next().await.unwrap();
        assert_ne!(frame.kind, RST_STREAM, "after {read} bytes");
        if frame.kind == DATA {
            read += frame.payload.len();
        }
        if frame.ends_its_stream() {
            break;
        }
        if read % (16 << 10) == 0 {
            tokio::time::sleep(stall / 10).await;
            frames.open_window(1, 16 << 10).await;
        }
    }
    assert!(since.elapsed() > stall && read > 300_000);
}

/// Here the socket itself is full, with what every stream may be sent.
#[tokio::test]
async fn bounded_a_connection_that_takes_nothing_is_closed() {
    let server = server(Duration::ZERO).await;
    let mut frames = Frames::connect(server.address(), i32::MAX as u32).await;
    frames.call(1, "hang", json!({}), &[]).await;
    server.hanging.comes_to(1).await;
    frames.call(3, "flood", json!({}), &[]).await;
    server.hanging.comes_to(0).await;
    until("no handler is left", || {
        server.listening.service().handlers() == 0
    })
    .await;
    drop(frames);
}
