//! **drop-announces**, **announce-once**, **cancel-never-waits**, **silence**.

use std::time::{Duration, Instant};

use belay::client::Mode;
use belay::outcome::End;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    MODES, RawServer, Scratch, active, client, client_of_script, memory, signal, until_active,
};

#[tokio::test]
async fn drop_announces_ten_thousand_cancelled_calls_leave_nothing() {
    for mode in MODES {
        let client = client(mode).await;
        let pid = client.pid().unwrap();
        let round = |calls: usize| {
            let client = client.clone();
            async move {
                let calls: Vec<_> = (0..calls)
                    .map(|_| client.call_tool("hang", json!({})).start())
                    .collect();
                // Half of them are dropped while they run, half perhaps before.
                active(&client).await;
                drop(calls);
                until_active(&client, 0).await;
            }
        };
        for _ in 0..10 {
            round(100).await;
        }
        let before = memory(pid);
        for _ in 0..90 {
            round(100).await;
        }
        assert_eq!(active(&client).await, 0, "leaked handlers");
        let growth = memory(pid).saturating_sub(before);
        assert!(growth < 8 << 20, "the server grew by {growth} bytes");
        let ledger = client.ledger();
        assert_eq!(ledger.calls.ended_as(End::Cancelled), 10_000);
        assert_eq!(ledger.calls.in_flight(), 0);
        client.close().await;
    }
}

/// The lines that went to a server, by way of `tee`.
fn heard(log: &Scratch) -> Vec<Value> {
    let text = log.text();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn cancels(heard: &[Value]) -> Vec<Value> {
    heard
        .iter()
        .filter(|message| message["method"] == "notifications/cancelled")
        .map(|message| message["params"]["requestId"].clone())
        .collect()
}

#[tokio::test]
async fn drop_announces_each_way_of_giving_up_once_with_the_right_id() {
    for mode in MODES {
        let log = Scratch::new("heard");
        let script = format!("tee {} | $BELAY serve", log.0.display());
        let client = client_of_script(mode, &script).await;
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

        let call = hang().start();
        given_up.push(call.id().unwrap());
        tokio::select! {
            _ = call => panic!("it hangs"),
            () = until_active(&client, 1) => {}
        }

        let call = hang().start();
        given_up.push(call.id().unwrap());
        let task = tokio::spawn(call);
        until_active(&client, 1).await;
        task.abort();

        let call = hang().start();
        given_up.push(call.id().unwrap());
        until_active(&client, 1).await;
        call.canceller().cancel();
        assert!(call.await.unwrap_err().is_cancelled());

        let call = hang().timeout(Duration::from_millis(50)).start();
        given_up.push(call.id().unwrap());
        assert!(call.await.unwrap_err().is_timeout());

        let never = hang();
        never.canceller().cancel();
        assert!(never.await.unwrap_err().safe_to_retry());

        until_active(&client, 0).await;
        client.close().await;
        let heard = heard(&log);
        let expected: Vec<Value> = given_up.iter().map(|id| json!(id)).collect();
        assert_eq!(cancels(&heard), expected, "announce-once");
        let hangs = heard
            .iter()
            .filter(|message| message["params"]["name"] == "hang");
        assert_eq!(
            hangs.count(),
            5,
            "the one that was cancelled first was never written"
        );
    }
}

#[tokio::test]
async fn cancel_never_waits_for_a_server_that_is_stopped_and_a_pipe_that_is_full() {
    for mode in MODES {
        let client = client(mode).await;
        let pid = client.pid().unwrap();
        let hangs: Vec<_> = (0..50)
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        until_active(&client, 50).await;
        signal(pid, Signal::STOP);
        let filler = "x".repeat(1 << 20);
        let echo = client.call_tool("echo", json!({ "text": filler })).start();

        let called = Instant::now();
        let late = client.call_tool("echo", json!({ "text": "hi" }));
        let error = late.timeout(Duration::from_millis(200)).await.unwrap_err();
        let waited = called.elapsed();
        assert!(error.is_timeout() && error.safe_to_retry(), "{error:?}");
        assert!(waited >= Duration::from_millis(200) && waited < Duration::from_secs(2));

        let dropping = Instant::now();
        drop(hangs);
        assert!(
            dropping.elapsed() < Duration::from_millis(500),
            "cancel-never-waits"
        );

        signal(pid, Signal::CONT);
        assert!(echo.await.is_ok());
        until_active(&client, 0).await;
    }
}

#[tokio::test]
async fn cancel_never_waits_but_closing_flushes_fifty_cancels() {
    for mode in MODES {
        let log = Scratch::new("heard");
        let script = format!("tee {} | $BELAY serve", log.0.display());
        let client = client_of_script(mode, &script).await;
        let hangs: Vec<_> = (0..50)
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        until_active(&client, 50).await;
        drop(hangs);
        client.close().await;
        for _ in 0..1000 {
            if cancels(&heard(&log)).len() == 50 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(cancels(&heard(&log)).len(), 50);
    }
}

#[tokio::test]
async fn silence_nothing_leaves_after_a_cancel() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server
            .call(1, "count", json!({ "to": 1_000_000, "delay_ms": 1 }))
            .await;
        for _ in 0..3 {
            let progress = server.peer.expect("notifications/progress").await;
            assert_eq!(progress["params"]["progressToken"], 1);
        }
        server.cancel(1).await;
        server.call(2, "echo", json!({ "text": "over" })).await;
        // Progress that had left before the cancel was read may still come; then the answer to the
        // next request; then nothing.
        loop {
            let message = server.peer.hear().await.unwrap();
            if message["id"] == 2 {
                break;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
        }
        server.peer.expect_silence(Duration::from_millis(100)).await;

        // One that cleans up has a result in the end. Nobody gets to see it.
        server.begin_rollback(3, 50).await;
        server.call(4, "echo", json!({ "text": "hi" })).await;
        server.peer.expect_answer(4).await;
        server.cancel(3).await;
        belay_testkit::until("it has cleaned up", || server.cleaned() == 1).await;
        server.peer.expect_silence(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn silence_an_answer_that_waits_to_be_written_is_withdrawn() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        // Far more than a pipe holds, and nobody reads yet.
        for id in 1..=20 {
            let text = "x".repeat(100_000);
            server.call(id, "echo", json!({ "text": text })).await;
        }
        server.call("probe", "active", json!({})).await;
        // The answers come in any order; five of them are not wanted any more.
        // The first two may have been on their way already.
        for id in 1..=5 {
            server.cancel(id).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let mut unwanted = 0;
        let mut heard = 0;
        while heard - unwanted < 16 {
            let answer = server.peer.hear().await.unwrap();
            heard += 1;
            unwanted += usize::from((1..=5).any(|id| answer["id"] == id));
        }
        assert!(unwanted <= 2, "{unwanted} answers left after their cancel");
        server.peer.expect_silence(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn strays_are_quiet() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.call(1, "hang", json!({})).await;
        server.until_active(1).await;
        for id in [json!("1"), json!(99), json!(null), json!(1.5), json!({})] {
            server.cancel(id).await;
        }
        server.peer.tell("notifications/cancelled", json!({})).await;
        server.until_active(1).await;
        server.cancel(1).await;
        server.cancel(1).await;
        server.until_active(0).await;
        server.peer.hang_up().await;
        let (status, _, noise) = server.ended().await;
        assert!(status.success());
        assert_eq!(noise, "");
    }
}

#[tokio::test]
async fn cancel_overtakes_a_request_that_is_cancelled_with_its_arrival_never_answers() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        for id in 1..=500 {
            server.call(id, "hang", json!({})).await;
            server.cancel(id).await;
        }
        server.until_active(0).await;
    }
}

#[tokio::test]
async fn order_two_hundred_steps_come_in_order_before_the_answer() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let mut server = RawServer::start(mode).await;
        server
            .call(1, "count", json!({ "to": 200, "delay_ms": 0 }))
            .await;
        for step in 1..=200 {
            let progress = server.peer.expect("notifications/progress").await;
            assert_eq!(progress["params"]["progress"], step);
        }
        let answer = server.peer.expect_answer(1).await;
        assert_eq!(answer["result"]["content"][0]["text"], "200");
    }
}

#[tokio::test]
async fn id_is_scoped_a_duplicate_is_refused_and_the_first_is_untouched() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.call(7, "hang", json!({})).await;
        server.until_active(1).await;
        server.call(7, "echo", json!({ "text": "me, too" })).await;
        let refused = server.peer.expect_answer(7).await;
        assert_eq!(refused["error"]["code"], -32600);
        server.until_active(1).await;
        server.cancel(7).await;
        server.until_active(0).await;
    }
}

#[tokio::test]
async fn panic_fence_a_panic_ends_one_request() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.call(1, "hang", json!({})).await;
        server.call(2, "panic", json!({})).await;
        let answer = server.peer.expect_answer(2).await;
        assert_eq!(
            answer["error"],
            json!({ "code": -32603, "message": "internal error" })
        );
        server.until_active(1).await;
    }
}
