//! Who is let in, and what is said to those who are not.

use serde_json::{Value, json};

use super::Running;

fn echo(id: i64) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {
            "name": "echo", "arguments": { "text": "hi" },
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}
            }
        }
    })
}

#[tokio::test]
async fn names_and_origins() {
    let local = Running::start().await;
    let port = local.address().port();
    let here = format!("localhost:{port}");
    let cases: Vec<(Vec<(&str, &str)>, u16)> = vec![
        (vec![("Host", &here)], 200),
        (vec![("Host", "localhost")], 200),
        (vec![("Host", "LocalHost:1")], 200),
        (vec![("Host", "localhost.")], 200),
        (vec![("Host", "127.0.0.1:80")], 200),
        (vec![("Host", "127.9.9.9")], 200),
        (vec![("Host", "[::1]")], 200),
        (vec![("Host", "[::1]:8000")], 200),
        (vec![], 403),
        (vec![("Host", "")], 403),
        (vec![("Host", "localhost"), ("Host", "localhost")], 403),
        (vec![("Host", "localhost"), ("Host", "evil.example")], 403),
        (vec![("Host", "evil.example")], 403),
        (vec![("Host", "localhost.evil.example")], 403),
        (vec![("Host", "localhost@evil.example")], 403),
        (vec![("Host", "evil.example:80@localhost")], 403),
        (vec![("Host", "localhost:http")], 403),
        (vec![("Host", "localhost:99999")], 403),
        (vec![("Host", "[::1")], 403),
        (vec![("Host", "[::2]")], 403),
        (vec![("Host", "0.0.0.0")], 403),
        (vec![("Host", "192.168.0.1")], 403),
        (
            vec![("Host", "localhost"), ("Origin", "http://localhost")],
            200,
        ),
        (
            vec![("Host", "localhost"), ("Origin", "http://LOCALHOST:6274")],
            200,
        ),
        (
            vec![("Host", "localhost"), ("Origin", "https://127.0.0.1")],
            200,
        ),
        (
            vec![("Host", "localhost"), ("Origin", "http://[::1]:1")],
            200,
        ),
        (vec![("Host", "localhost"), ("Origin", "null")], 403),
        (vec![("Host", "localhost"), ("Origin", "")], 403),
        (
            vec![("Host", "localhost"), ("Origin", "http://evil.example")],
            403,
        ),
        (
            vec![
                ("Host", "localhost"),
                ("Origin", "http://localhost.evil.example"),
            ],
            403,
        ),
        (
            vec![("Host", "localhost"), ("Origin", "file://localhost")],
            403,
        ),
        (vec![("Host", "localhost"), ("Origin", "localhost")], 403),
        (
            vec![
                ("Host", "localhost"),
                ("Origin", "http://localhost"),
                ("Origin", "http://localhost"),
            ],
            403,
        ),
    ];
    check(&local, cases).await;

    let named = Running::with(|it| {
        it.allow_host("mcp.example.com")
            .allow_host("other.example:8443")
            .allow_origin("https://app.example/")
    })
    .await;
    let cases: Vec<(Vec<(&str, &str)>, u16)> = vec![
        (vec![("Host", "mcp.example.com")], 200),
        (vec![("Host", "MCP.example.com.:443")], 200),
        (vec![("Host", "other.example:8443")], 200),
        (vec![("Host", "other.example")], 403),
        (vec![("Host", "localhost")], 403),
        (
            vec![
                ("Host", "mcp.example.com"),
                ("Origin", "https://app.example"),
            ],
            200,
        ),
        (
            vec![
                ("Host", "mcp.example.com"),
                ("Origin", "https://mcp.example.com"),
            ],
            200,
        ),
        (
            vec![
                ("Host", "mcp.example.com"),
                ("Origin", "http://app.example"),
            ],
            403,
        ),
        (
            vec![("Host", "mcp.example.com"), ("Origin", "http://localhost")],
            403,
        ),
    ];
    check(&named, cases).await;
}

async fn check(server: &Running, cases: Vec<(Vec<(&str, &str)>, u16)>) {
    for (headers, expected) in cases {
        let mut http = server.raw().await;
        http.set("Host", None);
        http.set("MCP-Protocol-Version", "2026-07-28");
        http.set("Mcp-Method", "tools/call");
        http.set("Mcp-Name", "echo");
        let named = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        http.headers.extend(named);
        http.post(&echo(1)).await;
        let answer = http.answer().await;
        assert_eq!(answer.status, expected, "{headers:?}: {answer:?}");
    }
}

#[tokio::test]
async fn an_absolute_address_must_be_ours_too() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    http.path = "http://evil.example/mcp".into();
    http.post(&echo(1)).await;
    assert_eq!(http.answer().await.status, 403);
}

#[tokio::test]
async fn an_address_that_others_can_reach_needs_a_name() {
    let endpoint = || belay::http::Endpoint::new(belay::Server::new("test", "1"));
    let error = endpoint().bind("0.0.0.0:0").await.unwrap_err();
    assert!(error.to_string().contains("allow_host"), "{error}");
    let named = endpoint().allow_host("example.com").bind("0.0.0.0:0").await;
    assert!(named.is_ok());
}

/// What a page can send without asking first is not taken.
#[tokio::test]
async fn content_types_and_accept() {
    let server = Running::start().await;
    for (header, value, expected) in [
        ("Content-Type", Some("application/json"), 200),
        ("Content-Type", Some("Application/JSON; charset=utf-8"), 200),
        ("Content-Type", Some("text/plain"), 415),
        (
            "Content-Type",
            Some("application/x-www-form-urlencoded"),
            415,
        ),
        ("Content-Type", Some("multipart/form-data"), 415),
        ("Content-Type", Some("application/json-seq"), 415),
        ("Content-Type", None, 415),
        ("Content-Encoding", Some("gzip"), 415),
        ("Accept", Some("*/*"), 200),
        ("Accept", None, 200),
        ("Accept", Some("application/json"), 406),
        ("Accept", Some("text/event-stream"), 406),
        ("Accept", Some("text/html"), 406),
    ] {
        let mut http = server.raw().await;
        http.set("MCP-Protocol-Version", "2026-07-28");
        http.set("Mcp-Method", "tools/call");
        http.set("Mcp-Name", "echo");
        http.set(header, value);
        http.post(&echo(1)).await;
        assert_eq!(http.answer().await.status, expected, "{header}: {value:?}");
    }
}

#[tokio::test]
async fn modern_statuses_and_headers() {
    let server = Running::start().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let ask = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 5, "method": method, "params": params });
    let call = |meta: &Value| {
        ask(
            "tools/call",
            json!({ "name": "echo", "arguments": { "text": "hi" }, "_meta": meta }),
        )
    };
    let version = |version: &str| {
        json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {}
        })
    };
    let all: &[(&str, &str)] = &[
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
    ];
    let without = |name: &str| {
        all.iter()
            .copied()
            .filter(|(known, _)| *known != name)
            .collect::<Vec<_>>()
    };
    let with = |name: &'static str, value: &'static str| {
        let mut headers = without(name);
        headers.push((name, value));
        headers
    };
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, Value, u16, Option<i64>);
    let cases: Vec<Case<'_>> = vec![
        ("all is well", all.to_vec(), call(&meta), 200, None),
        (
            "base64",
            with("Mcp-Name", "=?base64?ZWNobw==?="),
            call(&meta),
            200,
            None,
        ),
        (
            "bad base64",
            with("Mcp-Name", "=?base64?ZWNobw?="),
            call(&meta),
            400,
            Some(-32020),
        ),
        (
            "another name",
            with("Mcp-Name", "Echo"),
            call(&meta),
            400,
            Some(-32020),
        ),
        (
            "another method",
            with("Mcp-Method", "tools/list"),
            call(&meta),
            400,
            Some(-32020),
        ),
        (
            "another version",
            with("MCP-Protocol-Version", "2025-11-25"),
            call(&meta),
            400,
            Some(-32020),
        ),
        (
            "no version",
            without("MCP-Protocol-Version"),
            call(&meta),
            400,
            Some(-32020),
        ),
        (
            "no method",
            without("Mcp-Method"),
            call(&meta),
            400,
            Some(-32020),
        ),
        (
            "no name",
            without("Mcp-Name"),
            call(&meta),
            400,
            Some(-32020),
        ),
        (
            "an unknown version",
            with("MCP-Protocol-Version", "2099-01-01"),
            call(&version("2099-01-01")),
            400,
            Some(-32022),
        ),
        (
            "no _meta",
            all.to_vec(),
            call(&json!({})),
            400,
            Some(-32602),
        ),
        (
            "no capabilities",
            all.to_vec(),
            call(&json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" })),
            400,
            Some(-32602),
        ),
        (
            "an unknown method",
            with("Mcp-Method", "nope"),
            ask("nope", json!({ "_meta": meta })),
            404,
            Some(-32601),
        ),
        (
            "an unknown tool",
            with("Mcp-Name", "nope"),
            ask("tools/call", json!({ "name": "nope", "_meta": meta })),
            200,
            Some(-32602),
        ),
        (
            "a legacy method",
            with("Mcp-Method", "ping"),
            ask("ping", json!({ "_meta": meta })),
            404,
            Some(-32601),
        ),
        (
            "nothing at all",
            vec![],
            ask("tools/list", json!({})),
            400,
            Some(-32602),
        ),
        (
            "no request",
            all.to_vec(),
            json!({ "jsonrpc": "2.0", "id": 5 }),
            400,
            Some(-32600),
        ),
        (
            "a batch",
            all.to_vec(),
            json!([call(&meta)]),
            400,
            Some(-32600),
        ),
    ];
    for (what, headers, body, status, code) in cases {
        let mut http = server.raw().await;
        let headers = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        http.headers.extend(headers);
        http.post(&body).await;
        let answer = http.answer().await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"].as_i64(), code, "{what}: {}", answer.json());
        if code.is_some() && what != "a batch" {
            assert_eq!(answer.json()["id"], 5, "{what}");
        }
    }
}

#[tokio::test]
async fn bad_json_other_methods_and_other_paths() {
    let server = Running::start().await;
    let mut http = server.raw().await;
    http.send("POST", b"{not json").await;
    let answer = http.answer().await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["error"]["code"], -32700);
    for method in ["PUT", "PATCH", "OPTIONS"] {
        let mut http = server.raw().await;
        http.send(method, b"").await;
        let answer = http.answer().await;
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.header("allow").unwrap().contains("POST"));
    }
    let mut http = server.raw().await;
    http.path = "/".into();
    http.post(&echo(1)).await;
    assert_eq!(http.answer().await.status, 404);
    let mut http = server.raw().await;
    http.call(1, "echo", json!({ "text": "and it still answers" }))
        .await;
    assert_eq!(http.answer().await.status, 200);
}

/// What hyper takes for chunked is chunked only, or it is not read.
#[tokio::test]
async fn a_transfer_coding_that_is_not_known_is_refused() {
    let server = Running::start().await;
    for (codings, status) in [
        (&["chunked"][..], 200),
        (&["Chunked"], 200),
        (&["gzip, chunked"], 501),
        (&["gzip", "chunked"], 501),
        (&["chunked, chunked"], 501),
        (&["identity, chunked"], 501),
    ] {
        let mut http = server.raw().await;
        let body = echo(1).to_string();
        let mut request = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\
                           Content-Type: application/json\r\nMcp-Method: tools/call\r\n\
                           Mcp-Name: echo\r\nMCP-Protocol-Version: 2026-07-28\r\n"
            .to_owned();
        for coding in codings {
            request.push_str(&format!("Transfer-Encoding: {coding}\r\n"));
        }
        request.push_str(&format!("\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()));
        http.bytes(request.as_bytes()).await;
        assert_eq!(http.answer().await.status, status, "{codings:?}");
    }
}

#[tokio::test]
async fn an_expectation_that_is_not_known_is_refused() {
    let server = Running::start().await;
    for (expected, status) in [
        ("100-continue", 200),
        ("100-Continue", 200),
        ("200-maybe", 417),
        ("100-continue, 200-maybe", 417),
        ("", 417),
    ] {
        let mut http = server.raw().await;
        http.set("Expect", expected);
        http.set("MCP-Protocol-Version", "2026-07-28");
        http.set("Mcp-Method", "tools/call");
        http.set("Mcp-Name", "echo");
        http.post(&echo(1)).await;
        let mut answer = http.answer().await;
        if answer.status == 100 {
            answer = http.answer().await;
        }
        assert_eq!(answer.status, status, "{expected}");
    }
}
