//! Tools, and what a server says of itself.

use std::sync::{Arc, Mutex};

use belay::layers::TraceContext;
use belay::types::{Era, ListTools, LoggingLevel, ProgressParams};
use serde_json::json;

use super::{Connected, next_of, text};

pub(super) async fn introductions(it: Connected) {
    let info = it.client.server_info().unwrap();
    assert_eq!(
        (info.name.as_str(), info.version.as_str()),
        ("everything", "1.0.0")
    );
    assert_eq!(info.title.as_deref(), Some("Everything"));
    assert_eq!(info.icons.unwrap().len(), 1);
    let said = (info.description.as_deref(), info.website_url.as_deref());
    let expected = ("One of each.", "https://example.com/everything");
    assert_eq!(said, (Some(expected.0), Some(expected.1)));
    assert_eq!(
        it.client.instructions().as_deref(),
        Some("Ask it anything.")
    );
    let can = it.client.server_capabilities();
    assert_eq!(can.tools.unwrap().list_changed, Some(true));
    assert_eq!(can.prompts.unwrap().list_changed, Some(true));
    assert_eq!(can.resources.unwrap().subscribe, Some(true));
    assert!(can.completions.is_some() && can.logging.is_some());
    let extensions = can.extensions.unwrap();
    let expected = json!({ "colours": ["red", "blue"] });
    assert_eq!(extensions["com.example/colours"], expected);
    assert_eq!(it.client.era(), it.wire.era());
    let pinged = it.client.ping().await;
    match it.wire.era() {
        Era::Legacy => drop(pinged.unwrap()),
        Era::Modern => assert_eq!(pinged.unwrap_err().refusal().unwrap().code, -32601),
    }
}

pub(super) async fn lists_come_in_pages(it: Connected) {
    let first = it.client.list_tools().await.unwrap();
    assert_eq!(first.tools.len(), 4);
    assert!(first.next_cursor.is_some());
    let all = it.client.list_all_tools().await.unwrap();
    let names: Vec<&str> = all.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names[..4], ["hello", "echo", "add", "rate"]);
    assert_eq!(names.len(), 23);
    let again = it.client.list_all_tools().await.unwrap();
    assert_eq!(all, again, "the order stays");
    let echo = &all[1];
    assert_eq!(echo.title.as_deref(), Some("Echo"));
    assert_eq!(echo.icons.as_ref().unwrap().len(), 1);
    assert_eq!(
        echo.annotations.as_ref().unwrap().read_only_hint,
        Some(true)
    );
    assert_eq!(all[2].output_schema.as_ref().unwrap()["type"], "object");

    let mut pages = it.client.pages::<ListTools>().at_most(2);
    assert_eq!(pages.next().await.unwrap().unwrap().len(), 4);
    assert_eq!(pages.next().await.unwrap().unwrap().len(), 4);
    let error = pages.next().await.unwrap_err();
    assert_eq!(error.to_string(), "rejected: a list of more than 2 pages");

    let pages = it.client.pages::<ListTools>().at_most(1);
    let mut pages = pages.into_stream();
    assert_eq!(next_of(&mut pages).await.unwrap().unwrap().len(), 4);
    assert!(next_of(&mut pages).await.unwrap().is_err());
    assert!(next_of(&mut pages).await.is_none());

    let made_up = belay::types::PaginatedParams::at("made up");
    let error = it.client.request::<ListTools>(&made_up).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32602);
}

pub(super) async fn text_and_structure(it: Connected) {
    assert_eq!(it.say("echo", json!({ "text": "hi" })).await.unwrap(), "hi");
    let sum = it
        .client
        .call_tool("add", json!({ "a": 2, "b": 3 }))
        .await
        .unwrap();
    assert_eq!(sum.structured_content, Some(json!({ "sum": 5 })));
    assert_eq!(text(&sum), r#"{"sum":5}"#);
}

pub(super) async fn all_kinds_of_content(it: Connected) {
    let mixed = it.client.call_tool("mixed", json!({})).await.unwrap();
    let kinds: Vec<String> = mixed
        .content
        .iter()
        .map(|block| serde_json::to_value(block).unwrap()["type"].to_string())
        .collect();
    let expected = ["text", "image", "audio", "resource_link", "resource"];
    assert_eq!(kinds, expected.map(|kind| format!("\"{kind}\"")));
    let image = serde_json::to_value(&mixed.content[1]).unwrap();
    assert_eq!(
        belay_protocol::base64::decode(image["data"].as_str().unwrap()).unwrap(),
        b"png"
    );
}

/// A tool that failed is a result; a request that makes no sense is an error.
pub(super) async fn tool_errors_and_protocol_errors(it: Connected) {
    let add = |a: i64| it.client.call_tool("add", json!({ "a": a, "b": 1 }));
    let failed = add(i64::MAX).await.unwrap();
    assert_eq!(
        (failed.is_error, text(&failed).as_str()),
        (Some(true), "that is too much")
    );
    let wrong = it
        .client
        .call_tool("add", json!({ "a": "x", "b": 1 }))
        .await
        .unwrap();
    assert_eq!(wrong.is_error, Some(true));
    let said = text(&wrong);
    assert!(
        said.starts_with("invalid argument") && said.contains("`a`: "),
        "{said}"
    );
    let error = it.client.call_tool("nobody", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32602);
    let error = it
        .client
        .request_raw::<serde_json::Value>("nobody/knows", &json!({}));
    assert_eq!(error.await.unwrap_err().refusal().unwrap().code, -32601);
}

/// What a type says is known without the validator; a range is not.
#[cfg(feature = "validate")]
pub(super) async fn arguments_are_held_against_their_schema(it: Connected) {
    assert_eq!(it.say("rate", json!({ "stars": 3 })).await.unwrap(), "***");
    let many = it.client.call_tool("rate", json!({ "stars": 6 }));
    let many = many.await.unwrap();
    assert_eq!(many.is_error, Some(true));
    assert_eq!(text(&many), "invalid arguments: `stars`: 6 is more than 5");
}

#[cfg(not(feature = "validate"))]
pub(super) async fn arguments_are_held_against_their_schema(it: Connected) {
    assert_eq!(it.say("rate", json!({ "stars": 3 })).await.unwrap(), "***");
}

/// A client that has not seen the tool does not know of its header, and learns it. Either way the call
/// is made once.
pub(super) async fn headers_repeat_arguments(it: Connected) {
    let order = || it.say("order", json!({ "region": "Zürich" }));
    assert_eq!(order().await.unwrap(), "order 1, to Zürich");
    it.client.list_all_tools().await.unwrap();
    assert_eq!(order().await.unwrap(), "order 2, to Zürich");
}

pub(super) async fn what_macros_write(it: Connected) {
    let hello = it.say("hello", json!({ "name": "Ada" })).await.unwrap();
    assert_eq!(hello, "Hello, Ada!");
    let poem = it.client.get_prompt("poem", [("about", "tea")]);
    let poem = poem.await.unwrap();
    let said = poem.messages[0].content.as_text();
    assert_eq!(said, Some("Write 4 lines about tea."));
    let written = it.client.read_resource("written://7").await.unwrap();
    assert_eq!(written.contents[0].text.as_deref(), Some("number 7"));
}

pub(super) async fn traces_go_along(it: Connected) {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let mut trace = TraceContext::new(parent).unwrap();
    trace.tracestate = Some("vendor=1".into());
    trace.baggage = Some("user=ada".into());
    let traced = it.client.call_tool("trace", json!({}));
    let said = text(&traced.trace_context(&trace).await.unwrap());
    assert_eq!(said, "0af7651916cd43dd8448eb211c80319c vendor=1 user=ada");
    let said = it.say("trace", json!({})).await.unwrap();
    assert_eq!(said, "nobody traces this");
}

pub(super) async fn progress_and_logs(it: Connected) {
    let told: Arc<Mutex<Vec<ProgressParams>>> = Arc::default();
    let tell = told.clone();
    let steps = |level: Option<LoggingLevel>| {
        let call = it.client.call_tool("steps", json!({}));
        match level {
            Some(level) => call.log_level(level),
            None => call,
        }
    };
    let call = steps(Some(LoggingLevel::Info));
    let call = call.on_progress(move |step| tell.lock().unwrap().push(step));
    assert_eq!(text(&call.await.unwrap()), "done");
    let steps_told: Vec<f64> = told
        .lock()
        .unwrap()
        .iter()
        .map(|it| it.progress.0)
        .collect();
    assert_eq!(steps_told, [1.0, 2.0, 3.0]);
    let logged = it.guests.until_logged(3).await;
    let logged: Vec<&str> = logged.iter().filter_map(|it| it.data.as_str()).collect();
    assert_eq!(logged, ["step 1", "step 2", "step 3"]);

    // More of it, and none of it.
    match it.wire.era() {
        Era::Legacy => {
            it.client.set_log_level(LoggingLevel::Debug).await.unwrap();
            steps(None).await.unwrap();
            assert_eq!(it.guests.until_logged(6).await.len(), 6);
            it.client.set_log_level(LoggingLevel::Error).await.unwrap();
        }
        Era::Modern => {
            steps(Some(LoggingLevel::Debug)).await.unwrap();
            assert_eq!(it.guests.until_logged(6).await.len(), 6);
        }
    }
    steps(None).await.unwrap();
    assert_eq!(it.guests.until_logged(0).await, []);
    if it.wire.era() == Era::Modern {
        let level = belay::types::meta_key::LOG_LEVEL;
        let call = it.client.call_tool("steps", json!({})).meta(level, "loud");
        assert_eq!(call.await.unwrap_err().refusal().unwrap().code, -32602);
    }
}

pub(super) async fn tools_that_grow(it: Connected) {
    assert!(it.client.call_tool("grown", json!({})).await.is_err());
    it.say("grow", json!({ "text": "tools" })).await.unwrap();
    assert_eq!(it.say("grown", json!({})).await.unwrap(), "new");
    // What is kept of a list may be old; whoever wants to know asks.
    let fresh = it.client.pages::<ListTools>().fresh().all().await.unwrap();
    assert_eq!(fresh.last().unwrap().name, "grown");
}
