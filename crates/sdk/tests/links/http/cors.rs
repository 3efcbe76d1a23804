//! Pages of allowed origins can speak to a server from a browser, and no others.

use belay_testkit::{RawAnswer, RawHttp};
use serde_json::json;

use super::Running;

const PAGE: &str = "https://App.example";

async fn server() -> Running {
    Running::with(|it| {
        it.allow_host("localhost")
            .allow_origin("https://app.example")
    })
    .await
}

/// What a browser asks before it lets a page speak.
async fn preflight(server: &Running, path: &str, origin: &str, headers: Option<&str>) -> RawAnswer {
    let mut http = server.raw().await;
    http.headers.retain(|(name, _)| name == "Host");
    http.path = path.into();
    http.set("Origin", origin);
    http.set("Access-Control-Request-Method", "POST");
    http.set("Access-Control-Request-Headers", headers);
    http.send("OPTIONS", b"").await;
    http.answer().await
}

fn cors_headers(answer: &RawAnswer) -> Vec<&str> {
    let names = answer.headers.iter().map(|(name, _)| name.as_str());
    names
        .filter(|name| name.starts_with("access-control-"))
        .collect()
}

/// What lets a page see an answer.
fn is_shown_to(answer: &RawAnswer, origin: &str) {
    let exposed = "Mcp-Session-Id, Retry-After";
    for (name, expected) in [
        ("access-control-allow-origin", Some(origin)),
        ("access-control-expose-headers", Some(exposed)),
        ("vary", Some("Origin")),
        ("access-control-allow-credentials", None),
    ] {
        assert_eq!(answer.header(name), expected, "{name}: {answer:?}");
    }
}

#[tokio::test]
async fn a_page_of_an_allowed_origin_is_told_what_it_may_send() {
    let server = server().await;
    let asked = "content-type,mcp-session-id, MCP-Protocol-Version, mcp-method, mcp-name, \
                 mcp-param-region, authorization, accept, last-event-id, x-other, mcp-params, , a b";
    let known = "content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, \
                 mcp-param-region, authorization, accept, last-event-id";
    for (path, methods) in [
        ("/mcp", "POST, GET, DELETE"),
        ("/sse", "GET"),
        ("/messages?sessionId=1", "POST"),
    ] {
        for origin in [PAGE, "http://localhost:6274"] {
            let answer = preflight(&server, path, origin, Some(asked)).await;
            assert_eq!(answer.status, 204, "{path}");
            for (name, expected) in [
                ("access-control-allow-origin", Some(origin)),
                ("access-control-allow-methods", Some(methods)),
                ("access-control-allow-headers", Some(known)),
                ("access-control-max-age", Some("7200")),
                ("access-control-allow-credentials", None),
                ("vary", Some("Origin")),
            ] {
                assert_eq!(answer.header(name), expected, "{path}: {name}");
            }
        }
    }
    let answer = preflight(&server, "/mcp", PAGE, None).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-headers"), None);
    let answer = preflight(&server, "/mcp", PAGE, Some("x-other")).await;
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("access-control-allow-headers"), None);
    let answer = preflight(&server, "/nowhere", PAGE, None).await;
    assert_eq!(answer.status, 404);
    is_shown_to(&answer, PAGE);
}

#[tokio::test]
async fn a_server_without_sessions_has_one_method() {
    let server = Running::with(|it| it.sessionless().with_metrics()).await;
    let page = "http://localhost:6274";
    for (path, methods) in [("/mcp", "POST"), ("/metrics", "GET"), ("/healthz", "GET")] {
        let answer = preflight(&server, path, page, None).await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header("access-control-allow-methods"), Some(methods));
    }
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused_and_told_nothing() {
    let server = server().await;
    for origin in ["https://evil.example", "null", "http://app.example"] {
        for path in ["/mcp", "/sse", "/messages", "/nowhere"] {
            let answer = preflight(&server, path, origin, Some("content-type")).await;
            assert_eq!(answer.status, 403, "{origin} {path}");
            assert_eq!(cors_headers(&answer), [""; 0], "{origin} {path}");
        }
        let mut http = server.raw().await;
        http.set("Origin", origin);
        http.call(1, "echo", json!({ "text": "hi" })).await;
        let answer = http.answer().await;
        assert_eq!(answer.status, 403);
        assert_eq!(cors_headers(&answer), [""; 0], "{origin}");
    }
    // Nor is one that asks under a name that is not ours.
    let mut http = server.raw().await;
    http.set("Host", "evil.example");
    http.set("Origin", PAGE);
    http.call(1, "echo", json!({ "text": "hi" })).await;
    let answer = http.answer().await;
    assert_eq!(answer.status, 403);
    assert_eq!(cors_headers(&answer), [""; 0]);
}

#[tokio::test]
async fn options_that_no_browser_asks_for_are_not_allowed() {
    let server = server().await;
    for (origin, method) in [(None, None), (None, Some("POST")), (Some(PAGE), None)] {
        let mut http = server.raw().await;
        http.set("Origin", origin);
        http.set("Access-Control-Request-Method", method);
        http.send("OPTIONS", b"").await;
        let answer = http.answer().await;
        assert_eq!(answer.status, 405);
        assert_eq!(answer.header("allow"), Some("POST, GET, DELETE"));
        assert_eq!(answer.header("access-control-allow-methods"), None);
    }
}

#[tokio::test]
async fn every_answer_is_shown_to_a_page_of_an_allowed_origin() {
    let server = server().await;
    let page = async || {
        let mut http = server.raw().await;
        http.set("Origin", PAGE);
        http
    };
    let shown = async |http: &mut RawHttp, status: u16, is_stream: bool| {
        let answer = http.answer().await;
        assert_eq!((answer.status, answer.is_stream()), (status, is_stream));
        is_shown_to(&answer, PAGE);
        answer
    };
    // Modern: an answer, a stream, and refusals.
    let mut http = page().await;
    http.call(1, "echo", json!({ "text": "hi" })).await;
    shown(&mut http, 200, false).await;
    http.set("Mcp-Name", "other");
    http.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call" }))
        .await;
    shown(&mut http, 400, false).await;
    http.set("Content-Type", "text/plain");
    http.post(&json!({})).await;
    shown(&mut http, 415, false).await;
    let mut http = page().await;
    http.call(1, "shout", json!({})).await;
    shown(&mut http, 200, true).await;
    // Legacy: a session, its GET stream, what is accepted, its end, and what comes after it.
    let mut http = page().await;
    http.initialize("2025-11-25").await;
    let mut get = server.beside(&http).await;
    get.send("GET", b"").await;
    shown(&mut get, 200, true).await;
    http.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    shown(&mut http, 202, false).await;
    http.send("DELETE", b"").await;
    shown(&mut http, 204, false).await;
    http.send("GET", b"").await;
    shown(&mut http, 404, false).await;
    // 2024-11-05.
    let mut stream = page().await;
    stream.path = "/sse".into();
    stream.send("GET", b"").await;
    shown(&mut stream, 200, true).await;
    let mut http = page().await;
    http.path = "/messages".into();
    http.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
        .await;
    shown(&mut http, 404, false).await;
}

#[tokio::test]
async fn who_is_no_page_is_told_nothing_about_pages() {
    let server = server().await;
    let mut http = server.raw().await;
    http.call(1, "echo", json!({ "text": "hi" })).await;
    let answer = http.answer().await;
    assert_eq!((answer.status, cors_headers(&answer).len()), (200, 0));
}
