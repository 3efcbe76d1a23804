//! What can be said of a tool, and what becomes of it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belay::client::Mode;
use belay::outcome::StopCause;
use belay::types::meta_key::SERVER_INFO;
use belay::types::{CallToolResult, Era, LoggingLevel};
use belay::{Client, Context, Server, Tool};
use belay_testkit::{Peer, pair, until};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn say(name: &str) -> Tool {
    let text = name.to_owned();
    Tool::new(name, move |_: Context, _: Nothing| {
        let text = text.clone();
        async move { text }
    })
}

#[tokio::test]
async fn tools_come_and_go_at_run_time_and_legacy_clients_are_told() {
    let server = Server::new("test", "1").tool(say("a"));
    let tools = server.tools();
    let (mut peer, (reader, writer)) = Peer::pipe();
    let _serving = server.serve(reader, writer);
    peer.initialize().await;
    // The server has seen `initialized` once it answers what comes after it.
    peer.ask(1, "ping", json!({})).await;
    peer.expect_answer(1).await;

    tools.add(say("b"));
    peer.expect("notifications/tools/list_changed").await;
    assert!(tools.set_enabled("a", false));
    peer.expect("notifications/tools/list_changed").await;
    assert!(!tools.set_enabled("a", false), "nothing changed");
    assert_eq!(tools.names(), ["b"]);
    let call = json!({ "name": "a", "arguments": {} });
    peer.ask(2, "tools/call", call).await;
    assert_eq!(peer.expect_answer(2).await["error"]["code"], -32602);
    assert!(tools.remove("b"));
    peer.expect("notifications/tools/list_changed").await;
    peer.ask(3, "tools/list", json!({})).await;
    assert_eq!(peer.expect_answer(3).await["result"]["tools"], json!([]));
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_stopped_and_its_caller_told() {
    for mode in [Mode::Legacy, Mode::Auto] {
        let stopped = Arc::new(Mutex::new(None));
        let seen = stopped.clone();
        let slow = Tool::new("slow", move |cx: Context, _: Nothing| {
            let seen = seen.clone();
            async move { *seen.lock().unwrap() = Some(cx.stopped().await) }
        });
        let server = Server::new("test", "1").tool(slow.timeout(Duration::from_millis(30)));
        let (client, _serving) = pair(&server, mode).await.unwrap();
        let result = client.call_tool("slow", json!({})).await.unwrap();
        assert_eq!(result.is_error, Some(true));
        assert_eq!(result.content[0].as_text(), Some("timed out after 30ms"));
        let signed = result
            .meta
            .is_some_and(|meta| meta.as_map().contains_key(SERVER_INFO));
        assert_eq!(signed, client.era() == Era::Modern);
        until("it knows why", || stopped.lock().unwrap().is_some()).await;
        assert_eq!(*stopped.lock().unwrap(), Some(StopCause::Deadline));
    }
}

#[tokio::test]
async fn a_handler_knows_who_asks_and_how_much_time_it_has() {
    let who = Tool::new("who", |cx: Context, _: Nothing| async move {
        let left = cx.time_left().map(|left| left <= Duration::from_secs(60));
        format!(
            "{} {left:?}",
            cx.peer_info().map_or("?".into(), |info| info.name)
        )
    });
    let server = Server::new("test", "1").tool(who.timeout(Duration::from_secs(60)));
    for mode in [Mode::Legacy, Mode::Auto] {
        let (client, _serving) = pair(&server, mode).await.unwrap();
        let result = client.call_tool("who", json!({})).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("testkit Some(true)"));
    }
}

#[tokio::test]
async fn a_client_says_who_it_is() {
    let who = Tool::new("who", |cx: Context, _: Nothing| async move {
        let info = cx.peer_info().ok_or("nobody")?;
        let title = info.title.unwrap_or_default();
        Ok::<_, &str>(format!(
            "{title} of {}",
            info.website_url.unwrap_or_default()
        ))
    });
    let server = Server::new("test", "1").tool(who);
    for mode in [Mode::Legacy, Mode::Auto] {
        let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
        let _serving = server.serve(server_in, server_out);
        let client = Client::builder("host", "1")
            .info(|info| info.title("Host").website_url("https://example.com"))
            .mode(mode)
            .connect(client_in, client_out);
        let client = client.await.unwrap();
        let said = client.call_tool("who", json!({})).await.unwrap();
        let expected = Some("Host of https://example.com");
        assert_eq!(said.content[0].as_text(), expected);
    }
}

#[tokio::test]
async fn one_call_too_many_of_a_tool_is_refused() {
    let hang = Tool::new("hang", |_: Context, _: Nothing| {
        std::future::pending::<()>()
    });
    let server = Server::new("test", "1").tool(hang.concurrency(1));
    let (client, serving) = pair(&server, Mode::Auto).await.unwrap();
    let first = client.call_tool("hang", json!({})).start();
    until("it runs", || serving.handlers() == 1).await;
    let error = client.call_tool("hang", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -31001);
    drop(first);
}

#[tokio::test]
async fn the_reason_of_a_cancel_reaches_the_handler() {
    let cause = Arc::new(Mutex::new(None));
    let seen = cause.clone();
    let wait = Tool::new("wait", move |cx: Context, _: Nothing| {
        let seen = seen.clone();
        async move { *seen.lock().unwrap() = Some(cx.stopped().await) }
    });
    let server = Server::new("test", "1").tool(wait);
    let (client, serving) = pair(&server, Mode::Auto).await.unwrap();
    let call = client.call_tool("wait", json!({})).start();
    until("it runs", || serving.handlers() == 1).await;
    call.canceller().cancel_because("lunch");
    until("it knows why", || cause.lock().unwrap().is_some()).await;
    let reason = Some("lunch".into());
    assert_eq!(
        *cause.lock().unwrap(),
        Some(StopCause::Cancelled { reason })
    );
}

#[tokio::test]
async fn tree_what_a_handler_spawned_goes_with_it() {
    struct Told(Arc<Mutex<usize>>);
    impl Drop for Told {
        fn drop(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let dropped = Arc::new(Mutex::new(0));
    let counted = dropped.clone();
    let spawns = Tool::new("spawns", move |cx: Context, wait: Wait| {
        let told = Told(counted.clone());
        async move {
            cx.spawn(async move {
                let _told = told;
                std::future::pending().await
            });
            if wait.wait {
                std::future::pending().await
            }
        }
    });
    #[derive(Deserialize, JsonSchema)]
    struct Wait {
        wait: bool,
    }
    let server = Server::new("test", "1").tool(spawns);
    let (client, serving) = pair(&server, Mode::Auto).await.unwrap();
    client
        .call_tool("spawns", json!({ "wait": false }))
        .await
        .unwrap();
    until("the first is gone", || *dropped.lock().unwrap() == 1).await;
    let call = client.call_tool("spawns", json!({ "wait": true })).start();
    until("it runs", || serving.handlers() == 1).await;
    drop(call);
    until("the second is gone", || *dropped.lock().unwrap() == 2).await;
}

#[tokio::test]
async fn a_blocking_tool_holds_up_nobody() {
    let block = Tool::blocking("block", |_: Context, _: Nothing| {
        std::thread::sleep(Duration::from_millis(400));
        "done"
    });
    let server = Server::new("test", "1").tool(block).tool(say("a"));
    let (client, serving) = pair(&server, Mode::Auto).await.unwrap();
    let start = Instant::now();
    let blocked = client.call_tool("block", json!({})).start();
    let cancelled = client.call_tool("block", json!({})).start();
    client.call_tool("a", json!({})).await.unwrap();
    assert!(
        start.elapsed() < Duration::from_millis(300),
        "{:?}",
        start.elapsed()
    );
    drop(cancelled);
    assert_eq!(blocked.await.unwrap().content[0].as_text(), Some("done"));
    until("both threads are done", || serving.handlers() == 0).await;
}

#[tokio::test]
async fn a_log_message_reaches_a_legacy_client_and_a_modern_one_that_asked() {
    let logs = Tool::new("logs", |cx: Context, _: Nothing| async move {
        cx.log(LoggingLevel::Info, "hello").await;
    });
    let server = Server::new("test", "1").tool(logs);
    for (mode, level, expected) in [
        (Mode::Legacy, None, 1),
        (Mode::Modern, None, 0),
        (Mode::Modern, Some("error"), 0),
        (Mode::Modern, Some("debug"), 1),
    ] {
        let heard = Arc::new(Mutex::new(0));
        let count = heard.clone();
        let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
        let _serving = server.serve(server_in, server_out);
        let client = Client::builder("test", "1")
            .mode(mode)
            .on_notification(move |told| {
                assert_eq!(&*told.method, "notifications/message");
                *count.lock().unwrap() += 1;
            })
            .connect(client_in, client_out)
            .await
            .unwrap();
        let mut call = client.call_tool("logs", json!({}));
        if let Some(level) = level {
            call = call.meta("io.modelcontextprotocol/logLevel", level);
        }
        call.await.unwrap();
        assert_eq!(*heard.lock().unwrap(), expected, "{mode:?} {level:?}");
    }
}

#[tokio::test]
async fn values_travel_with_a_request_by_their_type() {
    struct User(String);
    let tool = Tool::new("who", |cx: Context, _: Nothing| async move {
        cx.extensions().insert(User("ann".into()));
        cx.extensions()
            .get::<User>()
            .map_or("nobody".into(), |user| user.0.clone())
    });
    let server = Server::new("test", "1").tool(tool);
    let (client, _serving) = pair(&server, Mode::Auto).await.unwrap();
    let result = client.call_tool("who", json!({})).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("ann"));
}

#[cfg(feature = "validate")]
#[derive(Deserialize, JsonSchema)]
struct Strict {
    #[schemars(range(min = 1, max = 3))]
    count: u32,
    #[schemars(regex(pattern = "^[a-z]+$"))]
    word: String,
}

/// What the type allows and the schema does not. Only with the feature `validate`: where it is off,
/// nothing is checked but the types.
#[cfg(feature = "validate")]
#[tokio::test]
async fn arguments_are_held_against_the_schema() {
    let tool = Tool::new("strict", |_: Context, it: Strict| async move {
        format!("{} {}", it.count, it.word)
    });
    let (client, _serving) = pair(&Server::new("test", "1").tool(tool), Mode::Auto)
        .await
        .unwrap();
    for (arguments, said) in [
        (json!({ "count": 2, "word": "ab" }), "2 ab"),
        (
            json!({ "count": 4, "word": "ab" }),
            "invalid arguments: `count`: 4 is more than 3",
        ),
        (
            json!({ "count": 2, "word": "AB" }),
            "invalid arguments: `word`: \"AB\" does not match the pattern \"^[a-z]+$\"",
        ),
        (
            json!({ "word": "ab" }),
            "invalid arguments: `count` is missing",
        ),
    ] {
        let result = client.call_tool("strict", arguments).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some(said));
        assert_eq!(result.is_error == Some(true), said.starts_with("invalid"));
    }
}

/// What is a number on the wire and none here is not a way around the schema.
#[cfg(feature = "validate")]
#[tokio::test]
async fn arguments_that_cannot_be_read_do_not_fit() {
    let bounded = json!({ "properties": { "count": { "maximum": 3 } } });
    let tool = Tool::new("strict", |_: Context, it: Strict| async move {
        format!("{} {}", it.count, it.word)
    });
    let tool = tool.input_schema(bounded.as_object().unwrap().clone());
    let (mut peer, (reader, writer)) = Peer::pipe();
    let server = Server::new("test", "1").tool(tool);
    let _serving = server.serve(reader, writer);
    peer.initialize().await;
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"strict","arguments":{"count":9,"word":"a","x":1e999}}}"#;
    peer.say_raw(format!("{call}\n")).await;
    let answer = peer.expect_answer(5).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
}

/// What was to be checked and cannot be, is not let in.
#[cfg(feature = "validate")]
#[tokio::test]
async fn a_tool_whose_schema_cannot_be_used_cannot_be_called() {
    let elsewhere = json!({ "type": "object", "$ref": "https://example.com/schema" });
    let elsewhere = elsewhere.as_object().unwrap();
    let ran = Arc::new(Mutex::new(false));
    let tool = |name: &str| {
        let ran = ran.clone();
        Tool::new(name, move |_: Context, (): ()| {
            *ran.lock().unwrap() = true;
            async { "ran" }
        })
    };
    let server = Server::new("test", "1")
        .tool(tool("takes").input_schema(elsewhere.clone()))
        .tool(tool("gives").output_schema(elsewhere.clone()));
    let (client, _serving) = pair(&server, Mode::Auto).await.unwrap();
    for name in ["takes", "gives"] {
        let error = client.call_tool(name, json!({})).await.unwrap_err();
        assert!(error.to_string().contains("nothing is fetched"), "{error}");
    }
    assert!(!*ran.lock().unwrap(), "what cannot be checked is not done");
}

/// A server that does not keep its word.
#[cfg(feature = "validate")]
#[tokio::test]
async fn results_are_held_against_the_schema_that_was_listed() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let builder = Client::builder("test", "1").check_results();
    let connecting = tokio::spawn(builder.connect(reader, writer));
    peer.open_modern().await;
    let client = connecting.await.unwrap().unwrap();
    let listing = tokio::spawn(client.list_tools().start());
    let asked = peer.expect("tools/list").await;
    let output = json!({ "type": "object", "required": ["sum"] });
    let tool =
        json!({ "name": "add", "inputSchema": { "type": "object" }, "outputSchema": output });
    let odd = json!({
        "name": "odd", "inputSchema": { "type": "object" }, "outputSchema": { "$ref": "elsewhere" }
    });
    let page = json!({ "resultType": "complete", "tools": [tool, odd] });
    peer.answer(&asked, page.clone()).await;
    listing.await.unwrap().unwrap();
    for (tool, result, good) in [
        (
            "add",
            json!({ "content": [], "structuredContent": { "sum": 5 } }),
            true,
        ),
        ("add", json!({ "content": [], "isError": true }), true),
        (
            "add",
            json!({ "content": [], "structuredContent": {} }),
            false,
        ),
        ("add", json!({ "content": [] }), false),
        (
            "odd",
            json!({ "content": [], "structuredContent": {} }),
            false,
        ),
    ] {
        let call = tokio::spawn(client.call_tool(tool, json!({})).start());
        let asked = peer.expect("tools/call").await;
        let mut answer = result.clone();
        answer["resultType"] = "complete".into();
        peer.answer(&asked, answer).await;
        if !good {
            // It may have changed.
            let asked = peer.expect("tools/list").await;
            peer.answer(&asked, page.clone()).await;
        }
        match call.await.unwrap() {
            Ok(_) => assert!(good, "{result}"),
            Err(error) => {
                assert!(!good, "{result}: {error:?}");
                assert_eq!(error.kind(), belay::ErrorKind::Violated);
            }
        }
    }
    // One that has changed is looked at again.
    let call = tokio::spawn(client.call_tool("odd", json!({})).start());
    let asked = peer.expect("tools/call").await;
    let answer = json!({ "resultType": "complete", "content": [], "structuredContent": {} });
    peer.answer(&asked, answer).await;
    let asked = peer.expect("tools/list").await;
    let tool = json!({ "name": "odd", "inputSchema": { "type": "object" }, "outputSchema": {} });
    peer.answer(&asked, json!({ "resultType": "complete", "tools": [tool] }))
        .await;
    assert!(call.await.unwrap().is_ok());
}

/// A tool that does not give what it says is a mistake of the server's, and told as one.
#[tokio::test]
async fn a_tool_gives_what_its_output_schema_says() {
    let output = json!({ "type": "object", "properties": { "sum": { "type": "integer" } } });
    let output = output.as_object().unwrap().clone();
    let tool = |name: &str, result: CallToolResult| {
        let result = move |_: Context, (): ()| std::future::ready(result.clone());
        Tool::new(name, result).output_schema(output.clone())
    };
    let with = |content: serde_json::Value| {
        let mut result = CallToolResult::text("it is done");
        result.structured_content = Some(content);
        result
    };
    let server = Server::new("test", "1")
        .tool(tool("good", with(json!({ "sum": 5 }))))
        .tool(tool("failed", CallToolResult::error("no")))
        .tool(tool("nothing", CallToolResult::text("5")))
        .tool(tool("wrong", with(json!({ "sum": "5" }))));
    let (client, _serving) = pair(&server, Mode::Auto).await.unwrap();
    for (name, good) in [
        ("good", true),
        ("failed", true),
        ("nothing", false),
        ("wrong", !cfg!(feature = "validate")),
    ] {
        match client.call_tool(name, json!({})).await {
            Ok(_) => assert!(good, "{name}"),
            Err(error) => {
                assert!(!good, "{name}: {error}");
                assert_eq!(error.refusal().unwrap().code, -32603, "{error}");
            }
        }
    }
}

/// The protocol wants it said, wherever the rest of the schema is.
#[tokio::test]
async fn arguments_are_always_an_object() {
    #[derive(Deserialize, JsonSchema)]
    struct Inner {
        a: u32,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Wrapper(Inner);

    let wrapped = Tool::new("wrapped", |_: Context, it: Wrapper| async move {
        it.0.a.to_string()
    });
    let bare =
        Tool::new("bare", |_: Context, (): ()| async { "" }).input_schema(Default::default());
    let server = Server::new("test", "1").tool(wrapped).tool(bare);
    let (client, _serving) = pair(&server, Mode::Auto).await.unwrap();
    for tool in client.list_tools().await.unwrap().tools {
        assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
    }
    let result = client
        .call_tool("wrapped", json!({ "a": 5 }))
        .await
        .unwrap();
    assert_eq!(result.content[0].as_text(), Some("5"));
}

#[tokio::test]
async fn log_messages_say_who_speaks() {
    let tool = Tool::new("log", |cx: Context, (): ()| async move {
        cx.log_as("store", LoggingLevel::Warning, "low on tea")
            .await;
        "logged"
    });
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let builder = Client::builder("test", "1").on_log(move |message| {
        let _ = told.send(message);
    });
    let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
    let server = Server::new("test", "1").tool(tool);
    let _serving = server.serve(server_in, server_out);
    let client = builder.connect(client_in, client_out).await.unwrap();
    let call = client.call_tool("log", json!({}));
    call.log_level(LoggingLevel::Info).await.unwrap();
    let message = heard.recv().await.unwrap();
    assert_eq!(message.logger.as_deref(), Some("store"));
    assert_eq!(message.data, json!("low on tea"));
}
