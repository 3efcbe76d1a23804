//! **bounded**, **smallest-scope**: what too much of something does, and to whom.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belay::client::Mode;
use belay::http::Endpoint;
use belay::{Client, Server};
use belay_testkit::{RawHttp, until};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Running;

/// Somebody who behaves, while others do not.
async fn still_answers(server: &Running) {
    let mut http = server.raw().await;
    http.call(1, "echo", json!({ "text": "hi" })).await;
    assert_eq!(http.answer().await.status, 200);
}

#[tokio::test]
async fn bodies_are_counted_while_they_are_read() {
    let server = Running::of(
        |server| server.limits(|limits| limits.received_bytes = 1000),
        |it| it,
    )
    .await;
    let long = format!("\"{}\"", "x".repeat(2000));
    // It says how long it is.
    let mut http = server.raw().await;
    http.send("POST", long.as_bytes()).await;
    assert_eq!(http.answer().await.status, 413);
    // It does not.
    let mut http = server.raw().await;
    http.bytes(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Accept: */*\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
    .await;
    for _ in 0..3 {
        http.bytes(format!("1f4\r\n{}\r\n", "x".repeat(500)).as_bytes())
            .await;
    }
    assert_eq!(http.answer().await.status, 413);
    // It says something else than it does: the rest is not taken for a request.
    let mut http = server.raw().await;
    http.bytes(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Accept: */*\r\nContent-Length: 4\r\n\r\nnullGET /evil",
    )
    .await;
    assert_eq!(http.answer().await.status, 400);
    // It says that it is longer than it is, and hangs up.
    let mut http = server.raw().await;
    http.bytes(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Accept: */*\r\nContent-Length: 400\r\n\r\n{",
    )
    .await;
    drop(http);
    // It is compressed.
    let mut http = server.raw().await;
    http.set("Content-Encoding", "gzip");
    http.send("POST", b"\x1f\x8b").await;
    assert_eq!(http.answer().await.status, 415);
    still_answers(&server).await;
}

#[tokio::test]
async fn headers_are_bounded() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    let huge = "x".repeat(64 << 10);
    http.set("X-Huge", huge.as_str());
    http.send("POST", b"{}").await;
    let answer = http.try_answer().await;
    assert!(answer.is_err() || answer.unwrap().status == 431);
    let mut http = server.raw().await;
    for number in 0..100 {
        http.headers.push((format!("X-{number}"), "x".into()));
    }
    http.send("POST", b"{}").await;
    let answer = http.try_answer().await;
    assert!(answer.is_err() || answer.unwrap().status == 431);
    still_answers(&server).await;
}

#[tokio::test]
async fn who_takes_too_long_to_ask_is_not_waited_for() {
    let span = Duration::from_millis(300);
    let server = Running::with(|it| it.read_timeouts(span, span)).await;
    let address = server.address();
    let asks_slowly = async |first: &'static [u8]| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(first).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest));
        let _ = ended.await.expect("it should be closed");
        String::from_utf8_lossy(&rest).into_owned()
    };
    for first in [
        &b""[..],
        b"P",
        b"PRI * HT",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    ] {
        asks_slowly(first).await;
    }
    let body = asks_slowly(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Accept: */*\r\nContent-Length: 400\r\n\r\n{",
    );
    assert!(body.await.starts_with("HTTP/1.1 408"));
    still_answers(&server).await;
}

#[tokio::test]
async fn a_thousand_who_never_finish_asking_are_in_nobodys_way() {
    let server =
        Running::with(|it| it.read_timeouts(Duration::from_secs(60), Duration::from_secs(60)))
            .await;
    let mut slow = Vec::new();
    for _ in 0..1000 {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream
            .write_all(b"POST /mcp HTTP/1.1\r\nHost: loc")
            .await
            .unwrap();
        slow.push(stream);
    }
    let since = Instant::now();
    for _ in 0..20 {
        still_answers(&server).await;
    }
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}",
        since.elapsed()
    );
}

#[tokio::test]
async fn one_request_too_many_is_told_when_to_come_back() {
    let server = Running::with(|it| it.in_flight_per_connection(2).in_flight(3)).await;
    let call = async |address| {
        let mut http = RawHttp::connect(address).await;
        http.call(1, "hang", json!({})).await;
        http
    };
    let held = [
        call(server.address()).await,
        call(server.address()).await,
        call(server.address()).await,
    ];
    server.hanging.comes_to(3).await;
    let mut fourth = call(server.address()).await;
    let answer = fourth.answer().await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    assert_eq!(answer.json()["error"]["code"], -31001);
    assert_eq!(answer.json()["id"], 1);
    drop(held);
    server.hanging.comes_to(0).await;
    fourth.call(2, "echo", json!({ "text": "now" })).await;
    assert_eq!(fourth.answer().await.status, 200);
}

#[tokio::test]
async fn a_session_has_its_limit_too() {
    let server = Running::of(
        |server| server.limits(|limits| limits.handlers = 2),
        |it| it,
    )
    .await;
    let http = server.session("2025-11-25").await;
    let mut held = Vec::new();
    for id in 1..=2 {
        let mut beside = server.beside(&http).await;
        beside.call(id, "hang", json!({})).await;
        held.push(beside);
    }
    server.hanging.comes_to(2).await;
    let mut third = server.beside(&http).await;
    third.call(3, "hang", json!({})).await;
    let answer = third.answer().await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("1"))
    );
    still_answers(&server).await;
}

/// It asks for more than the sockets hold, and reads nothing of it.
#[tokio::test]
async fn a_slow_reader_slows_itself_alone_and_is_let_go() {
    let server = Running::with(|it| it.write_stall(Duration::from_millis(300))).await;
    let mut slow = server.raw().await;
    slow.call(1, "flood", json!({})).await;
    until("it runs", || server.listening.service().handlers() == 1).await;
    let others: Vec<_> = (0..100)
        .map(|_| {
            let url = server.url();
            tokio::spawn(async move {
                let client = Client::http(&url).await.unwrap();
                for _ in 0..5 {
                    client
                        .call_tool("echo", json!({ "text": "hi" }))
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for other in others {
        other.await.unwrap();
    }
    until("the slow one is let go", || {
        server.listening.service().handlers() == 0
    })
    .await;
    drop(slow);
}

/// The tags are what a request and its answer have in common; the ids are all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn id_is_scoped_two_hundred_clients_with_one_id_never_meet() {
    let span = std::env::var("BELAY_TAGS_SECONDS").ok();
    let span = Duration::from_secs(span.and_then(|span| span.parse().ok()).unwrap_or(3));
    let server = Running::start().await;
    let session = server.session("2025-11-25").await;
    let until = Instant::now() + span;
    let mut clients = Vec::new();
    for client in 0..200 {
        let mut http = match client % 3 {
            // Some even share a session.
            0 => server.beside(&session).await,
            1 => server.session("2025-06-18").await,
            _ => server.raw().await,
        };
        clients.push(tokio::spawn(async move {
            let mut answered = 0;
            while Instant::now() < until {
                let tag = format!("{client}-{answered}");
                http.call(1, "echo", json!({ "text": tag })).await;
                let answer = http.answer().await;
                let answer = match answer.is_stream() {
                    true => {
                        let mut last = http.message().await.unwrap();
                        while let Some(next) = http.message().await {
                            last = next;
                        }
                        last
                    }
                    false => answer.json(),
                };
                assert_eq!(answer["result"]["content"][0]["text"], *tag, "{answer}");
                answered += 1;
            }
            answered
        }));
    }
    let mut answered = 0;
    for client in clients {
        answered += client.await.unwrap();
    }
    println!("{answered} answers, each to whoever asked");
    assert!(answered >= 200);
}

#[tokio::test]
async fn orderly_close_with_streams_open_takes_its_time_and_no_more() {
    let server = Running::with(|it| it.stream_after(Duration::ZERO)).await;
    let mut modern = server.raw().await;
    modern.call(1, "hang", json!({})).await;
    assert!(modern.answer().await.is_stream());
    let http = server.session("2025-11-25").await;
    let mut legacy = server.beside(&http).await;
    legacy.call(1, "hang", json!({})).await;
    assert!(legacy.answer().await.is_stream());
    let mut get = server.beside(&http).await;
    get.send("GET", b"").await;
    assert!(get.answer().await.is_stream());
    let mut finishes = server.raw().await;
    finishes
        .call(1, "nap", json!({ "to": 0, "delay_ms": 300 }))
        .await;
    assert!(finishes.answer().await.is_stream());
    server.hanging.comes_to(2).await;
    let idle = server.raw().await;

    let since = Instant::now();
    server.listening.shutdown();
    assert_eq!(finishes.message().await.unwrap()["id"], 1, "it was drained");
    let hanging = server.hanging.clone();
    tokio::time::timeout(Duration::from_secs(20), server.listening)
        .await
        .expect("it should return");
    let after = since.elapsed();
    assert_eq!(hanging.count(), 0);
    // A second to drain, half a second to flush; ten times the bar for a busy machine.
    assert!(after < Duration::from_secs(10), "{after:?}");
    assert!(
        after >= Duration::from_millis(900),
        "it drained for {after:?} only"
    );
    drop(idle);
}

#[tokio::test]
async fn orderly_close_new_requests_are_refused_while_others_finish() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    let mut late = server.raw().await;
    // Both connections are there; one of them is used.
    late.call(0, "echo", json!({ "text": "hi" })).await;
    late.answer().await;
    http.call(1, "nap", json!({ "to": 0, "delay_ms": 200 }))
        .await;
    until("it naps", || server.listening.service().handlers() == 1).await;
    let service = server.listening.service().clone();
    let closing = tokio::spawn(async move { service.shutdown().await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    late.call(2, "echo", json!({ "text": "hi" })).await;
    let answer = late.answer().await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(http.answer().await.status, 200);
    closing.await.unwrap();
}

#[tokio::test]
async fn a_server_says_how_it_is() {
    let server = Running::with(|it| it.with_metrics()).await;
    let http = server.session("2025-11-25").await;
    let mut modern = server.raw().await;
    modern.call(1, "hang", json!({})).await;
    server.hanging.comes_to(1).await;
    drop(modern);
    server.hanging.comes_to(0).await;
    let mut get = server.beside(&http).await;
    get.send("GET", b"").await;
    assert!(get.answer().await.is_stream());
    let mut hanging = server.raw().await;
    hanging.call(1, "hang", json!({})).await;
    server.hanging.comes_to(1).await;
    let mut observer = server.raw().await;
    observer.path = "/healthz".into();
    observer.send("GET", b"").await;
    assert_eq!(observer.answer().await.status, 200);
    observer.path = "/metrics".into();
    observer.send("GET", b"").await;
    let page = String::from_utf8(observer.answer().await.body).unwrap();
    for line in [
        "belay_requests_started_total 3",
        "belay_requests_ended_total{end=\"cancelled\"} 1",
        "belay_requests_ended_total{end=\"answered\"} 1",
        "belay_requests_in_flight 1",
        "belay_handler_stops_total{cause=\"disconnected\"} 1",
        "belay_cancel_to_stop_seconds_count 1",
        "belay_handlers 1",
        "belay_handlers_overrun 0",
        "belay_sessions 1",
        "belay_streams 1",
    ] {
        assert!(page.lines().any(|known| known == line), "{line}\n{page}");
    }
}

#[tokio::test]
async fn orderly_close_dropping_a_server_stops_its_handlers() {
    let server = Running::start().await;
    let client = Client::builder("test", "1").mode(Mode::Modern);
    let client = client.http(&server.url()).await.unwrap();
    let call = client.call_tool("hang", json!({})).start();
    server.hanging.comes_to(1).await;
    drop(server.listening);
    server.hanging.comes_to(0).await;
    assert!(call.await.unwrap_err().is_lost());
}

#[tokio::test]
async fn a_batch_is_bounded() {
    let server = Running::start().await;
    let mut http = server.session("2025-03-26").await;
    let many = format!("[{}1]", "1,".repeat(500_000));
    http.send("POST", many.as_bytes()).await;
    let answer = http.answer().await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.json()["error"]["message"]
            .to_string()
            .contains("100"),
        "{answer:?}"
    );
    still_answers(&server).await;
}

/// A stream that has no end of its own ends with its session, and with its server.
#[tokio::test]
async fn a_get_stream_ends_at_once_when_its_session_does() {
    let server = Running::start().await;
    for end in ["DELETE", "shutdown"] {
        let http = server.session("2025-11-25").await;
        let mut get = server.beside(&http).await;
        get.send("GET", b"").await;
        assert!(get.answer().await.is_stream());
        // Its keep-alives are seconds apart by now.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let since = Instant::now();
        match end {
            "DELETE" => {
                let mut beside = server.beside(&http).await;
                beside.send("DELETE", b"").await;
                assert_eq!(beside.answer().await.status, 204);
            }
            _ => server.listening.shutdown(),
        }
        assert!(get.message().await.is_none());
        assert!(
            since.elapsed() < Duration::from_secs(1),
            "{end}: {:?}",
            since.elapsed()
        );
    }
}

#[tokio::test]
async fn what_has_no_limit_is_said_with_the_largest_number() {
    let server = Running::with(|it| {
        it.stream_after(Duration::MAX)
            .session_idle(Duration::MAX)
            .keep_alive(Duration::MAX)
            .write_stall(Duration::MAX)
            .read_timeouts(Duration::MAX, Duration::MAX)
            .in_flight(usize::MAX)
            .in_flight_per_connection(usize::MAX)
            .connections(usize::MAX)
            .sessions(usize::MAX)
            .kept_bytes(usize::MAX)
    })
    .await;
    still_answers(&server).await;
    let mut http = server.session("2025-11-25").await;
    http.call(1, "nap", json!({ "to": 0, "delay_ms": 400 }))
        .await;
    assert!(!http.answer().await.is_stream(), "it waits for the answer");
}

#[tokio::test]
async fn one_connection_too_many_waits_until_another_ends() {
    let server = Running::with(|it| it.connections(2)).await;
    let mut first = server.raw().await;
    let second = server.raw().await;
    first.call(1, "echo", json!({ "text": "hi" })).await;
    assert_eq!(first.answer().await.status, 200);
    let mut third = server.raw().await;
    third.call(1, "echo", json!({ "text": "hi" })).await;
    let answered = tokio::time::timeout(Duration::from_millis(200), third.try_answer());
    assert!(answered.await.is_err(), "it waits");
    drop(second);
    assert_eq!(third.answer().await.status, 200);
}

#[tokio::test]
async fn bodies_that_are_read_at_once_have_a_limit_in_all() {
    let server = Running::with(|it| it.kept_bytes(200_000)).await;
    let mut slow = server.raw().await;
    slow.bytes(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Accept: */*\r\nContent-Length: 90000\r\n\r\n",
    )
    .await;
    slow.bytes(&[b' '; 80_000]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut http = server.raw().await;
    http.call(1, "echo", json!({ "text": "x".repeat(50_000) }))
        .await;
    let answer = http.answer().await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    drop(slow);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut http = server.raw().await;
    http.call(1, "echo", json!({ "text": "x".repeat(50_000) }))
        .await;
    assert_eq!(http.answer().await.status, 200);
}

#[tokio::test]
async fn an_event_stream_takes_cancels_whatever_waits_to_be_read() {
    let server = Running::of(
        |server| server.limits(|limits| limits.queued_answers = 0),
        |it| it,
    );
    let server = server.await;
    let client = Client::http(&format!("http://{}/sse", server.address()))
        .await
        .unwrap();
    let call = client.call_tool("hang", json!({})).start();
    server.hanging.comes_to(1).await;
    drop(call);
    server.hanging.comes_to(0).await;
}

/// **bounded**: a server whose own code hears what clients say is not filled with what it has not heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounded_what_clients_say_waits_for_whoever_hears_it() {
    for events in [false, true] {
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let (gate, heard) = (Mutex::new(gate), Arc::new(AtomicUsize::new(0)));
        let count = heard.clone();
        let server = Server::new("test", "1").on_notification(move |told| {
            // That the client is initialized comes, too.
            let counts = told.method == "notifications/roots/list_changed";
            if counts && count.fetch_add(1, Ordering::SeqCst) == 0 {
                let _ = gate.lock().unwrap().recv();
            }
        });
        let endpoint = Endpoint::new(server).sse(true);
        let listening = endpoint.bind("127.0.0.1:0").await.unwrap();
        let mut http = RawHttp::connect(listening.address()).await;
        let mut stream = RawHttp::connect(listening.address()).await;
        match events {
            false => http.initialize("2025-11-25").await,
            true => {
                stream.path = "/sse".into();
                stream.send("GET", b"").await;
                assert!(stream.answer().await.is_stream());
                let (_, place) = stream.event().await.unwrap();
                http.path = format!("/{}", place.as_str().unwrap());
            }
        }
        let said = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
        let mut taken = 0;
        loop {
            http.post(&said).await;
            let answer = tokio::time::timeout(Duration::from_millis(200), http.answer());
            match answer.await {
                Ok(answer) => assert_eq!(answer.status, 202),
                Err(_) => break,
            }
            taken += 1;
            assert!(taken < 100, "it takes whatever comes");
        }
        go.send(()).unwrap();
        assert_eq!(http.answer().await.status, 202);
        until("all of it is heard", || {
            heard.load(Ordering::SeqCst) == taken + 1
        })
        .await;
    }
}
