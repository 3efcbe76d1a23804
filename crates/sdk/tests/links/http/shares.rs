//! **bounded**: no client takes a limit away from the others.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use belay::Principal;
use belay::http::{Body, Endpoint, HttpService};
use belay_testkit::{RawHttp, until};
use http::{Request, Response};
use http_body_util::Full;
use serde_json::json;
use tokio::net::TcpSocket;

use super::{Hanging, Running, server};

/// Somebody, by an address. That of this machine itself stands for many, and has no share.
async fn from(address: &str, server: &Running) -> RawHttp {
    let socket = TcpSocket::new_v4().unwrap();
    let address: IpAddr = address.parse().unwrap();
    socket.bind(SocketAddr::new(address, 0)).unwrap();
    RawHttp::over(socket.connect(server.address()).await.unwrap())
}

const GREEDY: &str = "127.0.0.2";
const OTHER: &str = "127.0.0.3";
const PROXY: &str = "127.0.0.4";

async fn echoes(http: &mut RawHttp) -> bool {
    http.call(1, "echo", json!({ "text": "hi" })).await;
    http.try_answer()
        .await
        .is_ok_and(|answer| answer.status == 200)
}

#[tokio::test]
async fn bounded_one_client_has_half_of_the_connections() {
    let server = Running::with(|it| it.connections(8).reverse_proxy(PROXY.parse().unwrap())).await;
    let mut greedy = Vec::new();
    for _ in 0..4 {
        let mut http = from(GREEDY, &server).await;
        assert!(echoes(&mut http).await);
        greedy.push(http);
    }
    let mut one_more = from(GREEDY, &server).await;
    assert!(!echoes(&mut one_more).await, "it is closed");
    let mut other = from(OTHER, &server).await;
    assert!(echoes(&mut other).await, "another is let in");
    // Those of a proxy are those of many.
    let mut proxied = Vec::new();
    for _ in 0..3 {
        let mut http = from(PROXY, &server).await;
        assert!(echoes(&mut http).await);
        proxied.push(http);
    }
    greedy.pop();
    drop(proxied);
    // As soon as the server has seen that it was given back.
    for attempt in 0.. {
        let mut again = from(GREEDY, &server).await;
        if echoes(&mut again).await {
            break;
        }
        assert!(attempt < 1000, "nothing was given back");
    }
}

/// Opens a session.
async fn hello(mut http: RawHttp) -> u16 {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    http.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))
        .await;
    http.answer().await.status
}

#[tokio::test]
async fn bounded_one_client_has_half_of_the_sessions() {
    let server = Running::with(|it| it.sessions(8)).await;
    for _ in 0..4 {
        assert_eq!(hello(from(GREEDY, &server).await).await, 200);
    }
    assert_eq!(hello(from(GREEDY, &server).await).await, 503);
    assert_eq!(hello(from(OTHER, &server).await).await, 200);
    // An event stream is a session as well.
    let stream = |http: RawHttp| async {
        let mut http = http;
        http.path = "/sse".into();
        http.send("GET", b"").await;
        let status = http.answer().await.status;
        (http, status)
    };
    assert_eq!(stream(from(GREEDY, &server).await).await.1, 503);
    let (_open, status) = stream(from(OTHER, &server).await).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn bounded_one_client_has_half_of_the_handlers() {
    let server = Running::with(|it| it.in_flight(8)).await;
    let hang = async |http: RawHttp| {
        let mut http = http;
        http.call(1, "hang", json!({})).await;
        http
    };
    let mut greedy = Vec::new();
    for count in 1..=4 {
        greedy.push(hang(from(GREEDY, &server).await).await);
        server.hanging.comes_to(count).await;
    }
    let mut one_more = hang(from(GREEDY, &server).await).await;
    assert_eq!(one_more.answer().await.status, 429);
    let _other = hang(from(OTHER, &server).await).await;
    server.hanging.comes_to(5).await;
    drop(greedy);
    server.hanging.comes_to(1).await;
    until("all places are free", || {
        server.listening.service().handlers() == 1
    })
    .await;
    let _again = hang(from(GREEDY, &server).await).await;
    server.hanging.comes_to(2).await;
}

/// Has somebody call `hang`, with so much padding.
async fn post(service: &HttpService, who: &str, padding: usize) -> Response<Body> {
    let params = json!({ "name": "hang", "arguments": { "padding": "x".repeat(padding) },
        "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} } });
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut request = Request::post("http://localhost/mcp")
        .header("Host", "localhost")
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "hang")
        .body(Full::new(bytes::Bytes::from(body)))
        .unwrap();
    request.extensions_mut().insert(Principal::new(who));
    service.answer(request).await
}

/// However small they are: on HTTP/2 there can be many on each connection.
#[tokio::test]
async fn bounded_one_principal_has_half_of_the_open_requests() {
    let hanging = Hanging::default();
    let service = Endpoint::new(server(&hanging)).connections(4).service();
    let greedy = [
        post(&service, "greedy", 0).await,
        post(&service, "greedy", 0).await,
    ];
    assert!(greedy.iter().all(|response| response.status() == 200));
    assert_eq!(post(&service, "greedy", 0).await.status(), 503);
    let other = post(&service, "other", 0).await;
    assert_eq!(other.status(), 200);
    // Not the end of a handler gives its place back, but the end of the response.
    drop(greedy);
    assert_eq!(post(&service, "greedy", 0).await.status(), 200);
}

/// Behind something that knows who asks, that is what counts, and not from where.
#[tokio::test]
async fn bounded_one_principal_has_half_of_the_bytes() {
    let hanging = Hanging::default();
    let service = Endpoint::new(server(&hanging))
        .kept_bytes(600_000)
        .service();
    let post = async |who: &str| post(&service, who, 100_000).await;
    let is_stream = |response: &Response<_>| response.status() == 200;
    // Half of three quarters of the budget is two of these bodies.
    let greedy = [post("greedy").await, post("greedy").await];
    assert!(greedy.iter().all(is_stream));
    assert_eq!(post("greedy").await.status(), 503);
    let other = post("other").await;
    assert!(is_stream(&other));
    hanging.comes_to(3).await;
    drop(greedy);
    hanging.comes_to(1).await;
    until("all is given back", || service.handlers() == 1).await;
    assert!(is_stream(&post("greedy").await));
}

/// Where one client has its share, those of its sessions make room that it has never used.
#[tokio::test(start_paused = true)]
async fn bounded_a_client_that_has_its_share_makes_room_by_its_own() {
    let server = Running::with(|it| it.sessions(8)).await;
    let mut first = from(GREEDY, &server).await;
    first.initialize("2025-11-25").await;
    let second = hello(from(GREEDY, &server).await).await;
    let others = [
        hello(from(GREEDY, &server).await).await,
        hello(from(GREEDY, &server).await).await,
    ];
    assert_eq!((second, others), (200, [200, 200]));
    assert_eq!(
        hello(from(GREEDY, &server).await).await,
        503,
        "they are new"
    );
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(hello(from(GREEDY, &server).await).await, 200);
    assert_eq!(server.listening.service().sessions(), 4);
    first.call(1, "echo", json!({ "text": "hi" })).await;
    assert_eq!(first.answer().await.status, 200, "what is used stays");
}

/// At the limit a session that was never used makes room, but not for one who has several.
#[tokio::test(start_paused = true)]
async fn bounded_nobody_pushes_others_out_with_sessions() {
    let server = Running::with(|it| it.sessions(4)).await;
    let mut held = Vec::new();
    for address in [GREEDY, GREEDY, OTHER, "127.0.0.5"] {
        held.push(hello(from(address, &server).await).await);
    }
    assert!(held.iter().all(|status| *status == 200), "{held:?}");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(hello(from(GREEDY, &server).await).await, 503);
    assert_eq!(server.listening.service().sessions(), 4, "nobody had to go");
    assert_eq!(hello(from("127.0.0.6", &server).await).await, 200);
    assert_eq!(server.listening.service().sessions(), 4);
}
