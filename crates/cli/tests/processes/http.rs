//! The rules on HTTP, each on the modern era, the legacy one, and the event streams of 2024-11-05,
//! with real processes and real sockets.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belay::client::ClientBuilder;
use belay::client::Mode;
use belay::outcome::{Clock, End, Sent};
use belay::transport::Direction;
use belay::types::CallToolResult;
use belay::{Client, InFlight};
use belay_testkit::{RawHttp, check};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{
    BELAY, Scratch, active, belay_command, memory, signal, text, until_active, until_gone,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    Modern,
    Legacy,
    EventStream,
}

pub(crate) const WAYS: [Way; 3] = [Way::Modern, Way::Legacy, Way::EventStream];

/// `belay serve --http`, and where it is.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) address: String,
    log: Scratch,
}

impl HttpServer {
    pub(crate) async fn start() -> Self {
        Self::with(&["--sse"]).await
    }

    pub(crate) async fn with(options: &[&str]) -> Self {
        Self::of(Command::new(BELAY), options).await
    }

    /// One with a bug that was planted in it.
    #[cfg(belay_planted)]
    pub(crate) async fn planted(bug: &str) -> Self {
        let mut command = Command::new(BELAY);
        command.env("BELAY_PLANTED", bug);
        Self::of(command, &[]).await
    }

    async fn of(mut command: Command, options: &[&str]) -> Self {
        let log = Scratch::new("cleaned");
        let mut child = command
            .args(["serve", "--http", "127.0.0.1:0"])
            .args(options)
            .env("BELAY_DEMO_CLEANUP_LOG", &log.0)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        let address = line
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self {
            child,
            address,
            log,
        }
    }

    pub(crate) fn url(&self, way: Way) -> String {
        let path = match way {
            Way::Modern | Way::Legacy => "mcp",
            Way::EventStream => "sse",
        };
        format!("http://{}/{path}", self.address)
    }

    pub(crate) async fn client(&self, way: Way) -> Client {
        self.client_of(way, Client::builder("test", "1")).await
    }

    async fn client_of(&self, way: Way, builder: ClientBuilder) -> Client {
        let mode = match way {
            Way::Modern => Mode::Modern,
            Way::Legacy | Way::EventStream => Mode::Legacy,
        };
        builder.mode(mode).http(&self.url(way)).await.unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    fn cleaned(&self) -> usize {
        self.log
            .text()
            .lines()
            .filter(|line| *line == "cleaned")
            .count()
    }
}

async fn each() -> impl Iterator<Item = (Way, HttpServer)> {
    let mut servers = Vec::new();
    for way in WAYS {
        servers.push((way, HttpServer::start().await));
    }
    servers.into_iter()
}

#[tokio::test]
async fn typed_end_kill_9_is_lost_before_and_after_the_head() {
    // An answer becomes a stream after 250 ms: before that, the POST itself fails.
    for wait in [Duration::ZERO, Duration::from_millis(600)] {
        for (way, server) in each().await {
            let client = server.client(way).await;
            let calls: Vec<_> = (0..20)
                .map(|_| client.call_tool("hang", json!({})).start())
                .collect();
            until_active(&client, 20).await;
            tokio::time::sleep(wait).await;
            let pid = server.pid();
            signal(pid, Signal::KILL);
            let killed = Instant::now();
            for call in calls {
                let error = call.await.unwrap_err();
                assert!(
                    error.is_lost() && !error.is_cancelled(),
                    "{way:?}: {error:?}"
                );
                assert_ne!(error.sent(), Some(Sent::Never), "{way:?}");
            }
            // The bar is 100 ms; a busy machine gets ten times that.
            assert!(
                killed.elapsed() < Duration::from_secs(1),
                "{way:?}: {:?}",
                killed.elapsed()
            );
            until_never_sent(&client, way).await;
            assert_eq!(client.ledger().calls.in_flight(), 0);
        }
    }
}

/// Calls a server that is dead until a call finds no connection to it. Every call is lost.
///
/// A connection in the pool may be dead without the pool knowing: a call on it was handed to the
/// operating system, so *maybe* is the truth. Each such call removes one connection from the pool.
async fn until_never_sent(client: &Client, way: Way) {
    // The twenty calls, and those that counted them.
    for _ in 0..=40 {
        let error = client.list_tools().await.unwrap_err();
        assert!(error.is_lost(), "{way:?}: {error:?}");
        if error.safe_to_retry() {
            return;
        }
    }
    panic!("{way:?}: no call was said to be never sent");
}

#[tokio::test]
async fn drop_announces_ten_thousand_cancelled_calls_leave_nothing() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let round = |calls: usize| {
            let client = client.clone();
            async move {
                let calls: Vec<_> = (0..calls)
                    .map(|_| client.call_tool("hang", json!({})).start())
                    .collect();
                // Some of them are dropped while they run, others before, or on their way.
                active(&client).await;
                drop(calls);
                until_active(&client, 0).await;
            }
        };
        for _ in 0..10 {
            round(100).await;
        }
        let before = memory(server.pid());
        for _ in 0..90 {
            round(100).await;
        }
        assert_eq!(active(&client).await, 0, "{way:?}: leaked handlers");
        let growth = memory(server.pid()).saturating_sub(before);
        assert!(
            growth < 16 << 20,
            "{way:?}: the server grew by {growth} bytes"
        );
        let ledger = client.ledger();
        assert_eq!(ledger.calls.ended_as(End::Cancelled), 10_000);
        assert_eq!(ledger.calls.in_flight(), 0);
        let books = client.call_tool("ledger", json!({})).await.unwrap();
        assert_eq!(books.structured_content.unwrap()["running"], 0);
        client.close().await;
    }
}

/// What a client wrote, frame by frame.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<Value>>>);

impl Told {
    fn builder(&self) -> ClientBuilder {
        let told = self.clone();
        Client::builder("test", "1").tap(move |way, frame| {
            if way == Direction::Out {
                told.0
                    .lock()
                    .unwrap()
                    .push(serde_json::from_slice(frame).unwrap());
            }
        })
    }

    fn cancels(&self) -> Vec<Value> {
        let told = self.0.lock().unwrap();
        let cancels = told
            .iter()
            .filter(|it| it["method"] == "notifications/cancelled");
        cancels
            .map(|it| it["params"]["requestId"].clone())
            .collect()
    }

    fn hangs(&self) -> usize {
        let told = self.0.lock().unwrap();
        told.iter()
            .filter(|it| it["params"]["name"] == "hang")
            .count()
    }
}

#[tokio::test]
async fn drop_announces_each_way_of_giving_up_once() {
    for (way, server) in each().await {
        let told = Told::default();
        let client = server.client_of(way, told.builder()).await;
        let hang = || client.call_tool("hang", json!({}));
        let mut given_up = Vec::new();

        let call = hang().start();
        given_up.push(call.id().unwrap());
        until_active(&client, 1).await;
        assert!(
            tokio::time::timeout(Duration::from_millis(1), call)
                .await
                .is_err()
        );
        until_active(&client, 0).await;

        let call = hang().start();
        given_up.push(call.id().unwrap());
        tokio::select! {
            _ = call => panic!("it hangs"),
            () = until_active(&client, 1) => {}
        }
        until_active(&client, 0).await;

        let call = hang().start();
        given_up.push(call.id().unwrap());
        let task = tokio::spawn(call);
        until_active(&client, 1).await;
        task.abort();
        until_active(&client, 0).await;

        let call = hang().start();
        given_up.push(call.id().unwrap());
        until_active(&client, 1).await;
        call.canceller().cancel();
        assert!(call.await.unwrap_err().is_cancelled());
        until_active(&client, 0).await;

        let call = hang().timeout(Duration::from_millis(100)).start();
        given_up.push(call.id().unwrap());
        assert!(call.await.unwrap_err().is_timeout());
        until_active(&client, 0).await;

        let never = hang();
        never.canceller().cancel();
        let error = never.await.unwrap_err();
        assert!(error.safe_to_retry(), "{way:?}: {error:?}");
        client.close().await;
        let expected: Vec<Value> = match way {
            // The stream is closed, and that says it.
            Way::Modern => Vec::new(),
            _ => given_up.iter().map(|id| json!(id)).collect(),
        };
        assert_eq!(told.cancels(), expected, "{way:?}: announce-once");
        assert_eq!(told.hangs(), 5, "{way:?}: one was never written");
    }
}

/// Stops a process, and waits until it has.
async fn stop(pid: u32) {
    signal(pid, Signal::STOP);
    belay_testkit::until("it has stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.contains(") T ")
    })
    .await;
}

#[tokio::test]
async fn cancel_never_waits_for_a_server_that_is_stopped() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let hangs: Vec<_> = (0..50)
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        until_active(&client, 50).await;
        stop(server.pid()).await;
        let called = Instant::now();
        let late = client.call_tool("echo", json!({ "text": "hi" }));
        let error = late.timeout(Duration::from_millis(200)).await.unwrap_err();
        assert!(error.is_timeout(), "{way:?}: {error:?}");
        assert!(called.elapsed() < Duration::from_secs(2));
        let dropping = Instant::now();
        drop(hangs);
        assert!(
            dropping.elapsed() < Duration::from_millis(500),
            "{way:?}: cancel-never-waits"
        );
        signal(server.pid(), Signal::CONT);
        until_active(&client, 0).await;
    }
}

#[tokio::test]
async fn closing_a_client_leaves_nothing_on_its_server() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let hangs: Vec<_> = (0..20)
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        until_active(&client, 20).await;
        client.close().await;
        for hang in hangs {
            assert!(hang.await.unwrap_err().is_cancelled(), "{way:?}");
        }
        let error = client.list_tools().await.unwrap_err();
        assert!(
            error.is_lost() && error.safe_to_retry(),
            "{way:?}: closed-is-known"
        );
        let other = server.client(Way::Modern).await;
        until_active(&other, 0).await;
    }
}

#[tokio::test]
async fn a_client_that_is_killed_leaves_nothing_on_its_server() {
    for (way, server) in each().await {
        let url = server.url(way);
        let era = match way {
            Way::Modern => "modern",
            _ => "legacy",
        };
        let mut child = belay_command()
            .args(["call", "--era", era, &url, "hang"])
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let other = server.client(Way::Modern).await;
        until_active(&other, 1).await;
        child.start_kill().unwrap();
        child.wait().await.unwrap();
        match way {
            // A disconnect is no cancellation there: it has a minute to come back.
            Way::Legacy => assert_eq!(active(&other).await, 1),
            _ => until_active(&other, 0).await,
        }
    }
}

#[tokio::test]
async fn one_end_an_answer_and_a_cancel_race_and_each_call_ends_once() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let before = client.ledger().calls;
        for patience in 0..200 {
            let call = client.call_tool("echo", json!({ "text": "hi" })).start();
            let canceller = call.canceller();
            let cancelling = tokio::spawn(async move {
                for _ in 0..patience {
                    tokio::task::yield_now().await;
                }
                canceller.cancel();
            });
            match call.await {
                Ok(result) => assert_eq!(text(&result), "hi"),
                Err(error) => assert!(error.is_cancelled(), "{way:?}: {error:?}"),
            }
            cancelling.await.unwrap();
        }
        let after = client.ledger().calls;
        assert_eq!(after.ended() - before.ended(), 200, "{way:?}: one-end");
        assert_eq!(after.in_flight(), 0);
    }
}

#[tokio::test]
async fn deadline_covers_all_two_clocks_of_which_progress_resets_one() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let count = |steps: u32| {
            let arguments = json!({ "to": steps, "delay_ms": 50 });
            client.call_tool("count", arguments)
        };
        let call = count(12).idle_timeout(Duration::from_millis(400));
        assert_eq!(
            text(&call.await.unwrap()),
            "12",
            "{way:?}: progress resets the idle clock"
        );
        let call = count(100).timeout(Duration::from_millis(300));
        let error = call.await.unwrap_err();
        assert_eq!(error.clock(), Some(Clock::Total), "{way:?}: {error:?}");
        assert_eq!(error.sent(), Some(Sent::Yes), "{way:?}: it had spoken");
        let call = client.call_tool("hang", json!({}));
        let error = call
            .idle_timeout(Duration::from_millis(100))
            .await
            .unwrap_err();
        assert_eq!(error.clock(), Some(Clock::Idle), "{way:?}: {error:?}");
        until_active(&client, 0).await;
    }
}

#[tokio::test]
async fn order_two_hundred_steps_come_in_order_before_the_answer() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let steps: Arc<Mutex<Vec<f64>>> = Arc::default();
        let told = steps.clone();
        let call = client
            .call_tool("count", json!({ "to": 200, "delay_ms": 0 }))
            .on_progress(move |step| told.lock().unwrap().push(step.progress.0));
        assert_eq!(text(&call.await.unwrap()), "200");
        let expected: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(*steps.lock().unwrap(), expected, "{way:?}");
    }
}

#[tokio::test]
async fn panic_fence_a_panic_ends_one_request() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let hang = client.call_tool("hang", json!({})).start();
        until_active(&client, 1).await;
        let error = client.call_tool("panic", json!({})).await.unwrap_err();
        assert_eq!(error.refusal().unwrap().code, -32603, "{way:?}");
        assert_eq!(error.refusal().unwrap().message, "internal error");
        assert_eq!(active(&client).await, 1);
        drop(hang);
    }
}

/// Calls `rollback`, and waits until it runs.
async fn begin_rollback(client: &Client, millis: u64) -> InFlight<CallToolResult> {
    let (runs, mut running) = tokio::sync::mpsc::unbounded_channel();
    let call = client
        .call_tool("rollback", json!({ "ms": millis }))
        .on_progress(move |_| {
            let _ = runs.send(());
        })
        .start();
    running.recv().await.unwrap();
    call
}

#[tokio::test]
async fn stop_is_real_for_plain_patient_and_blocking_handlers() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let patient = begin_rollback(&client, 100).await;
        let blocking = client.call_tool("block", json!({ "ms": 700 })).start();
        let plain = client.call_tool("hang", json!({})).start();
        until_active(&client, 1).await;
        drop((patient, blocking, plain));
        until_active(&client, 0).await;
        belay_testkit::until("both have cleaned up", || server.cleaned() == 2).await;
    }
}

#[tokio::test]
async fn tree_a_legacy_server_asks_and_its_form_goes_with_its_request() {
    for (way, server) in each().await {
        if way == Way::Modern {
            continue;
        }
        let builder = Client::builder("test", "1")
            .capabilities(|it| it.elicitation = Some(serde_json::from_value(json!({})).unwrap()))
            .on_request("elicitation/create", |_, params| async move {
                let answer =
                    json!({ "action": "accept", "content": { "answer": params["message"] } });
                Ok(answer)
            });
        let client = server.client_of(way, builder).await;
        let answer = client
            .call_tool("ask", json!({ "question": "why?" }))
            .await
            .unwrap();
        assert!(text(&answer).contains("why?"), "{way:?}: {answer:?}");

        let (asked, mut hears) = tokio::sync::mpsc::unbounded_channel();
        let builder = Client::builder("test", "1")
            .capabilities(|it| it.elicitation = Some(serde_json::from_value(json!({})).unwrap()))
            .on_request("elicitation/create", move |cx, _| {
                let asked = asked.clone();
                async move {
                    let _ = asked.send("asked");
                    cx.stopped().await;
                    let _ = asked.send("stopped");
                    Ok(json!({ "action": "cancel" }))
                }
            });
        let client = server.client_of(way, builder).await;
        let call = client
            .call_tool("ask", json!({ "question": "why?" }))
            .start();
        assert_eq!(hears.recv().await, Some("asked"), "{way:?}");
        drop(call);
        assert_eq!(hears.recv().await, Some("stopped"), "{way:?}: tree");
    }
}

#[tokio::test]
async fn retry_is_explicit_a_call_whose_server_died_is_not_made_again() {
    for way in WAYS {
        let mut server = HttpServer::start().await;
        let told = Told::default();
        let client = server.client_of(way, told.builder()).await;
        let call = client.call_tool("hang", json!({})).start();
        until_active(&client, 1).await;
        server.child.start_kill().unwrap();
        assert!(call.await.unwrap_err().is_lost());
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(told.hangs(), 1, "{way:?}");
    }
}

#[tokio::test]
async fn ledger_started_is_ends_and_in_flight_on_both_sides() {
    for (way, server) in each().await {
        let client = server.client(way).await;
        let mut hangs = Vec::new();
        for number in 0..40 {
            match number % 4 {
                0 => hangs.push(client.call_tool("hang", json!({})).start()),
                1 => drop(client.call_tool("hang", json!({})).start()),
                2 => drop(client.call_tool("panic", json!({})).await),
                _ => drop(client.call_tool("echo", json!({ "text": "hi" })).await),
            }
        }
        until_active(&client, 10).await;
        let ledger = client.call_tool("ledger", json!({})).await.unwrap();
        let ledger = ledger.structured_content.unwrap();
        assert_eq!(ledger["running"], 10, "{way:?}: {ledger}");
        let sum = ledger["ended"].as_u64().unwrap() + 10;
        assert_eq!(ledger["started"].as_u64().unwrap(), sum, "{way:?}");
        drop(hangs);
        until_active(&client, 0).await;
        check(&client.ledger());
    }
}

#[tokio::test]
async fn orderly_close_sigterm_cleans_up_and_exits_0() {
    for (way, mut server) in each().await {
        let client = server.client(way).await;
        let hangs: Vec<_> = (0..5)
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        let patient = begin_rollback(&client, 50).await;
        until_active(&client, 5).await;
        let pid = server.pid();
        let since = Instant::now();
        signal(pid, Signal::TERM);
        let status = server.child.wait().await.unwrap();
        assert!(status.success(), "{way:?}: {status:?}");
        // Drain, grace and flush; ten times the bar for a busy machine.
        assert!(since.elapsed() < Duration::from_secs(20), "{way:?}");
        assert_eq!(server.cleaned(), 6, "{way:?}: their clean-up has run");
        for hang in hangs {
            assert!(hang.await.unwrap_err().is_lost(), "{way:?}");
        }
        drop(patient);
        until_gone(pid, Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn orderly_close_a_blocking_handler_does_not_keep_the_process_alive() {
    let mut server = HttpServer::start().await;
    let client = server.client(Way::Modern).await;
    let block = client.call_tool("block", json!({ "ms": 60_000 })).start();
    let hang = client.call_tool("hang", json!({})).start();
    until_active(&client, 1).await;
    let since = Instant::now();
    signal(server.pid(), Signal::TERM);
    assert!(server.child.wait().await.unwrap().success());
    assert!(since.elapsed() < Duration::from_secs(20));
    drop((block, hang));
}

#[tokio::test]
async fn allow_origin_lets_pages_of_that_origin_in_and_no_others() {
    let server = HttpServer::with(&["--allow-origin", "https://app.example"]).await;
    let shown_to = "access-control-allow-origin";
    for (origin, asked, answered) in [
        ("https://app.example", 204, 200),
        ("https://evil.example", 403, 403),
    ] {
        let mut http = RawHttp::connect(server.address.parse().unwrap()).await;
        http.set("Origin", origin);
        http.set("Access-Control-Request-Method", "POST");
        http.set("Access-Control-Request-Headers", "content-type,mcp-method");
        http.send("OPTIONS", b"").await;
        let answer = http.answer().await;
        let shown = (asked == 204).then_some(origin);
        assert_eq!((answer.status, answer.header(shown_to)), (asked, shown));
        http.set("Access-Control-Request-Method", None);
        http.set("Access-Control-Request-Headers", None);
        http.call(1, "echo", json!({ "text": "hi" })).await;
        let answer = http.answer().await;
        assert_eq!((answer.status, answer.header(shown_to)), (answered, shown));
    }
}
