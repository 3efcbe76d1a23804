//! **bounded**, in bytes: what clients can make a server keep is weighed, and the honest go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use belay::client::Mode;
use belay::types::ResourceContents;
use belay::types::modern::SubscriptionFilter;
use belay::{Client, Context, ResourceTemplate, Tool};
use serde::Deserialize;
use serde_json::json;

use super::{Count, Nothing, Running};

/// A body is weighed until its request is over, and small ones pass whatever the others weigh.
#[tokio::test]
async fn bounded_the_bodies_of_running_requests_are_weighed() {
    let large = || json!({ "padding": "x".repeat(90_000) });
    for version in [None, Some("2025-11-25")] {
        // A quarter is for broken streams, and half of the rest for one client.
        let server = Running::with(|it| it.kept_bytes(240_000)).await;
        let connect = async || match version {
            None => server.raw().await,
            Some(version) => server.session(version).await,
        };
        let mut running = connect().await;
        running.call(1, "hang", large()).await;
        server.hanging.comes_to(1).await;
        let mut http = connect().await;
        http.call(2, "hang", large()).await;
        let answer = http.answer().await;
        assert_eq!(answer.status, 503, "{version:?}");
        let mut http = connect().await;
        http.call(3, "echo", json!({ "text": "small" })).await;
        assert_eq!(
            http.answer().await.status,
            200,
            "{version:?}: the honest go on"
        );
        match version {
            None => drop(running),
            Some(_) => http_cancel(&server, &running).await,
        }
        server.hanging.comes_to(0).await;
        belay_testkit::until("there is room again", || {
            server.listening.service().handlers() == 0
        })
        .await;
        let mut http = connect().await;
        http.call(4, "hang", large()).await;
        server.hanging.comes_to(1).await;
    }
}

async fn http_cancel(server: &Running, running: &belay_testkit::RawHttp) {
    let mut beside = server.beside(running).await;
    beside
        .post(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 1 } }),
        )
        .await;
    assert_eq!(beside.answer().await.status, 202);
}

/// What a session remembers of its introduction does not weigh what was sent.
#[tokio::test]
async fn bounded_a_session_keeps_only_what_is_needed_of_its_introduction() {
    let server = Running::with(|it| it.kept_bytes(240_000)).await;
    for round in 0..10 {
        let mut http = server.raw().await;
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" }, "padding": "x".repeat(90_000)
        });
        http.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))
            .await;
        assert_eq!(http.answer().await.status, 200, "{round}");
    }
    assert_eq!(server.listening.service().sessions(), 10);
}

#[tokio::test(start_paused = true)]
async fn bounded_a_body_that_comes_too_slowly_is_given_up_before_its_time() {
    let server = Running::start().await;
    let mut slow = server.raw().await;
    slow.bytes(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Accept: */*\r\nContent-Length: 90000\r\n\r\n",
    )
    .await;
    slow.bytes(&[b' '; 80_000]).await;
    let start = tokio::time::Instant::now();
    assert_eq!(slow.answer().await.status, 408);
    assert!(
        start.elapsed() < Duration::from_secs(11),
        "{:?}",
        start.elapsed()
    );
}

#[derive(Deserialize)]
struct Memo {
    name: String,
}

/// What is listened to in either era is weighed with everything else, and given back.
#[tokio::test]
async fn bounded_the_resources_that_somebody_listens_to_are_weighed() {
    // A modern client names all of them in one body, and is told them, which is weighed as well.
    for (mode, kept) in [(Mode::Modern, 920_000), (Mode::Legacy, 380_000)] {
        let memo =
            |_: Context, memo: Memo| async move { ResourceContents::new("memo").text(memo.name) };
        let server = Running::of(
            |server| server.resource_template(ResourceTemplate::new("memo://{name}", "memo", memo)),
            |it| it.kept_bytes(kept),
        )
        .await;
        let connect = async || {
            let builder = Client::builder("test", "1").mode(mode);
            builder.http(&server.url()).await.unwrap()
        };
        let filter = || {
            let uri = |number: u32| format!("memo://{number:0>20000}");
            (0..6).fold(SubscriptionFilter::new(), |filter, number| {
                filter.resource(uri(number))
            })
        };
        let first = connect().await;
        let listens = first.listen(filter()).await.unwrap();
        let second = connect().await;
        assert!(second.listen(filter()).await.is_err(), "{mode:?}");
        let echo = second.call_tool("echo", json!({ "text": "hi" }));
        assert!(echo.await.is_ok(), "{mode:?}: the honest go on");
        drop(listens);
        first.close().await;
        second.close().await;
        let third = connect().await;
        let start = Instant::now();
        while third.listen(filter()).await.is_err() {
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "{mode:?}: nothing was given back"
            );
        }
    }
}

/// Resident memory of this process, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<usize>().unwrap() << 10
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bounded_an_event_that_is_said_again_is_not_copied() {
    let server = Running::of(
        |server| {
            let large = |_: Context, _: Nothing| async {
                // Long enough for the answer to become a stream, which is kept.
                tokio::time::sleep(Duration::from_millis(100)).await;
                "x".repeat(4 << 20)
            };
            server.tool(Tool::new("large", large))
        },
        |it| {
            it.stream_after(Duration::from_millis(1))
                .kept_bytes(1 << 30)
        },
    )
    .await;
    let mut http = server.session("2025-11-25").await;
    http.call(1, "large", json!({})).await;
    assert!(http.answer().await.is_stream());
    let (id, _) = http.event().await.unwrap();
    let id = id.expect("an id to go on from");
    assert!(http.event().await.is_some());
    let before = memory();
    let mut unread = Vec::new();
    for _ in 0..60 {
        let mut again = server.beside(&http).await;
        again.headers.push(("Last-Event-ID".into(), id.clone()));
        again.send("GET", b"").await;
        assert!(again.answer().await.is_stream());
        unread.push(again);
    }
    let growth = memory().saturating_sub(before);
    assert!(growth < 64 << 20, "60 replays of 4 MiB took {growth} bytes");
}

/// A handler that waits for room to say something hears of it at once when nobody wants to know any
/// more, and can clean up (**stop-is-real**).
#[tokio::test]
async fn stop_is_real_for_a_handler_that_waits_for_room() {
    let cleaned = Arc::new(AtomicUsize::new(0));
    let said = Arc::new(AtomicUsize::new(0));
    let talk = {
        let (cleaned, said) = (cleaned.clone(), said.clone());
        move |cx: Context, it: Count| {
            let (cleaned, said) = (cleaned.clone(), said.clone());
            async move {
                let token = cx.token();
                let text = "x".repeat(it.to as usize);
                for step in 1.. {
                    said.fetch_add(1, Ordering::SeqCst);
                    cx.progress(step.into(), None, &text).await;
                    if token.is_cancelled() {
                        break;
                    }
                }
                cleaned.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let server = Running::of(
        |server| server.tool(Tool::new("talk", talk)),
        |it| it.kept_bytes(160_000),
    )
    .await;
    // One talks to nobody, until there is room for a few of its words more.
    let mut broken = server.session("2025-11-25").await;
    broken
        .call(2, "talk", json!({ "to": 2000, "delay_ms": 0 }))
        .await;
    assert!(broken.answer().await.is_stream());
    let mut http = server.beside(&broken).await;
    drop(broken);
    let (mut before, mut still) = (0, 0);
    belay_testkit::until("it waits for room", || {
        let now = said.load(Ordering::SeqCst);
        still = if before == now { still + 1 } else { 0 };
        before = now;
        still > 50
    })
    .await;
    // Another has more to say than that, and is stopped while it waits.
    http.call(1, "talk", json!({ "to": 6000, "delay_ms": 0 }))
        .await;
    belay_testkit::until("the other has begun", || {
        said.load(Ordering::SeqCst) == before + 1
    })
    .await;
    http_cancel(&server, &http).await;
    belay_testkit::until("it has cleaned up", || cleaned.load(Ordering::SeqCst) == 1).await;
}
