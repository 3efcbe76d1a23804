//! **bounded**: whatever a peer does or does not read.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use belay::client::Mode;
use belay::outcome::{Outcome, Rejection};
use belay::{Client, ErrorKind};
use rustix::process::Signal;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::support::{BELAY, MODES, RawServer, client, is_alone, memory, signal, until_active};

#[tokio::test]
async fn bounded_five_thousand_large_calls_to_a_server_that_stops_reading() {
    let name = "bounded::bounded_five_thousand_large_calls_to_a_server_that_stops_reading";
    if !is_alone(name).await {
        return;
    }
    for mode in MODES {
        let client = client(mode).await;
        let pid = client.pid().unwrap();
        signal(pid, Signal::STOP);
        let before = memory(std::process::id());
        // Encoded once: in a debug build that takes 6 ms, and the first call may wait for only 60 s.
        let text = to_raw_value(&json!({ "text": "x".repeat(100_000) })).unwrap();
        let calls: Vec<_> = (0..5000)
            .map(|_| client.call_tool("echo", &text).start())
            .collect();
        let growth = memory(std::process::id()).saturating_sub(before);
        assert!(growth < 64 << 20, "the client grew by {growth} bytes");
        signal(pid, Signal::CONT);
        let (mut answered, mut rejected) = (0, 0);
        for call in calls {
            match call.await {
                Ok(result) => {
                    assert_eq!(result.content[0].as_text().unwrap().len(), 100_000);
                    answered += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Rejected, "{error:?}");
                    assert!(error.safe_to_retry());
                    rejected += 1;
                }
            }
        }
        assert_eq!(answered + rejected, 5000);
        assert!(
            answered >= 100,
            "{answered} answered: nothing that was accepted was lost"
        );
        client.close().await;
    }
}

#[test]
fn bounded_large_answers_to_a_client_that_stops_reading() {
    const CALLS: usize = 1000;
    let mut server = Command::new(BELAY)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, stdout) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let before = memory(server.id());
    let writing = std::thread::spawn(move || {
        let text = "x".repeat(100_000);
        for id in 1..=CALLS {
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                "name": "echo", "arguments": { "text": text }, "_meta": {
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {}
                }
            }});
            writeln!(stdin, "{call}").unwrap();
        }
        stdin
    });
    // Nobody reads: the server pushes back, and stops reading, too.
    std::thread::sleep(Duration::from_millis(1000));
    let growth = memory(server.id()).saturating_sub(before);
    assert!(growth < 64 << 20, "the server grew by {growth} bytes");
    assert!(!writing.is_finished(), "it took everything");
    // Once somebody reads, every request is answered or refused.
    let mut answers = BufReader::new(stdout).lines();
    for _ in 0..CALLS {
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        let answered = answer["result"]["content"][0]["text"].is_string();
        assert!(answered || answer["error"]["code"] == -31001, "{answer}");
    }
    drop(writing.join().unwrap());
    assert!(server.wait().unwrap().success());
}

#[tokio::test]
async fn bounded_two_full_pipes_are_no_deadlock() {
    for mode in MODES {
        let client = client(mode).await;
        let text = "x".repeat(1 << 20);
        // Far more than both pipes hold, in both directions at once.
        let calls: Vec<_> = (0..15)
            .map(|_| client.call_tool("echo", json!({ "text": text })).start())
            .collect();
        for call in calls {
            assert!(call.await.is_ok());
        }
    }
}

#[tokio::test]
async fn bounded_a_flood_of_calls_is_refused_at_once_and_every_cancel_is_read() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let mut server = RawServer::start(mode).await;
        for id in 1..=512 {
            server.call(id, "hang", json!({})).await;
        }
        for _ in 0..512 - 128 {
            let refused = server.peer.hear().await.unwrap();
            assert_eq!(refused["error"]["code"], -31001, "{refused}");
        }
        for id in 1..=512 {
            server.cancel(id).await;
        }
        server.until_active(0).await;
    }
}

/// What blocks cannot be stopped, so it has places of its own.
#[tokio::test]
async fn bounded_blocking_handlers_whose_callers_are_gone_stop_nobody_else() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let mut server = RawServer::start(mode).await;
        for id in 1..=100 {
            server.call(id, "block", json!({ "ms": 60_000 })).await;
        }
        for _ in 0..100 - 64 {
            let refused = server.peer.hear().await.unwrap();
            assert_eq!(refused["error"]["code"], -31001, "{refused}");
        }
        for id in 1..=100 {
            server.cancel(id).await;
        }
        for id in 200..400 {
            server.call(id, "echo", json!({ "text": "hi" })).await;
            let answer = server.peer.expect_answer(id).await;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        server.call(500, "block", json!({ "ms": 1 })).await;
        let refused = server.peer.expect_answer(500).await;
        assert_eq!(refused["error"]["code"], -31001, "{refused}");
        server.peer.hang_up().await;
        let (status, after, _) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(after < Duration::from_secs(10), "{after:?}");
    }
}

#[tokio::test]
async fn bounded_each_limit_of_our_own_has_its_typed_refusal() {
    for mode in MODES {
        let mut command = std::process::Command::new(BELAY);
        command.arg("serve");
        let client = Client::builder("test", "1")
            .mode(mode)
            .limits(|limits| {
                limits.calls = 4;
                limits.message_bytes = 100_000;
                limits.queued_bytes = 150_000;
            })
            .spawn(command)
            .await
            .unwrap();
        let rejection = |error: belay::Error| match error.outcome() {
            Some(Outcome::Rejected(rejection)) if error.safe_to_retry() => *rejection,
            _ => panic!("{error:?}"),
        };
        let echo = |bytes: usize| client.call_tool("echo", json!({ "text": "x".repeat(bytes) }));
        let error = echo(200_000).await.unwrap_err();
        assert_eq!(
            rejection(error),
            Rejection::MessageTooLarge { limit: 100_000 }
        );

        signal(client.pid().unwrap(), Signal::STOP);
        let mut waiting = vec![echo(90_000).start()];
        // The pipe takes some of it; what is queued after that fills the queue.
        let full = loop {
            let call = echo(90_000).start();
            match call.id() {
                Some(_) => waiting.push(call),
                None => break call.await.unwrap_err(),
            }
        };
        assert_eq!(rejection(full), Rejection::QueueFull { limit: 150_000 });
        signal(client.pid().unwrap(), Signal::CONT);
        for call in waiting {
            assert!(call.await.is_ok(), "nothing is lost");
        }

        let hangs: Vec<_> = (0..4)
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        let error = client.call_tool("hang", json!({})).await.unwrap_err();
        assert_eq!(rejection(error), Rejection::TooManyCalls { limit: 4 });
        drop(hangs);
        until_active(&client, 0).await;
    }
}
