//! Rounds on the modern wire, message by message: what is asked, what is carried, what is refused.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::input::{InputError, InputRequests, RoundTrip, Step};
use belay::server::StateKey;
use belay::types::modern::SubscriptionFilter;
use belay::types::{
    CreateMessageParams, IncludeContext, SamplingBlock, SamplingMessage, ToolUseContent,
};
use belay::{Context, Prompt, Server, Tool, ToolError};
use belay_testkit::{Peer, until};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema, Debug)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    item: String,
}

/// What a client says with every request.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {}, "sampling": {} }
    })
}

fn accept(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

/// One server, and somebody who asks it by hand.
struct Desk {
    peer: Peer,
    next: u64,
    _serving: belay::server::ServerConnection,
}

impl Desk {
    fn new(server: &Server) -> Self {
        let (peer, (reader, writer)) = Peer::pipe();
        let _serving = server.serve(reader, writer);
        Self {
            peer,
            next: 1,
            _serving,
        }
    }

    /// Asks, and gives the whole answer.
    async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = meta();
        let id = self.next;
        self.next += 1;
        self.peer.ask(id, method, params).await;
        self.peer.expect_answer(id).await
    }

    async fn call(&mut self, params: Value) -> Value {
        self.ask("tools/call", params).await
    }
}

fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {answer}"))
}

fn names(answer: &Value) -> Vec<&str> {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    let asked = answer["result"]["inputRequests"].as_object().unwrap();
    asked.keys().map(String::as_str).collect()
}

fn greet(name: &str) -> Tool {
    Tool::new(name, |cx: Context, it: Item| async move {
        let name: Name = cx.elicit("Who?").named("who").await?;
        Ok::<_, ToolError>(format!("{} for {}", it.item, name.name))
    })
}

fn server() -> Server {
    Server::new("test", "1")
        .tool(greet("greet"))
        .tool(greet("other"))
        .prompt(Prompt::new("greet", |cx: Context, (): ()| async move {
            let name: Name = cx.elicit("Who?").named("who").await?;
            Ok::<_, belay::RequestError>(name.name)
        }))
}

#[tokio::test]
async fn the_state_is_good_for_the_same_request_only() {
    let mut desk = Desk::new(&server());
    let first = json!({ "name": "greet", "arguments": { "item": "tea" } });
    let asked = desk.call(first).await;
    assert_eq!(names(&asked), ["who"]);
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let retry = |name: &str, item: &str, state: &str| {
        json!({
            "name": name, "arguments": { "item": item }, "requestState": state,
            "inputResponses": { "who": accept("Ada") }
        })
    };
    let good = desk.call(retry("greet", "tea", &state)).await;
    assert_eq!(text(&good), "tea for Ada");
    // Within its time it can be used again; what must happen once is for the server to see to.
    let again = desk.call(retry("greet", "tea", &state)).await;
    assert_eq!(text(&again), "tea for Ada");
    for (what, params) in [
        ("another tool", retry("other", "tea", &state)),
        ("other arguments", retry("greet", "coffee", &state)),
        (
            "a longer state",
            retry("greet", "tea", &(state.clone() + "A")),
        ),
        (
            "another state",
            retry("greet", "tea", &"A".repeat(state.len())),
        ),
        ("no base64", retry("greet", "tea", "nonsense!")),
        ("nothing", retry("greet", "tea", "")),
    ] {
        let refused = desk.call(params).await;
        assert_eq!(refused["error"]["code"], -32602, "{what}: {refused}");
    }
    let mut number = retry("greet", "tea", "");
    number["requestState"] = json!(7);
    assert_eq!(desk.call(number).await["error"]["code"], -32602);
    let mut elsewhere = retry("greet", "tea", &state);
    elsewhere.as_object_mut().unwrap().remove("arguments");
    let refused = desk.ask("prompts/get", elsewhere).await;
    assert_eq!(
        refused["error"]["code"], -32602,
        "another method: {refused}"
    );
    let twice = format!(
        r#"{{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{{"name":"greet","arguments":{{"item":"car"}},"arguments":{{"item":"tea"}},"requestState":{},"_meta":{}}}}}"#,
        json!(state),
        meta()
    );
    desk.peer.say_raw(format!("{twice}\n")).await;
    let refused = desk.peer.expect_answer(99).await;
    assert_eq!(
        refused["error"]["code"], -32602,
        "arguments twice: {refused}"
    );
}

#[tokio::test]
async fn the_state_expires_and_keys_are_shared_if_somebody_chooses_them() {
    let call = |state: Option<&str>| {
        let mut call = json!({ "name": "greet", "arguments": { "item": "tea" } });
        if let Some(state) = state {
            call["requestState"] = state.into();
            call["inputResponses"] = json!({ "who": accept("Ada") });
        }
        call
    };
    let asks = async |server: &Server| {
        let asked = Desk::new(server).call(call(None)).await;
        asked["result"]["requestState"].as_str().unwrap().to_owned()
    };
    let brief = server().request_state(|state| state.lifetime(Duration::ZERO));
    let state = asks(&brief).await;
    let refused = Desk::new(&brief).call(call(Some(&state))).await;
    assert_eq!(refused["error"]["code"], -32602);

    let key = StateKey::random();
    let shared = || server().request_state(|state| state.key(key.clone()));
    let state = asks(&shared()).await;
    let replica = Desk::new(&shared()).call(call(Some(&state))).await;
    assert_eq!(text(&replica), "tea for Ada");
    let stranger = Desk::new(&server()).call(call(Some(&state))).await;
    assert_eq!(stranger["error"]["code"], -32602);
}

/// Answers that are missing are asked for again; those that nobody asked for are left alone.
#[tokio::test]
async fn answers_are_known_by_name_and_question() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    // Asks something else each time.
    let fickle = Tool::new("fickle", move |cx: Context, (): ()| {
        let question = format!("Question {}?", count.fetch_add(1, Ordering::SeqCst) / 2);
        async move {
            let name: Name = cx.elicit(question).await?;
            Ok::<_, ToolError>(name.name)
        }
    });
    let both = Tool::new("both", |cx: Context, (): ()| async move {
        let left = cx.elicit::<Name>("Left?").named("input-2").into_future();
        let first = cx.elicit::<Name>("First?").into_future();
        let second = cx.elicit::<Name>("Second?").into_future();
        let (left, first, second) = tokio::try_join!(left, first, second)?;
        Ok::<_, InputError>([left.name, first.name, second.name].join(" "))
    });
    let mut desk = Desk::new(&Server::new("test", "1").tool(fickle).tool(both));
    let call = |name: &str, answer: &Value, responses: Value| {
        json!({
            "name": name, "requestState": answer["result"]["requestState"],
            "inputResponses": responses
        })
    };
    // The same question, then another one: the answer to the first is none.
    let first = desk.call(json!({ "name": "fickle" })).await;
    let answered = desk
        .call(call("fickle", &first, json!({ "input": accept("a") })))
        .await;
    assert_eq!(text(&answered), "a");
    let second = desk.call(json!({ "name": "fickle" })).await;
    desk.call(json!({ "name": "fickle" })).await;
    let again = desk
        .call(call("fickle", &second, json!({ "input": accept("a") })))
        .await;
    assert_eq!(names(&again), ["input"]);

    let asked = desk.call(json!({ "name": "both" })).await;
    assert_eq!(
        names(&asked),
        ["input-2", "input", "input-3"],
        "no two have one name"
    );
    let some = json!({ "input": accept("f"), "unknown": accept("u") });
    let missing = desk.call(call("both", &asked, some)).await;
    assert_eq!(names(&missing), ["input-2", "input-3"]);
    let rest = json!({ "input-2": accept("l"), "input-3": accept("s") });
    let done = desk.call(call("both", &missing, rest)).await;
    assert_eq!(text(&done), "l f s");
    for nonsense in [json!(7), json!([]), json!("x")] {
        let refused = desk.call(call("both", &asked, nonsense)).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let nothing = desk.call(call("both", &asked, Value::Null)).await;
    assert_eq!(names(&nothing).len(), 3);
}

/// A round waits for what must not be computed twice, and each key is computed once.
#[tokio::test]
async fn once_is_once() {
    let charged = Arc::new(AtomicUsize::new(0));
    let count = charged.clone();
    let buy = Tool::new("buy", move |cx: Context, (): ()| {
        let count = count.clone();
        async move {
            let charge = || {
                let count = count.clone();
                async move {
                    tokio::task::yield_now().await;
                    count.fetch_add(1, Ordering::SeqCst) + 1
                }
            };
            let name = cx.elicit::<Name>("Who?").into_future();
            let (first, second) = (cx.once("charge", charge), cx.once("charge", charge));
            let (first, second, name) = tokio::try_join!(first, second, name)?;
            Ok::<_, InputError>(format!("{} {first} {second}", name.name))
        }
    });
    let mut desk = Desk::new(&Server::new("test", "1").tool(buy));
    let asked = desk.call(json!({ "name": "buy" })).await;
    assert_eq!(charged.load(Ordering::SeqCst), 1);
    let done = desk
        .call(json!({
            "name": "buy", "requestState": asked["result"]["requestState"],
            "inputResponses": { "input": accept("Ada") }
        }))
        .await;
    assert_eq!(text(&done), "Ada 1 1");
    assert_eq!(charged.load(Ordering::SeqCst), 1);
}

/// A task that outlives its handler, and asks for the first time when that is done, gets no answer; but
/// it does not wait for one either.
#[tokio::test]
async fn whoever_asks_after_the_end_is_told_at_once() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = Arc::new(std::sync::Mutex::new(Some(tell)));
    let tool = Tool::new("late", move |cx: Context, (): ()| {
        let tell = tell.lock().unwrap().take();
        async move {
            tokio::spawn(async move {
                until("the handler is done", || {
                    cx.ledger().requests.in_flight() == 0
                })
                .await;
                let asked = cx.elicit::<Name>("Who?").await;
                let _ = tell.unwrap().send(asked.is_err());
            });
            "done"
        }
    });
    let mut desk = Desk::new(&Server::new("test", "1").tool(tool));
    assert_eq!(text(&desk.call(json!({ "name": "late" })).await), "done");
    let told = tokio::time::timeout(Duration::from_secs(10), told).await;
    assert!(told.expect("it does not hang").unwrap(), "nobody answers");
}

/// Others may compute while somebody asks: each is told apart by where it runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_compute_do_not_keep_others_from_asking() {
    let tool = Tool::new("ask", |cx: Context, (): ()| async move {
        let computing = ["a", "b", "c", "d"].map(|key| {
            let cx = cx.clone();
            tokio::spawn(async move {
                let slow = || async {
                    for _ in 0..50 {
                        tokio::task::yield_now().await;
                        std::thread::yield_now();
                    }
                    1_u32
                };
                cx.once(key, slow).await
            })
        });
        let mut sum = 0;
        let mut asked = Vec::new();
        for number in 0..20 {
            tokio::task::yield_now().await;
            asked.push(cx.elicit::<Name>(format!("Who is {number}?")).into_future());
        }
        for name in asked {
            sum += name.await?.name.len();
        }
        for computed in computing {
            sum += computed.await.unwrap()? as usize;
        }
        Ok::<_, InputError>(sum.to_string())
    });
    let mut desk = Desk::new(&Server::new("test", "1").tool(tool));
    let mut params = json!({ "name": "ask" });
    for _ in 0..100 {
        let answer = desk.call(params.clone()).await;
        if answer["result"]["resultType"] != "input_required" {
            assert_eq!(text(&answer), "64", "{answer}");
            return;
        }
        let answers = names(&answer);
        let answers = answers
            .into_iter()
            .map(|name| (name.to_owned(), accept("Ada")));
        params["inputResponses"] = Value::Object(answers.collect());
        params["requestState"] = answer["result"]["requestState"].clone();
    }
    panic!("it asks for ever");
}

#[cfg(feature = "validate")]
#[derive(Deserialize, JsonSchema)]
struct Rating {
    #[schemars(range(min = 1, max = 5))]
    rating: u8,
}

#[cfg(feature = "validate")]
async fn rate(_: Context, (): (), round: RoundTrip<()>) -> Result<Step<String, ()>, InputError> {
    match round.elicited::<Rating>("input") {
        Some(rating) => Ok(Step::Done(rating?.rating.to_string())),
        None => Ok(Step::Ask(
            InputRequests::new(()).elicit::<Rating>("input", "How was it?"),
        )),
    }
}

/// What does not fit the form is what is wrong with the request: in one line, and in steps.
#[cfg(feature = "validate")]
#[tokio::test]
async fn answers_are_held_against_their_form() {
    let line = Tool::new("line", |cx: Context, (): ()| async move {
        let rating: Rating = cx.elicit("How was it?").await?;
        Ok::<_, InputError>(rating.rating.to_string())
    });
    let server = Server::new("test", "1").tool(line);
    let mut desk = Desk::new(&server.tool(Tool::in_steps("steps", rate)));
    for tool in ["line", "steps"] {
        let asked = desk.call(json!({ "name": tool })).await;
        for (rating, good) in [(5, true), (200, false)] {
            let answer = json!({ "action": "accept", "content": { "rating": rating } });
            let params = json!({
                "name": tool, "requestState": asked["result"]["requestState"],
                "inputResponses": { "input": answer }
            });
            let answer = desk.call(params).await;
            if good {
                assert_eq!(text(&answer), "5");
                continue;
            }
            assert_eq!(answer["error"]["code"], -32602, "{tool}: {answer}");
            let message = answer["error"]["message"].as_str().unwrap();
            let problem = "`inputResponses`: `input`: `rating`: 200 is more than 5";
            assert!(message.contains(problem), "{tool}: {message}");
        }
    }
}

/// What cannot be asked is not: the tool hears of it, and the client does not.
#[tokio::test]
async fn sampling_has_its_rules() {
    let tool = Tool::new("think", |cx: Context, (): ()| async move {
        let using = ToolUseContent::new("1", "clock", serde_json::Map::new());
        let using = SamplingMessage::assistant(SamplingBlock::ToolUse(using));
        let open = CreateMessageParams::new([using], 5_u64);
        let error = cx.sample(open).await.unwrap_err().to_string();
        assert!(error.contains("has no result"), "{error}");
        let mut all = CreateMessageParams::new([SamplingMessage::user("Hm?")], 5_u64);
        all.include_context = Some(IncludeContext::AllServers);
        let said = cx.sample(all).await?;
        Ok::<_, InputError>(said.model)
    });
    let mut desk = Desk::new(&Server::new("test", "1").tool(tool));
    let refused = desk.call(json!({ "name": "think" })).await;
    // It has declared no `sampling.context`.
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    let missing = &refused["error"]["data"]["requiredCapabilities"]["sampling"];
    assert!(missing.get("context").is_some(), "{refused}");
}

/// 2025-06-18 has no field for several choices: nobody is asked what they cannot understand.
#[tokio::test]
async fn older_clients_are_not_asked_for_several_choices() {
    #[derive(Deserialize, JsonSchema)]
    enum Colour {
        Red,
        Blue,
    }
    #[derive(Deserialize, JsonSchema)]
    struct Colours {
        #[allow(dead_code)]
        colours: Vec<Colour>,
    }
    let tool = Tool::new("paint", |cx: Context, (): ()| async move {
        let colours = cx.elicit::<Colours>("Which?").await;
        let colours = colours.map(|it| it.colours.len().to_string());
        colours.unwrap_or_else(|error| error.to_string())
    });
    let (mut peer, (reader, writer)) = Peer::pipe();
    let server = Server::new("test", "1").tool(tool);
    let _serving = server.serve(reader, writer);
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "old", "version": "1" }
    });
    peer.ask(1, "initialize", hello).await;
    peer.expect_answer(1).await;
    peer.tell("notifications/initialized", json!({})).await;
    peer.ask(2, "tools/call", json!({ "name": "paint" })).await;
    let answer = peer.expect_answer(2).await;
    assert!(
        text(&answer).contains("no field for several choices"),
        "{answer}"
    );
}

/// An error is not kept: whoever comes next tries again, in this round or in another.
#[tokio::test]
async fn what_failed_is_tried_again() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let tool = Tool::new("try", move |cx: Context, (): ()| {
        let tries = counted.clone();
        async move {
            let attempt = || {
                cx.try_once("seat", || async {
                    tokio::task::yield_now().await;
                    match tries.fetch_add(1, Ordering::SeqCst) {
                        0 => Err(ToolError::new("sold out")),
                        number => Ok(number),
                    }
                })
            };
            // The second waits for the first, and tries when that has failed.
            let (first, second) = tokio::join!(attempt(), attempt());
            let name: Name = cx.elicit("Who?").await?;
            let failed = first.is_err();
            let seat = attempt().await?;
            Ok::<_, ToolError>(format!("{} {failed} {} {seat}", name.name, second?))
        }
    });
    let mut desk = Desk::new(&Server::new("test", "1").tool(tool));
    let asked = desk.call(json!({ "name": "try" })).await;
    assert_eq!(tries.load(Ordering::SeqCst), 2);
    let answer = json!({
        "name": "try", "requestState": asked["result"]["requestState"],
        "inputResponses": { "input": accept("Ada") }
    });
    // In the second round it is known from the start.
    assert_eq!(text(&desk.call(answer).await), "Ada false 1 1");
    assert_eq!(tries.load(Ordering::SeqCst), 2);
}

/// A state that is nothing is a state.
#[tokio::test]
async fn rounds_that_leave_nothing_behind_go_on() {
    let tool = Tool::in_steps(
        "ask",
        |_: Context, (): (), round: RoundTrip<()>| async move {
            match round.elicited::<Name>("who") {
                None => Ok(Step::Ask(
                    InputRequests::new(()).elicit::<Name>("who", "Who?"),
                )),
                Some(name) => Ok::<_, InputError>(Step::Done(name?.name)),
            }
        },
    );
    let mut desk = Desk::new(&Server::new("test", "1").tool(tool));
    let asked = desk.call(json!({ "name": "ask" })).await;
    let answer = json!({
        "name": "ask", "requestState": asked["result"]["requestState"],
        "inputResponses": { "who": accept("Ada") }
    });
    assert_eq!(text(&desk.call(answer).await), "Ada");
}

#[tokio::test]
async fn what_is_computed_once_cannot_ask() {
    let tool = Tool::new("ask", |cx: Context, (): ()| async move {
        let asked = cx.once("name", || async {
            let name = cx.elicit::<Name>("Who?").await;
            name.map(|name| name.name)
                .map_err(|error| error.to_string())
        });
        asked.await?.map_err(ToolError::new)
    });
    let mut desk = Desk::new(&Server::new("test", "1").tool(tool));
    let answer = desk.call(json!({ "name": "ask" })).await;
    assert_eq!(text(&answer), "what is computed once cannot ask: ask first");
}

/// A thread that waits for an answer does not wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_tool_that_asks_is_let_go() {
    let runtime = tokio::runtime::Handle::current();
    let tool = Tool::blocking("ask", move |cx: Context, (): ()| {
        let asked = runtime.block_on(cx.elicit::<Name>("Who?").into_future());
        asked.map(|name| name.name)
    });
    let server = Server::new("test", "1").tool(tool);
    let stats = server.stats();
    let mut desk = Desk::new(&server);
    for _ in 0..10 {
        let asked = desk.call(json!({ "name": "ask" })).await;
        assert_eq!(names(&asked), ["input"]);
    }
    until("no thread is left", || stats.handlers() == 0).await;
}

/// What can be asked depends on where: a completer has no rounds, and says so.
#[tokio::test]
async fn whoever_cannot_ask_is_told_at_once() {
    let prompt = Prompt::new("greet", |_: Context, it: Name| async move { it.name }).complete(
        "name",
        |cx, _| async move {
            let asked = cx.elicit::<Name>("Who?").await;
            let roots = cx.roots().await;
            [
                asked.unwrap_err().to_string(),
                roots.unwrap_err().to_string(),
            ]
        },
    );
    let mut desk = Desk::new(&Server::new("test", "1").prompt(prompt));
    let params = json!({
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "name", "value": "" }
    });
    let completed = desk.ask("completion/complete", params).await;
    let values = completed["result"]["completion"]["values"]
        .as_array()
        .unwrap();
    assert_eq!(values[0], "only tools, prompts and resources can ask");
    assert!(
        values[1]
            .as_str()
            .unwrap()
            .contains("this needs a client with `roots`")
    );
}

/// A server that tells something nobody can read, and a client that reads what there is.
#[tokio::test]
async fn times_that_make_no_sense_are_none() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let connecting = tokio::spawn(belay::Client::connect(reader, writer));
    let probe = peer.expect("server/discover").await;
    let introduction = json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": -5,
        "capabilities": { "tools": {} }
    });
    peer.answer(&probe, introduction).await;
    let client = connecting.await.unwrap().unwrap();
    for ttl in [json!(-1), json!(0.5), json!(0)] {
        let list = client.list_tools().start();
        let asked = peer.expect("tools/list").await;
        let tools = json!({ "resultType": "complete", "tools": [], "ttlMs": ttl });
        peer.answer(&asked, tools).await;
        assert!(list.await.is_ok(), "{ttl}");
    }
}

/// A client that is not asked what it knows asks nobody; one that hears of a change asks again.
#[tokio::test]
async fn lists_are_kept_until_they_change() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let connecting = tokio::spawn(belay::Client::connect(reader, writer));
    peer.open_modern().await;
    let client = connecting.await.unwrap().unwrap();
    let listening = {
        let client = client.clone();
        tokio::spawn(async move { client.listen(SubscriptionFilter::new().tools()).await })
    };
    let listen = peer.expect("subscriptions/listen").await;
    let tag = json!({ "io.modelcontextprotocol/subscriptionId": listen["id"] });
    let acknowledged = json!({ "_meta": tag, "notifications": { "toolsListChanged": true } });
    peer.tell("notifications/subscriptions/acknowledged", acknowledged)
        .await;
    let mut changes = listening.await.unwrap().unwrap();

    let page =
        json!({ "resultType": "complete", "tools": [], "ttlMs": 60000, "cacheScope": "private" });
    for round in 0..2 {
        let list = client.list_tools().start();
        let list = tokio::spawn(list);
        let asked = peer.expect("tools/list").await;
        peer.answer(&asked, page.clone()).await;
        list.await.unwrap().unwrap();
        // No request: the next thing that is heard is what was asked after it.
        client.list_tools().await.unwrap();
        peer.tell("notifications/tools/list_changed", json!({ "_meta": tag }))
            .await;
        assert_eq!(
            changes.next().await,
            Some(belay::client::Change::Tools),
            "{round}"
        );
    }
    // Something beside the parameters may say who asks.
    let list = tokio::spawn(client.list_tools().into_future());
    let asked = peer.expect("tools/list").await;
    peer.answer(&asked, page.clone()).await;
    list.await.unwrap().unwrap();
    let as_bob = client.list_tools().meta("example.com/user", "bob").start();
    let as_bob = tokio::spawn(as_bob);
    let asked = peer.expect("tools/list").await;
    peer.answer(&asked, page).await;
    as_bob.await.unwrap().unwrap();
    peer.answer(&listen, json!({ "resultType": "complete", "_meta": tag }))
        .await;
    assert_eq!(changes.next().await, None);
    assert!(matches!(
        changes.end(),
        Some(belay::client::SubscriptionEnd::Finished)
    ));
}
