//! Legacy sessions.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belay::http::Endpoint;
use belay::{Context, Principal, Server, Tool};
use belay_testkit::{RawHttp, until};
use serde_json::json;

use super::{Hanging, Running};

#[tokio::test]
async fn a_session_is_needed_known_and_ones_own() {
    let server = Running::start().await;
    let mut http = server.session("2025-11-25").await;
    http.call(1, "echo", json!({ "text": "hi" })).await;
    assert_eq!(
        http.answer().await.json()["result"]["content"][0]["text"],
        "hi"
    );
    for (session, version, status) in [
        (None, Some("2025-11-25"), 400),
        (Some("no such session"), Some("2025-11-25"), 404),
        (Some("ffffffffffffffffffffffffffffffff"), None, 404),
    ] {
        for method in ["POST", "GET", "DELETE"] {
            let mut other = server.beside(&http).await;
            other.set("Mcp-Session-Id", session);
            other.set("MCP-Protocol-Version", version);
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
            match method {
                "POST" => other.post(&body).await,
                method => other.send(method, b"").await,
            }
            let answer = other.answer().await;
            assert_eq!(answer.status, status, "{method} {session:?}: {answer:?}");
        }
    }
    let mut wrong = server.beside(&http).await;
    wrong.set("MCP-Protocol-Version", "2025-99-99");
    wrong.send("GET", b"").await;
    assert_eq!(wrong.answer().await.status, 400, "an unknown revision");
}

#[tokio::test]
async fn the_get_stream_carries_what_the_server_says_and_there_is_one() {
    let hanging = Hanging::default();
    let server = super::server(&hanging);
    let tools = server.tools();
    let listening = Endpoint::new(server).bind("127.0.0.1:0").await.unwrap();
    let mut http = RawHttp::connect(listening.address()).await;
    http.initialize("2025-11-25").await;
    // Said before anybody listens: it waits.
    tools.remove("nap");
    let beside = async || {
        let mut beside = RawHttp::connect(listening.address()).await;
        beside.headers.clone_from(&http.headers);
        beside
    };
    let mut stream = beside().await;
    stream.send("GET", b"").await;
    assert!(stream.answer().await.is_stream());
    let (last, changed) = stream.event().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");

    let mut second = beside().await;
    second.send("GET", b"").await;
    assert_eq!(second.answer().await.status, 409);

    drop(stream);
    tools.remove("count");
    let mut again = beside().await;
    again.set("Last-Event-ID", last.as_deref());
    again.send("GET", b"").await;
    assert!(again.answer().await.is_stream());
    let (next, changed) = again.event().await.unwrap();
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_ne!(next, last);
}

/// A request is run by its own POST, but not before what came earlier was acted upon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_is_acted_upon_before_a_request_that_came_later() {
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let (told, ran) = (order.clone(), order.clone());
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let begun = Mutex::new(Some(begun));
    let tool = Tool::new("run", move |_: Context, (): ()| {
        ran.lock().unwrap().push("handled");
        async { "done" }
    });
    let server = Server::new("test", "1")
        .tool(tool)
        .on_notification(move |notification| {
            if &*notification.method != "notifications/example" {
                return;
            }
            begun.lock().unwrap().take().unwrap().send(()).unwrap();
            // Long enough for the request to come.
            std::thread::sleep(Duration::from_millis(300));
            told.lock().unwrap().push("told");
        });
    let listening = Endpoint::new(server).bind("127.0.0.1:0").await.unwrap();
    let mut http = RawHttp::connect(listening.address()).await;
    http.initialize("2025-11-25").await;
    http.post(&json!({ "jsonrpc": "2.0", "method": "notifications/example" }))
        .await;
    assert_eq!(http.answer().await.status, 202);
    has_begun.await.unwrap();
    http.call(1, "run", json!({})).await;
    // It may have become a stream meanwhile.
    if http.answer().await.is_stream() {
        while http.message().await.is_some() {}
    }
    assert_eq!(*order.lock().unwrap(), ["told", "handled"]);
}

#[tokio::test]
async fn an_event_that_is_not_known_cannot_be_resumed_from() {
    let server = Running::start().await;
    let http = server.session("2025-11-25").await;
    for id in [
        "",
        "x",
        "1",
        "99-1",
        "0-99",
        "1-18446744073709551616",
        "-1--1",
    ] {
        let mut again = server.beside(&http).await;
        again.set("Last-Event-ID", id);
        again.send("GET", b"").await;
        assert_eq!(again.answer().await.status, 400, "{id:?}");
    }
}

#[tokio::test]
async fn a_session_is_forgotten_but_never_while_it_works() {
    let idle = Duration::from_millis(100);
    let server = Running::of(
        |server| server.timeouts(|timeouts| timeouts.resume_window = None),
        |it| it.session_idle(idle).stream_after(Duration::ZERO),
    )
    .await;
    let mut http = server.session("2025-11-25").await;
    http.call(1, "nap", json!({ "to": 0, "delay_ms": 500 }))
        .await;
    assert!(http.answer().await.is_stream());
    // Its stream breaks, so nobody is there; but something is worked on.
    let (greeting, _) = http.event().await.unwrap();
    let mut again = server.beside(&http).await;
    drop(http);
    tokio::time::sleep(idle * 3).await;
    assert_eq!(server.listening.service().sessions(), 1);
    again.set("Last-Event-ID", greeting.as_deref());
    again.send("GET", b"").await;
    assert!(again.answer().await.is_stream());
    assert_eq!(again.message().await.unwrap()["id"], 1);
    until("it is forgotten", || {
        server.listening.service().sessions() == 0
    })
    .await;
    again.set("Last-Event-ID", None);
    let mut after = server.beside(&again).await;
    after.call(2, "echo", json!({ "text": "hi" })).await;
    assert_eq!(after.answer().await.status, 404);
}

#[tokio::test]
async fn bounded_one_session_too_many_is_told_when_to_come_back() {
    let server = Running::with(|it| it.sessions(2)).await;
    let first = server.session("2025-11-25").await;
    let _second = server.session("2025-11-25").await;
    let mut third = server.raw().await;
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    third.post(&hello).await;
    let answer = third.answer().await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    let mut first = server.beside(&first).await;
    first.send("DELETE", b"").await;
    assert_eq!(first.answer().await.status, 204);
    third.post(&hello).await;
    assert_eq!(third.answer().await.status, 200);
}

/// Those that only said hello make room, a second after they did; those that are used stay.
#[tokio::test]
async fn bounded_a_flood_of_hellos_ends_no_session_that_is_used() {
    let server = Running::with(|it| it.sessions(3)).await;
    let mut honest = server.session("2025-11-25").await;
    honest.call(1, "echo", json!({ "text": "hi" })).await;
    assert_eq!(honest.answer().await.status, 200);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let start = Instant::now();
    let mut opened = 0;
    while opened < 6 {
        let mut flood = server.raw().await;
        flood.post(&hello).await;
        match flood.answer().await.status {
            200 => opened += 1,
            503 => assert!(
                start.elapsed() < Duration::from_secs(20),
                "{opened} were opened"
            ),
            status => panic!("{status}"),
        }
    }
    assert_eq!(server.listening.service().sessions(), 3);
    let mut honest = server.beside(&honest).await;
    honest.call(2, "echo", json!({ "text": "hi" })).await;
    assert_eq!(honest.answer().await.status, 200);
}

#[tokio::test]
async fn a_refused_initialize_leaves_no_session() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    http.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} }))
        .await;
    let answer = http.answer().await;
    assert_eq!(answer.json()["error"]["code"], -32602);
    assert_eq!(answer.header("mcp-session-id"), None);
    until("there is none", || {
        server.listening.service().sessions() == 0
    })
    .await;
}

#[tokio::test]
async fn batches_are_for_the_revision_that_has_them() {
    let server = Running::start().await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "a" } } },
        { "jsonrpc": "2.0", "method": "notifications/whatever" },
        { "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "b" } } },
    ]);
    let mut http = server.session("2025-03-26").await;
    http.post(&batch).await;
    assert!(http.answer().await.is_stream());
    let mut ids: Vec<i64> = Vec::new();
    while let Some(message) = http.message().await {
        ids.push(message["id"].as_i64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
    let mut http = server.session("2025-06-18").await;
    http.post(&batch).await;
    assert_eq!(http.answer().await.status, 400);
}

/// Whoever knows the id of somebody else's session still is not them.
#[tokio::test]
async fn a_session_belongs_to_whoever_opened_it() {
    use http_body_util::{BodyExt, Full};

    let service = Endpoint::new(super::server(&Hanging::default())).service();
    let send = async |who: &str, session: Option<&str>, body: serde_json::Value| {
        let mut request = http::Request::post("/mcp")
            .header("Host", "localhost")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("Mcp-Session-Id", session);
        }
        let mut request = request
            .body(Full::new(body.to_string().into_bytes().into()))
            .unwrap();
        request.extensions_mut().insert(Principal::new(who));
        let _: &http::Request<Full<bytes::Bytes>> = &request;
        let response = service.answer(request).await;
        let session = response.headers().get("mcp-session-id").cloned();
        let status = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        (status, session)
    };
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let (status, session) = send("alice", None, hello).await;
    assert_eq!(status, 200);
    let session = session.unwrap();
    let session = session.to_str().unwrap();
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(send("mallory", Some(session), list.clone()).await.0, 404);
    assert_eq!(send("alice", Some(session), list).await.0, 200);
}
