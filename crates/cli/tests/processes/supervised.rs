//! A client whose server is started again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use belay::client::{Change, Restart, SubscriptionEnd, Supervision};
use belay::layers::Retry;
use belay::types::modern::SubscriptionFilter;
use belay::{Client, ErrorKind};
use belay_testkit::check;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{BELAY, MODES, Scratch, exists, signal, text, until_gone};

fn serve(log: &Scratch) -> std::process::Command {
    let mut command = std::process::Command::new(BELAY);
    command.arg("serve").env("BELAY_DEMO_EXECUTION_LOG", &log.0);
    command
}

fn quick() -> Supervision {
    Supervision::new().backoff(Duration::from_millis(1), Duration::from_millis(5))
}

/// How often each key was executed.
fn executions(log: &Scratch, key: &str) -> usize {
    log.text().lines().filter(|line| *line == key).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_twenty_times_during_a_thousand_calls() {
    for mode in MODES {
        let log = Scratch::new("executed");
        let restarts = Arc::new(AtomicUsize::new(0));
        let count = restarts.clone();
        let client = Client::builder("test", "1")
            .mode(mode)
            .layer(Retry::new(30).backoff(Duration::from_millis(1), Duration::from_millis(20)))
            .supervise(quick().restarts(25).on_restart(move |restart| {
                if let Restart::Back = restart {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }))
            .spawn(serve(&log))
            .await
            .unwrap();
        // So that the retry policy knows which tools may be called again.
        client.list_all_tools().await.unwrap();

        let ended = Arc::new(Mutex::new(Vec::new()));
        let callers: Vec<_> = (0..10)
            .map(|caller| {
                let (client, ended) = (client.clone(), ended.clone());
                tokio::spawn(async move {
                    for number in 0..100 {
                        let tool = ["once", "idempotent"][number % 2];
                        let key = format!("{tool}-{caller}-{number}");
                        let called = client.call_tool(tool, json!({ "key": key })).await;
                        ended.lock().unwrap().push((key, called));
                    }
                })
            })
            .collect();
        for _ in 0..20 {
            // Now and then, while calls are in flight.
            tokio::time::sleep(Duration::from_millis(15)).await;
            let before = restarts.load(Ordering::SeqCst);
            signal(client.pid().unwrap(), Signal::KILL);
            let back = || restarts.load(Ordering::SeqCst) > before;
            belay_testkit::until("it is back", back).await;
        }
        for caller in callers {
            caller.await.unwrap();
        }

        let ended = std::mem::take(&mut *ended.lock().unwrap());
        assert_eq!(ended.len(), 1000, "every call has an end");
        let mut lost = 0;
        for (key, called) in &ended {
            let times = executions(&log, key);
            match called {
                Ok(result) => {
                    assert_eq!(text(result), key);
                    assert!(times >= 1, "{key} was answered");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Lost, "{key}: {error:?}");
                    lost += 1;
                }
            }
            if key.starts_with("once") {
                assert!(times <= 1, "{key} was executed {times} times");
            } else {
                assert!(called.is_ok(), "{key} may be made again: {called:?}");
            }
        }
        assert!(lost < 250, "{lost} were lost");
        assert_eq!(restarts.load(Ordering::SeqCst), 20);
        check(&client.ledger());
        let pid = client.pid().unwrap();
        client.close().await;
        assert!(!exists(pid));
    }
}

#[tokio::test]
async fn only_success_fills_the_budget_again() {
    for mode in MODES {
        let log = Scratch::new("executed");
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = events.clone();
        let supervision = quick().restarts(2).on_restart(move |restart| {
            let word = match restart {
                Restart::Waiting { .. } => "waiting",
                Restart::Back => "back",
                Restart::GivenUp { .. } => "given up",
                _ => "?",
            };
            told.lock().unwrap().push(word);
        });
        let client = Client::builder("test", "1")
            .mode(mode)
            .supervise(supervision)
            .spawn(serve(&log))
            .await
            .unwrap();
        let count = |word| {
            events
                .lock()
                .unwrap()
                .iter()
                .filter(|it| **it == word)
                .count()
        };
        // Two restarts, an answer, two more, and then it is over.
        for round in 1..=4 {
            signal(client.pid().unwrap(), Signal::KILL);
            belay_testkit::until("it is back", || count("back") == round).await;
            if round == 2 {
                client
                    .call_tool("echo", json!({ "text": "hi" }))
                    .await
                    .unwrap();
            }
        }
        let in_flight = client.call_tool("hang", json!({})).start();
        signal(client.pid().unwrap(), Signal::KILL);
        assert!(in_flight.await.unwrap_err().is_lost());
        let cause = client.closed().await;
        assert_eq!(cause.kind, belay::outcome::LossKind::ProcessExit);
        assert_eq!(count("given up"), 1);
        let error = client
            .call_tool("echo", json!({ "text": "hi" }))
            .await
            .unwrap_err();
        assert!(
            error.is_lost() && error.safe_to_retry(),
            "closed-is-known: {error:?}"
        );
    }
}

#[tokio::test]
async fn calls_wait_for_the_next_connection_within_their_deadlines() {
    let log = Scratch::new("executed");
    let down = Arc::new(AtomicUsize::new(0));
    let count = down.clone();
    let supervision = Supervision::new()
        .backoff(Duration::from_millis(300), Duration::from_secs(1))
        .on_restart(move |restart| {
            if let Restart::Waiting { .. } = restart {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
    let client = Client::builder("test", "1")
        .supervise(supervision)
        .spawn(serve(&log))
        .await
        .unwrap();
    let first = client.pid().unwrap();
    signal(first, Signal::KILL);
    belay_testkit::until("it is down", || down.load(Ordering::SeqCst) == 1).await;
    let hurried = client
        .call_tool("echo", json!({ "text": "hi" }))
        .timeout(Duration::from_millis(20));
    let error = hurried.await.unwrap_err();
    assert!(error.is_timeout() && error.safe_to_retry(), "{error:?}");
    let patient = client
        .call_tool("echo", json!({ "text": "hi" }))
        .await
        .unwrap();
    assert_eq!(text(&patient), "hi");
    let second = client.pid().unwrap();
    assert_ne!(first, second);
    drop(client);
    until_gone(second, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_client_that_is_closed_while_its_server_is_down_starts_none() {
    let log = Scratch::new("executed");
    let starts = Scratch::new("starts");
    let mut command = std::process::Command::new("sh");
    let script = format!("echo start >> {}; exec {BELAY} serve", starts.0.display());
    command
        .args(["-c", &script])
        .env("BELAY_DEMO_EXECUTION_LOG", &log.0);
    let supervision =
        Supervision::new().backoff(Duration::from_millis(200), Duration::from_secs(1));
    let client = Client::builder("test", "1")
        .supervise(supervision)
        .spawn(command)
        .await
        .unwrap();
    let pid = client.pid().unwrap();
    signal(pid, Signal::KILL);
    until_gone(pid, Duration::from_secs(5)).await;
    let waiting = client.call_tool("echo", json!({ "text": "hi" })).start();
    client.close().await;
    assert!(waiting.await.unwrap_err().safe_to_retry());
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(starts.text().lines().count(), 1);
}

#[tokio::test]
async fn closed_is_known_even_if_the_closing_was_given_up() {
    // It outlives the end of its input, so that closing takes its time.
    let script = format!("trap '' TERM; {BELAY} serve; while :; do sleep 1; done");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]);
    let client = Client::builder("test", "1")
        .supervise(quick())
        .spawn(command)
        .await
        .unwrap();
    let pid = client.pid().unwrap();
    let closing = tokio::time::timeout(Duration::from_millis(50), client.close()).await;
    assert!(closing.is_err(), "it was given up");
    let closed = tokio::time::timeout(Duration::from_secs(5), client.closed()).await;
    assert!(closed.is_ok());
    let call = client
        .call_tool("echo", json!({ "text": "hi" }))
        .no_timeout();
    let called = tokio::time::timeout(Duration::from_secs(5), call.into_future()).await;
    assert!(called.expect("no-hang").unwrap_err().safe_to_retry());
    client.kill().await;
    until_gone(pid, Duration::from_secs(10)).await;
}

/// 2026-07-28, basic/patterns/subscriptions: after a reconnect a client listens again.
#[tokio::test]
async fn subscriptions_survive_the_death_of_the_server() {
    for mode in MODES {
        let log = Scratch::new("executed");
        let client = Client::builder("test", "1")
            .mode(mode)
            .supervise(quick())
            .spawn(serve(&log))
            .await
            .unwrap();
        let filter = SubscriptionFilter::new().resource("demo://hello");
        let mut changes = client.listen(filter).await.unwrap();
        let uri = "demo://hello".to_owned();
        for _ in 0..3 {
            let touched = client.call_tool("touch", json!({ "uri": uri })).await;
            assert_eq!(text(&touched.unwrap()), "touched");
            let updated = Change::Updated { uri: uri.clone() };
            assert_eq!(changes.next().await, Some(updated));
            signal(client.pid().unwrap(), Signal::KILL);
            assert_eq!(changes.next().await, Some(Change::Restored));
        }
        client.close().await;
        assert_eq!(changes.next().await, None);
        match changes.end() {
            Some(SubscriptionEnd::Failed(error)) => assert!(!error.is_timeout(), "{error:?}"),
            end => panic!("{end:?}"),
        }
    }
}
