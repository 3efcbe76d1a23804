//! A client whose server asks first, or may not: rounds as a client sees them, and what it knows from
//! before.

use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::client::ClientBuilder;
use belay::input::{InputRequests, RoundTrip, Step};
use belay::jsonrpc::RawJson;
use belay::layers::{CallRequest, ClientLayer, LayerFuture, NextCall};
use belay::outcome::Clock;
use belay::types::{ElicitResult, ListTools};
use belay::{Client, Context, Error, ErrorKind, Server, Tool};
use belay_testkit::{Peer, pair, until};
use serde_json::{Value, json};

/// A modern server that is played by hand.
async fn connected(builder: ClientBuilder) -> (Client, Peer) {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let connecting = tokio::spawn(builder.connect(reader, writer));
    peer.open_modern().await;
    (connecting.await.unwrap().unwrap(), peer)
}

fn client() -> ClientBuilder {
    Client::builder("test", "1")
}

fn asks() -> Value {
    let form = json!({
        "mode": "form", "message": "Who?",
        "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } }
    });
    let question = json!({ "method": "elicitation/create", "params": form });
    json!({ "resultType": "input_required", "inputRequests": { "who": question } })
}

/// Somebody who is being asked, and never answers.
struct Hanging(Arc<AtomicUsize>);

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// **closed-is-known**: nobody fills in a form for a server that is gone, or was given up.
#[tokio::test]
async fn a_call_between_two_rounds_ends_with_its_connection() {
    for closes in [true, false] {
        let open = Arc::new(AtomicUsize::new(0));
        let counted = open.clone();
        let builder = client().on_elicit(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            let hanging = Hanging(counted.clone());
            async move {
                let _hanging = hanging;
                pending().await
            }
        });
        let (client, mut peer) = connected(builder).await;
        let call = tokio::spawn(client.call_tool("ask", json!({})).start());
        let asked = peer.expect("tools/call").await;
        peer.answer(&asked, asks()).await;
        until("the form is open", || open.load(Ordering::SeqCst) == 1).await;
        match closes {
            true => {
                client.close().await;
            }
            false => peer.hang_up().await,
        }
        let error = call.await.unwrap().unwrap_err();
        assert!(error.is_lost(), "{closes}: {error:?}");
        assert!(!error.safe_to_retry(), "the first round was sent");
        assert_eq!(open.load(Ordering::SeqCst), 0, "the form is closed");
    }
}

/// **retry-is-explicit**: a server that is broken is not asked again and again.
#[tokio::test]
async fn a_server_that_needs_something_must_say_what() {
    let (client, mut peer) = connected(client()).await;
    let call = tokio::spawn(client.call_tool("ask", json!({})).start());
    let asked = peer.expect("tools/call").await;
    peer.answer(&asked, json!({ "resultType": "input_required" }))
        .await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Violated, "{error:?}");
    // 2026-07-28, basic/patterns/mrtr: only three requests can be answered with questions.
    let list = tokio::spawn(client.list_tools().start());
    let asked = peer.expect("tools/list").await;
    peer.answer(&asked, asks()).await;
    let error = list.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Violated, "{error:?}");
}

/// Whoever answers nothing can still be asked to come again.
#[tokio::test]
async fn rounds_without_questions_need_nobody() {
    let tool = Tool::in_steps(
        "twice",
        |_: Context, (): (), round: RoundTrip<u32>| async move {
            Ok::<_, belay::input::InputError>(match round.state() {
                None => Step::Ask(InputRequests::new(1)),
                Some(round) => Step::Done(format!("round {round}")),
            })
        },
    );
    let server = Server::new("test", "1").tool(tool);
    let (client, _serving) = pair(&server, belay::client::Mode::Auto).await.unwrap();
    let result = client.call_tool("twice", json!({})).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("round 1"));
    // One who can answer nothing says so, and does not hang.
    let (client, mut peer) = connected(self::client()).await;
    let call = tokio::spawn(client.call_tool("ask", json!({})).start());
    let asked = peer.expect("tools/call").await;
    peer.answer(&asked, asks()).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputRequired, "{error:?}");
}

/// A client that always has an answer.
fn obliging() -> ClientBuilder {
    let name = json!({ "name": "Ada" }).as_object().unwrap().clone();
    client().on_elicit(move |_| {
        let name = name.clone();
        async { Ok(ElicitResult::accept(name)) }
    })
}

/// Each round has an id of its own, and there is an end to them.
#[tokio::test]
async fn a_server_that_always_asks_is_not_asked_for_ever() {
    let (client, mut peer) = connected(obliging()).await;
    let call = tokio::spawn(client.call_tool("ask", json!({})).start());
    let mut ids = HashSet::new();
    for round in 1..=10 {
        let asked = peer.expect("tools/call").await;
        let answers = &asked["params"]["inputResponses"];
        assert_eq!(answers.is_object(), round > 1, "{answers}");
        assert!(ids.insert(asked["id"].to_string()), "{asked}");
        peer.answer(&asked, asks()).await;
    }
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputRequired, "{error:?}");
    assert!(error.to_string().contains("10 rounds"), "{error}");
    // There was no eleventh.
    let _list = client.list_tools().start();
    peer.expect("tools/list").await;
}

/// **deadline-covers-all**: a clock that began again with each round would never stop these.
#[tokio::test(start_paused = true)]
async fn quick_rounds_have_one_deadline_together() {
    let (client, mut peer) = connected(obliging()).await;
    let start = tokio::time::Instant::now();
    let call = client.call_tool("ask", json!({}));
    let call = tokio::spawn(call.timeout(Duration::from_millis(100)).start());
    for round in 1..=3 {
        let asked = peer.expect("tools/call").await;
        tokio::time::sleep(Duration::from_millis(40)).await;
        if round < 3 {
            peer.answer(&asked, asks()).await;
        }
    }
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(error.clock(), Some(Clock::Total));
    let spent = start.elapsed();
    assert!(spent < Duration::from_millis(130), "{spent:?}");
}

/// Says who asks.
struct As(Arc<AtomicUsize>);

impl ClientLayer for As {
    fn call<'a>(
        &'a self,
        mut request: CallRequest,
        next: NextCall<'a>,
    ) -> LayerFuture<'a, Result<RawJson, Error>> {
        let user = self.0.fetch_add(1, Ordering::SeqCst);
        let _ = request.meta.set("example.com/user", user);
        next.run(request)
    }
}

/// 2026-07-28, server/utilities/caching: caches must not be shared across authorization contexts.
#[tokio::test]
async fn what_layers_say_is_not_answered_from_the_cache() {
    let users = Arc::new(AtomicUsize::new(0));
    let (client, mut peer) = connected(client().layer(As(users))).await;
    for user in 0..2 {
        let list = tokio::spawn(client.list_tools().start());
        let asked = peer.expect("tools/list").await;
        assert_eq!(asked["params"]["_meta"]["example.com/user"], user);
        let page = json!({ "resultType": "complete", "tools": [], "ttlMs": 60000, "cacheScope": "private" });
        peer.answer(&asked, page).await;
        list.await.unwrap().unwrap();
    }
}

/// A list whose first page is known from before, and whose server has forgotten it.
#[tokio::test]
async fn a_cursor_that_is_gone_begins_the_list_again() {
    let (client, mut peer) = connected(client()).await;
    let page = |tool: &str, cursor: Option<&str>| {
        let tool = json!({ "name": tool, "inputSchema": { "type": "object" } });
        let mut page = json!({
            "resultType": "complete", "tools": [tool], "ttlMs": 60000, "cacheScope": "private"
        });
        if let Some(cursor) = cursor {
            page["nextCursor"] = cursor.into();
        }
        page
    };
    let first = tokio::spawn(client.list_tools().start());
    let asked = peer.expect("tools/list").await;
    peer.answer(&asked, page("old", Some("2"))).await;
    first.await.unwrap().unwrap();

    let all = client.pages::<ListTools>();
    let all = tokio::spawn(async move { all.all().await });
    let asked = peer.expect("tools/list").await;
    assert_eq!(asked["params"]["cursor"], "2");
    let error = json!({ "code": -32602, "message": "what is 2?" });
    peer.say(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
        .await;
    let asked = peer.expect("tools/list").await;
    assert_eq!(asked["params"].get("cursor"), None);
    peer.answer(&asked, page("new", None)).await;
    let tools = all.await.unwrap().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["new"]);
}

/// 2026-07-28, basic: types of results that an extension has are understood once it is advertised.
#[tokio::test]
async fn results_of_extensions_are_answers() {
    let plain = client();
    let knowing = client().extension("com.example/receipts", Default::default(), ["receipt"]);
    for (builder, knows) in [(plain, false), (knowing, true)] {
        let (client, mut peer) = connected(builder).await;
        let call = tokio::spawn(
            client
                .request_raw::<Value>("tools/call", &json!({ "name": "pay" }))
                .start(),
        );
        let asked = peer.expect("tools/call").await;
        let meta = &asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(
            meta["extensions"].get("com.example/receipts").is_some(),
            knows
        );
        peer.answer(&asked, json!({ "resultType": "receipt", "number": 7 }))
            .await;
        match call.await.unwrap() {
            Ok(receipt) => assert!(knows && receipt["number"] == 7, "{receipt}"),
            Err(error) => assert!(!knows && error.kind() == ErrorKind::Violated, "{error:?}"),
        }
    }
}

#[test]
#[should_panic(expected = "it needs a prefix")]
fn an_extension_has_a_prefix() {
    let _ = Server::new("test", "1").extension("receipts", Default::default());
}

/// A model is not shown a conversation that is not in order.
#[tokio::test]
async fn a_model_is_asked_in_good_order_only() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let builder = client()
        .on_sample(|_| async { panic!("it was asked") })
        .capabilities(|can| can.sampling.as_mut().unwrap().tools = Some(Default::default()));
    let connecting = tokio::spawn(builder.connect(reader, writer));
    peer.open_legacy().await;
    let _client = connecting.await.unwrap().unwrap();
    let result = json!({ "type": "tool_result", "toolUseId": "1", "content": [] });
    let messages = json!([{ "role": "user", "content": result }]);
    let params = json!({ "messages": messages, "maxTokens": 5 });
    peer.ask(7, "sampling/createMessage", params).await;
    let answer = peer.expect_answer(7).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

/// What one argument could be may depend on the others.
#[tokio::test]
async fn completion_knows_what_is_settled() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Trip {
        country: String,
        city: String,
    }
    let prompt = belay::Prompt::new("trip", |_: Context, it: Trip| async move {
        it.country + &it.city
    })
    .complete("city", |_, typed| async move {
        let country = typed.settled.get("country").cloned();
        [format!(
            "{} in {}",
            typed.value,
            country.unwrap_or_default()
        )]
    });
    let server = Server::new("test", "1").prompt(prompt);
    let (client, _serving) = pair(&server, belay::client::Mode::Auto).await.unwrap();
    let trip = belay::types::PromptReference::new("trip");
    let known = client.complete_with(trip, "city", "Par", [("country", "France")]);
    assert_eq!(known.await.unwrap().completion.values, ["Par in France"]);
}

/// What a handler says nothing of is of the type of its resource.
#[tokio::test]
async fn contents_have_the_type_of_their_resource() {
    use belay::types::ResourceContents;
    let whole = |uri: &'static str, kind: Option<&'static str>| {
        belay::Resource::new(uri, uri, move |_: Context| async move {
            let mut contents = ResourceContents::new(uri).text("{}");
            contents.mime_type = kind.map(str::to_owned);
            contents
        })
        .mime_type("application/json")
    };
    let server = Server::new("test", "1")
        .resource(whole("a://plain", None))
        .resource(whole("a://own", Some("text/x-own")));
    let (client, _serving) = pair(&server, belay::client::Mode::Auto).await.unwrap();
    for (uri, kind) in [("a://plain", "application/json"), ("a://own", "text/x-own")] {
        let read = client.read_resource(uri).await.unwrap();
        assert_eq!(read.contents[0].mime_type.as_deref(), Some(kind));
    }
}
