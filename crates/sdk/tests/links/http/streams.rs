//! HTTP/2: many requests on one connection, each with an end of its own.

use std::time::Duration;

use belay_testkit::until;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;

use super::Running;

type Sender = SendRequest<Full<Bytes>>;

async fn connect(server: &Running) -> (Sender, tokio::task::JoinHandle<hyper::Result<()>>) {
    let stream = tokio::net::TcpStream::connect(server.address())
        .await
        .unwrap();
    stream.set_nodelay(true).unwrap();
    let io = TokioIo::new(stream);
    let executor = TokioExecutor::new();
    let (sender, connection) = hyper::client::conn::http2::handshake(executor, io)
        .await
        .unwrap();
    (sender, tokio::spawn(connection))
}

fn call(server: &Running, tool: &str, arguments: serde_json::Value) -> Request<Full<Bytes>> {
    let meta = json!({
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    Request::post(server.url())
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", tool)
        .body(Full::new(body.to_string().into()))
        .unwrap()
}

async fn text(response: Response<Incoming>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn stops_with_its_caller_one_reset_cancels_one_of_many() {
    for stream_after in [Duration::ZERO, Duration::from_secs(600)] {
        let server = Running::with(|it| it.stream_after(stream_after)).await;
        let (sender, connection) = connect(&server).await;
        let mut hangs = Vec::new();
        for _ in 0..10 {
            let mut sender = sender.clone();
            let request = call(&server, "hang", json!({}));
            hangs.push(tokio::spawn(async move {
                let response = sender.send_request(request).await.unwrap();
                response.into_body().collect().await.map(drop)
            }));
        }
        server.hanging.comes_to(10).await;
        for left in (0..10).rev() {
            hangs.pop().unwrap().abort();
            server.hanging.comes_to(left).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(server.hanging.count(), left, "and no other");
        }
        let echo = call(&server, "echo", json!({ "text": "the connection lives" }));
        let echo = sender.clone().send_request(echo).await.unwrap();
        assert!(text(echo).await.contains("the connection lives"));
        assert!(!connection.is_finished());
    }
}

#[tokio::test]
async fn ten_thousand_resets_one_after_another_leave_nothing_and_draw_no_goaway() {
    let server = Running::start().await;
    let (mut sender, connection) = connect(&server).await;
    for _ in 0..10_000 {
        let response = sender.send_request(call(&server, "shout", json!({}))).await;
        drop(response.expect("no GOAWAY"));
    }
    server.hanging.comes_to(0).await;
    until("no handler is left", || {
        server.listening.service().handlers() == 0
    })
    .await;
    let echo = call(&server, "echo", json!({ "text": "hi" }));
    assert!(
        text(sender.send_request(echo).await.unwrap())
            .await
            .contains("hi")
    );
    assert!(!connection.is_finished());
    let requests = server.listening.ledger().requests;
    assert_eq!(requests.started(), 10_001);
    assert_eq!(requests.in_flight(), 0);
}

/// Handlers that do not stop at once count until they have: a flood of cancelled requests cannot
/// start more of them than there may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounded_a_flood_of_resets_never_raises_the_number_of_handlers_over_its_limit() {
    use belay::{Context, Tool};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Counted {
        fn new() -> Self {
            let running = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
            MOST.fetch_max(running, Ordering::SeqCst);
            Self
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            RUNNING.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let limit = 16;
    let server = Running::of(
        |server| {
            server.tool(
                Tool::new("dawdle", |cx: Context, _: super::Nothing| async move {
                    let _running = Counted::new();
                    cx.stopped().await;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                })
                .grace(Duration::from_secs(5)),
            )
        },
        |it| it.in_flight_per_connection(limit).in_flight(64),
    )
    .await;
    let server = Arc::new(server);
    let mut floods = Vec::new();
    for _ in 0..2 {
        let server = server.clone();
        floods.push(tokio::spawn(async move {
            let (mut sender, _connection) = connect(&server).await;
            for _ in 0..2000 {
                let request = call(&server, "dawdle", json!({}));
                let asked = sender.send_request(request);
                let _ = tokio::time::timeout(Duration::from_micros(300), asked).await;
                if sender.is_closed() {
                    // Enough is enough: it was told to calm down.
                    (sender, _) = connect(&server).await;
                }
            }
        }));
    }
    for flood in floods {
        flood.await.unwrap();
    }
    let most = MOST.load(Ordering::SeqCst);
    println!("at most {most} ran at once");
    assert!(most > 0 && most <= 64, "{most} ran at once");
    until("all of them are gone", || {
        RUNNING.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn headers_are_counted() {
    let server = Running::start().await;
    let (mut sender, _connection) = connect(&server).await;
    for (more, status) in [(50, 200), (60, 431), (300, 431)] {
        let mut request = call(&server, "echo", json!({ "text": "hi" }));
        for number in 0..more {
            let name = http::HeaderName::try_from(format!("x-{number}")).unwrap();
            request.headers_mut().insert(name, "x".parse().unwrap());
        }
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), status, "{more}");
    }
}
