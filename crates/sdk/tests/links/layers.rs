//! What stands around requests, on both sides.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::pending;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use belay::jsonrpc::{ErrorObject, RawJson};
use belay::layers::{
    CallRequest, ClientLayer, LayerFuture, Next, NextCall, ServerLayer, TraceContext,
};
use belay::layers::{Propagate, RateLimit, Retry, Trace};
use belay::server::ServerConnection;
use belay::{Client, Context, Error, Server, Tool};
use belay_testkit::{Peer, until};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_core::span::Current;

async fn pair(server: &Server, layer: impl ClientLayer) -> (Client, ServerConnection) {
    let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
    let serving = server.serve(server_in, server_out);
    let client = Client::builder("test", "1").layer(layer);
    (
        client.connect(client_in, client_out).await.unwrap(),
        serving,
    )
}

fn server() -> Server {
    Server::new("test", "1")
        .tool(Tool::new("who", |cx: Context, (): ()| async move {
            cx.extensions()
                .get::<String>()
                .map_or("nobody".into(), |name| (*name).clone())
        }))
        .tool(Tool::new("hang", |_: Context, (): ()| pending::<()>()))
}

/// Hands on who asks, and refuses those it does not know.
struct Door;

impl ServerLayer for Door {
    fn handle<'a>(
        &'a self,
        cx: &'a Context,
        next: Next<'a>,
    ) -> LayerFuture<'a, Result<RawJson, ErrorObject>> {
        Box::pin(async move {
            if cx.method() == "tools/call" {
                match cx.meta().get::<String>("example.com/name") {
                    Ok(Some(name)) => cx.extensions().insert(name),
                    _ => return Err(ErrorObject::new(-32000, "who are you?")),
                }
            }
            next.run().await
        })
    }
}

/// Says who asks.
struct Badge;

impl ClientLayer for Badge {
    fn call<'a>(
        &'a self,
        mut request: CallRequest,
        next: NextCall<'a>,
    ) -> LayerFuture<'a, Result<RawJson, Error>> {
        Box::pin(async move {
            request.meta.set("example.com/name", "ann").unwrap();
            next.run(request).await
        })
    }
}

#[tokio::test]
async fn layers_keep_the_context_on_both_sides() {
    let server = server().layer(Door);
    let (client, serving) = pair(&server, Badge).await;
    let who = client.call_tool("who", json!({})).await.unwrap();
    assert_eq!(who.content[0].as_text(), Some("ann"));

    // A call through layers has an id, can be cancelled and dropped, and has its deadlines.
    let call = client.call_tool("hang", json!({})).start();
    assert!(call.id().is_some(), "it has begun");
    until("it hangs", || serving.handlers() == 1).await;
    call.canceller().cancel_because("enough");
    let error = call.await.unwrap_err();
    assert!(error.is_cancelled(), "{error:?}");
    until("it is stopped", || serving.handlers() == 0).await;
    let hang = client.call_tool("hang", json!({})).start();
    until("it hangs", || serving.handlers() == 1).await;
    drop(hang);
    until("it is stopped", || serving.handlers() == 0).await;
    let late = client
        .call_tool("hang", json!({}))
        .timeout(Duration::from_millis(30));
    let error = late.await.unwrap_err();
    assert_eq!(error.to_string(), "timed out after 30ms");

    let (stranger, _serving) = pair(&server, Trace).await;
    let error = stranger.call_tool("who", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().message, "who are you?");
}

#[tokio::test]
async fn a_tool_that_is_called_too_often_is_refused() {
    let limit =
        RateLimit::new(2, Duration::from_secs(3600)).tool("hang", 1, Duration::from_secs(1));
    let server = server().layer(limit);
    let (client, _serving) = pair(&server, Trace).await;
    for _ in 0..2 {
        client.call_tool("who", json!({})).await.unwrap();
    }
    let error = client.call_tool("who", json!({})).await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.code, -31001);
    let data: serde_json::Value = refusal.data.as_ref().unwrap().decode().unwrap();
    let wait = data["retryAfterMs"].as_u64().unwrap();
    assert!(
        wait > 1_700_000 && wait <= 1_800_001,
        "half an hour: {wait}"
    );
    // Lists are not calls of a tool, and other tools have buckets of their own.
    client.list_tools().await.unwrap();
    let _hang = client.call_tool("hang", json!({})).start();
    let error = client.call_tool("hang", json!({})).await.unwrap_err();
    assert!(error.is_refused());
}

#[tokio::test]
async fn retry_is_explicit_and_only_what_does_no_harm_is_made_again() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let retry = Retry::new(2).backoff(Duration::from_millis(1), Duration::from_millis(1));
    let builder = Client::builder("test", "1").layer(retry);
    let client = tokio::spawn(builder.connect(reader, writer));
    peer.open_modern().await;
    let client = client.await.unwrap().unwrap();
    let refuse = |asked: &serde_json::Value, code: i32| {
        let error = json!({ "code": code, "message": "no" });
        json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })
    };

    // Overloaded: it did not begin, so it is asked again, three times in all, each with its own id.
    let call = tokio::spawn(client.call_tool("pay", json!({})).into_future());
    let mut ids = Vec::new();
    for _ in 0..3 {
        let asked = peer.expect("tools/call").await;
        ids.push(asked["id"].clone());
        peer.say(refuse(&asked, -31001)).await;
    }
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -31001);
    ids.dedup();
    assert_eq!(ids.len(), 3);

    // Any other refusal is an answer.
    let call = tokio::spawn(client.call_tool("pay", json!({})).into_future());
    let asked = peer.expect("tools/call").await;
    peer.say(refuse(&asked, -32000)).await;
    assert!(call.await.unwrap().unwrap_err().is_refused());
    peer.expect_silence(Duration::from_millis(30)).await;
}

/// Loses patience with the first time, and then waits for ever.
struct Hasty;

impl ClientLayer for Hasty {
    fn call<'a>(
        &'a self,
        request: CallRequest,
        next: NextCall<'a>,
    ) -> LayerFuture<'a, Result<RawJson, Error>> {
        Box::pin(async move {
            let _ = tokio::time::timeout(Duration::from_millis(20), next.run(request)).await;
            pending().await
        })
    }
}

#[tokio::test]
async fn what_any_attempt_has_sent_was_sent() {
    let (client, serving) = pair(&server(), Hasty).await;
    let call = client
        .call_tool("hang", json!({}))
        .timeout(Duration::from_millis(100));
    let error = call.await.unwrap_err();
    assert!(error.is_timeout() && !error.safe_to_retry(), "{error:?}");
    until("the first time was announced", || serving.handlers() == 0).await;
}

/// 2026-07-28, server/utilities/completion: rates are limited.
#[tokio::test]
async fn other_methods_can_have_a_rate_too() {
    let limit = RateLimit::new(0, Duration::from_secs(1)).method(
        "tools/list",
        1,
        Duration::from_secs(3600),
    );
    let (client, _serving) = pair(&server().layer(limit), Trace).await;
    client.list_tools().fresh().await.unwrap();
    let error = client.list_tools().fresh().await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -31001, "{error}");
    // Nothing was said of these.
    client
        .request_raw::<serde_json::Value>("server/discover", &json!({}))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_tool_that_may_never_be_called_is_refused_in_words() {
    let limit = RateLimit::new(5, Duration::from_secs(1)).tool("who", 0, Duration::from_secs(1));
    let (client, _serving) = pair(&server().layer(limit), Trace).await;
    let error = client.call_tool("who", json!({})).await.unwrap_err();
    assert_eq!(
        error.refusal().unwrap().message,
        "overloaded: this tool may not be called"
    );
}

/// Waits for ever between two times.
struct Sleepy(Arc<AtomicUsize>);

impl ClientLayer for Sleepy {
    fn call<'a>(
        &'a self,
        request: CallRequest,
        next: NextCall<'a>,
    ) -> LayerFuture<'a, Result<RawJson, Error>> {
        Box::pin(async move {
            let _ = next.run(request).await;
            self.0.fetch_add(1, Ordering::SeqCst);
            pending().await
        })
    }
}

#[tokio::test]
async fn a_layer_that_sleeps_is_cancelled_and_timed_out_all_the_same() {
    let asleep = Arc::new(AtomicUsize::new(0));
    let (client, _serving) = pair(&server(), Sleepy(asleep.clone())).await;
    let call = client.call_tool("who", json!({})).start();
    let canceller = call.canceller();
    let call = tokio::spawn(call);
    until("it sleeps", || asleep.load(Ordering::SeqCst) == 1).await;
    canceller.cancel_because("wake up");
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "cancelled by the caller: wake up");
    assert!(!error.safe_to_retry(), "it was sent");
    let call = client
        .call_tool("who", json!({}))
        .timeout(Duration::from_millis(30));
    let error = call.await.unwrap_err();
    assert!(error.is_timeout() && !error.safe_to_retry(), "{error:?}");
}

/// Remembers the fields of spans.
#[derive(Clone, Default)]
struct Spans {
    next: Arc<AtomicU64>,
    spans: Arc<Mutex<HashMap<u64, HashMap<String, String>>>>,
    /// Those that were entered, the innermost last.
    entered: Arc<Mutex<Vec<u64>>>,
    metadata: Arc<Mutex<Option<&'static tracing::Metadata<'static>>>>,
}

struct Fields<'a>(&'a mut HashMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}").trim_matches('"').to_owned();
        self.0.insert(field.name().to_owned(), value);
    }
}

impl tracing::Subscriber for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.name() == "mcp"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::SeqCst) + 1;
        let mut fields = HashMap::new();
        span.record(&mut Fields(&mut fields));
        self.spans.lock().unwrap().insert(id, fields);
        *self.metadata.lock().unwrap() = Some(span.metadata());
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.spans.lock().unwrap();
        let fields = spans.entry(span.into_u64()).or_default();
        values.record(&mut Fields(fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.entered.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, _: &Id) {
        self.entered.lock().unwrap().pop();
    }

    fn current_span(&self) -> Current {
        let entered = self.entered.lock().unwrap();
        match (entered.last(), *self.metadata.lock().unwrap()) {
            (Some(id), Some(metadata)) => Current::new(Id::from_u64(*id), metadata),
            _ => Current::none(),
        }
    }
}

impl Spans {
    /// Side, name and end of each request, in order.
    fn ends(&self) -> Vec<[String; 3]> {
        let spans = self.spans.lock().unwrap();
        let mut ids: Vec<&u64> = spans.keys().collect();
        ids.sort();
        let field = |id: &u64, name: &str| spans[id].get(name).cloned().unwrap_or_default();
        ids.iter()
            .map(|id| ["otel.kind", "otel.name", "end"].map(|name| field(id, name)))
            .collect()
    }
}

#[tokio::test]
async fn spans_record_how_each_request_ended_on_both_sides() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let server = server().layer(Trace);
    let (client, serving) = pair(&server, Trace).await;
    client.call_tool("who", json!({})).await.unwrap();
    client.call_tool("nonsense", json!({})).await.unwrap_err();
    client.read_resource("memo://1").await.unwrap_err();
    let hang = client.call_tool("hang", json!({})).start();
    until("it hangs", || serving.handlers() == 1).await;
    drop(hang);
    until("it is gone", || serving.handlers() == 0).await;
    let hang = client.call_tool("hang", json!({})).start();
    until("it hangs", || serving.handlers() == 1).await;
    drop(serving);
    assert!(hang.await.unwrap_err().is_lost());
    until("all have ended", || {
        spans.ends().iter().all(|span| !span[2].is_empty())
    })
    .await;
    let ends = spans.ends();
    // What is known only on the wire is known to both.
    for (id, span) in spans.spans.lock().unwrap().iter() {
        assert!(span.contains_key("jsonrpc.request.id"), "{id}: {span:?}");
        assert_eq!(span["mcp.protocol.version"], "2026-07-28", "{id}");
    }
    let ends: Vec<[&str; 3]> = ends
        .iter()
        .map(|span| span.each_ref().map(|s| &**s))
        .collect();
    assert_eq!(
        ends,
        [
            ["client", "tools/call who", "answered"],
            ["server", "tools/call who", "answered"],
            ["client", "tools/call nonsense", "refused"],
            ["server", "tools/call nonsense", "refused"],
            ["client", "resources/read", "refused"],
            ["server", "resources/read", "refused"],
            ["client", "tools/call hang", "cancelled"],
            [
                "server",
                "tools/call hang",
                "cancelled: its caller cancelled: cancelled by the caller"
            ],
            ["client", "tools/call hang", "lost"],
            [
                "server",
                "tools/call hang",
                "cancelled: the server shuts down"
            ],
        ]
    );
}

/// A server that wants too much patience does not get it.
#[tokio::test(start_paused = true)]
async fn a_server_can_ask_for_patience_within_bounds() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let retry = Retry::new(1).backoff(Duration::from_millis(1), Duration::from_secs(2));
    let builder = Client::builder("test", "1").layer(retry);
    let client = tokio::spawn(builder.connect(reader, writer));
    peer.open_modern().await;
    let client = client.await.unwrap().unwrap();
    for (asked_for, waits) in [(1000, 1000), (3_600_000, 2000)] {
        let call = tokio::spawn(client.call_tool("pay", json!({})).into_future());
        let asked = peer.expect("tools/call").await;
        let error =
            json!({ "code": -31001, "message": "no", "data": { "retryAfterMs": asked_for } });
        peer.say(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
            .await;
        let began = tokio::time::Instant::now();
        let asked = peer.expect("tools/call").await;
        let waited = began.elapsed().as_millis();
        assert!(
            (waits..waits + 100).contains(&waited),
            "{asked_for}: {waited}"
        );
        peer.answer(&asked, json!({ "resultType": "complete", "content": [] }))
            .await;
        call.await.unwrap().unwrap();
    }
}

/// A question is no answer.
#[tokio::test]
async fn rounds_are_spans_of_their_own_on_the_server() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let ask = Tool::new("ask", |cx: Context, (): ()| async move {
        let roots = cx.roots().await?;
        Ok::<_, belay::input::InputError>(roots.len().to_string())
    });
    let server = Server::new("test", "1").tool(ask).layer(Trace);
    let builder = Client::builder("test", "1").roots(Vec::new());
    let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
    let _serving = server.serve(server_in, server_out);
    let client = builder.connect(client_in, client_out).await.unwrap();
    client.call_tool("ask", json!({})).await.unwrap();
    let ends = spans.ends();
    assert_eq!(
        ends[0].each_ref().map(|s| &**s),
        ["server", "tools/call ask", "input_required"]
    );
    assert_eq!(
        ends[1].each_ref().map(|s| &**s),
        ["server", "tools/call ask", "answered"]
    );
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

#[tokio::test]
async fn the_trace_travels_along() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let server = Server::new("test", "1")
        .tool(Tool::new("told", |cx: Context, (): ()| async move {
            let context = cx.trace_context();
            context.map_or("nothing".to_owned(), |it| it.traceparent().to_owned())
        }))
        .layer(Trace);
    let (client, _serving) = pair(&server, Propagate::new(|| TraceContext::new(PARENT))).await;
    let result = client.call_tool("told", json!({})).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some(PARENT));
    let own = PARENT.replace("0af7", "1bf8");
    let context = TraceContext::new(own.clone()).unwrap();
    let call = client.call_tool("told", json!({})).trace_context(&context);
    assert_eq!(call.await.unwrap().content[0].as_text(), Some(own.as_str()));
    let nonsense = client.call_tool("told", json!({})).meta("traceparent", 7);
    // The layer says what makes sense in its stead.
    let said = nonsense.await.unwrap();
    assert_eq!(said.content[0].as_text(), Some(PARENT));
    let spans = spans.spans.lock().unwrap();
    assert!(
        spans
            .values()
            .any(|span| span.get("traceparent") == Some(&own))
    );
}
