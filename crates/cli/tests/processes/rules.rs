//! The rules that have no file of their own, each under its name.

use std::time::Duration;

use belay::Client;
use belay::client::Mode;
use belay::client::ProcessExit;
use belay::outcome::{Clock, End, LossKind, Sent};
use belay_testkit::check;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    MODES, RawServer, Scratch, active, client, client_of_script, signal, text, until_active,
};

/// A server in shell, of either era: greets whoever speaks to it first. The next id is 2.
const GREETING: &str = r#"
    read line
    case "$line" in
        *'"server/discover"'*)
            echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}';;
        *)
            echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}'
            read initialized;;
    esac
"#;

async fn client_of_shell(mode: Mode, script: &str) -> Client {
    client_of_script(mode, &format!("{GREETING}\n{script}")).await
}

#[tokio::test]
async fn one_end_an_answer_and_a_cancel_race_and_each_call_ends_once() {
    for mode in MODES {
        let client = client(mode).await;
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
                Err(error) => assert!(error.is_cancelled(), "{error:?}"),
            }
            cancelling.await.unwrap();
        }
        let after = client.ledger().calls;
        assert_eq!(after.ended() - before.ended(), 200, "one-end");
        assert_eq!(after.in_flight(), 0);
        // The server ended each of them once, too; but for those that never left.
        let ledger = client.call_tool("ledger", json!({})).await.unwrap();
        let ledger = ledger.structured_content.unwrap();
        assert_eq!(ledger["running"], 0);
        assert_eq!(ledger["started"], ledger["ended"]);
    }
}

#[tokio::test]
async fn one_end_a_form_that_is_answered_twice_was_answered_once() {
    let mut server = RawServer::start(Mode::Legacy).await;
    server.call(1, "ask", json!({ "question": "why?" })).await;
    let form = server.peer.expect("elicitation/create").await;
    for answer in ["first", "second"] {
        let content = json!({ "answer": answer });
        let result = json!({ "action": "accept", "content": content });
        server.peer.answer(&form, result).await;
    }
    let answer = server.peer.expect_answer(1).await;
    let told = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(told.contains("first") && !told.contains("second"), "{told}");
    server.until_active(0).await;
}

#[tokio::test]
async fn announce_once_however_often_a_call_is_given_up() {
    for mode in MODES {
        let log = Scratch::new("heard");
        let script = format!("tee {} | $BELAY serve", log.0.display());
        let client = client_of_script(mode, &script).await;
        let call = client.call_tool("hang", json!({})).start();
        let id = json!(call.id().unwrap());
        until_active(&client, 1).await;
        let canceller = call.canceller();
        canceller.cancel_because("enough");
        canceller.cancel();
        drop(call);
        canceller.cancel();
        until_active(&client, 0).await;
        // One that was answered is not announced, whatever happens to its handle.
        let call = client.call_tool("echo", json!({ "text": "hi" })).start();
        let canceller = call.canceller();
        call.await.unwrap();
        canceller.cancel();
        client.close().await;
        let cancels: Vec<Value> = log
            .text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .filter(|message: &Value| message["method"] == "notifications/cancelled")
            .collect();
        assert_eq!(cancels.len(), 1, "{cancels:?}");
        assert_eq!(cancels[0]["params"]["requestId"], id);
        assert_eq!(cancels[0]["params"]["reason"], "enough");
    }
}

#[tokio::test]
async fn never_initialize_a_handshake_is_given_up_without_a_word() {
    for (mode, greeting) in [
        (Mode::Legacy, "initialize"),
        (Mode::Modern, "server/discover"),
        (Mode::Auto, "initialize"),
    ] {
        let log = Scratch::new("heard");
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("exec cat > {}", log.0.display())]);
        let connecting = Client::builder("test", "1")
            .mode(mode)
            .probe_timeout(Duration::from_millis(50))
            .spawn(command);
        // Given up as soon as the greeting has arrived.
        let greeted = belay_testkit::until("it is greeted", || log.text().contains(greeting));
        tokio::select! {
            _ = connecting => panic!("it never answers"),
            () = greeted => {}
        }
        // The end of its input ends the server; by then it has heard all there was.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!log.text().contains("cancelled"), "{}", log.text());
    }
}

#[tokio::test]
async fn never_initialize_a_late_answer_to_the_probe_is_inert() {
    let script = r#"
        read probe
        read initialize
        echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
        echo '{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}'
        cat > /dev/null
    "#;
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]);
    let client = Client::builder("test", "1")
        .probe_timeout(Duration::from_millis(50))
        .spawn(command)
        .await
        .unwrap();
    assert_eq!(client.version().as_str(), "2025-11-25");
    assert_eq!(client.ledger().late_answers, 1);
}

#[tokio::test]
async fn cancel_never_waits_closing_is_bounded_with_a_full_pipe() {
    for mode in MODES {
        let client = client(mode).await;
        let pid = client.pid().unwrap();
        signal(pid, Signal::STOP);
        let calls: Vec<_> = (0..10)
            .map(|_| {
                client
                    .call_tool("echo", json!({ "text": "x".repeat(100_000) }))
                    .start()
            })
            .collect();
        let closing = client.clone();
        let closing = tokio::spawn(async move { closing.close().await });
        let closed = tokio::time::timeout(Duration::from_secs(4), client.closed()).await;
        assert_eq!(
            closed.expect("a second to flush").kind,
            LossKind::ClosedByUs
        );
        for call in calls {
            let error = call.await.unwrap_err();
            assert!(error.is_cancelled() || error.is_lost(), "{error:?}");
        }
        // It cannot hear a SIGTERM; it is killed.
        closing.await.unwrap();
        assert!(!crate::support::exists(pid));
    }
}

#[tokio::test]
async fn deadline_covers_all_two_clocks_of_which_progress_resets_one() {
    for mode in MODES {
        let client = client(mode).await;
        let slow = json!({ "to": 15, "delay_ms": 100 });
        let counted = client
            .call_tool("count", &slow)
            .idle_timeout(Duration::from_millis(1000))
            .await;
        assert_eq!(
            text(&counted.unwrap()),
            "15",
            "progress resets the idle clock"
        );

        let total = client
            .call_tool("count", &slow)
            .timeout(Duration::from_millis(300))
            .await
            .unwrap_err();
        assert_eq!(
            total.clock(),
            Some(Clock::Total),
            "nothing resets the total"
        );
        assert_eq!(total.sent(), Some(Sent::Yes), "its progress was heard");

        let idle = client
            .call_tool("hang", json!({}))
            .idle_timeout(Duration::from_millis(100))
            .await
            .unwrap_err();
        assert_eq!(idle.clock(), Some(Clock::Idle));
        until_active(&client, 0).await;
        let ledger = client.call_tool("ledger", json!({})).await.unwrap();
        assert_eq!(
            ledger.structured_content.unwrap()["running"],
            0,
            "both announce"
        );
    }
}

#[tokio::test]
async fn late_is_inert_late_duplicate_and_unknown_answers_change_nothing() {
    // It answers when it has heard that nobody waits any more.
    let script = r#"
        read call
        read cancelled
        echo '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'
        echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"again"}}'
        echo '{"jsonrpc":"2.0","id":99,"result":{}}'
        read call
        echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"right"}]}}'
        cat > /dev/null
    "#;
    for mode in MODES {
        let client = client_of_shell(mode, script).await;
        let call = client.call_tool("slow", json!({}));
        let given_up = call.timeout(Duration::from_millis(50)).await.unwrap_err();
        assert!(given_up.is_timeout());
        let next = client.call_tool("next", json!({})).await.unwrap();
        assert_eq!(text(&next), "right");
        assert_eq!(client.ledger().late_answers, 3);
        check(&client.ledger());
    }
}

#[tokio::test]
async fn no_hang_a_server_that_closes_its_output_and_lives_on() {
    for mode in MODES {
        let client = client_of_shell(mode, "read call; exec >&-; cat > /dev/null").await;
        let error = client.call_tool("any", json!({})).await.unwrap_err();
        assert!(error.is_lost(), "{error:?}");
        assert_eq!(client.closed().await.kind, LossKind::EndOfStream);
    }
}

#[tokio::test]
async fn closed_is_known_and_every_new_call_is_lost_at_once() {
    for mode in MODES {
        let closed = client(mode).await;
        closed.close().await;
        assert_eq!(closed.closed().await.kind, LossKind::ClosedByUs);

        let killed = client(mode).await;
        signal(killed.pid().unwrap(), Signal::KILL);
        let loss = killed.closed().await;
        assert_eq!(loss.kind, LossKind::ProcessExit);
        let exited = loss.source.as_ref().unwrap();
        let exited = exited.downcast_ref::<ProcessExit>().unwrap();
        assert_eq!(exited.signal(), Some(9));

        for client in [closed, killed] {
            let error = client.list_tools().await.unwrap_err();
            assert!(error.is_lost(), "{error:?}");
            assert_eq!(error.sent(), Some(Sent::Never));
            assert!(error.safe_to_retry());
        }
    }
}

#[tokio::test]
async fn retry_is_explicit_a_call_whose_server_died_is_not_made_again() {
    for mode in [Mode::Legacy, Mode::Modern, Mode::Auto] {
        let starts = Scratch::new("starts");
        let heard = Scratch::new("heard");
        let script = format!(
            "echo start >> {}; {GREETING} read call; echo \"$call\" >> {}; exit 1",
            starts.0.display(),
            heard.0.display()
        );
        let client = client_of_script(mode, &script).await;
        let error = client.call_tool("pay", json!({})).await.unwrap_err();
        assert!(error.is_lost() && !error.safe_to_retry(), "{error:?}");
        assert_eq!(error.sent(), Some(Sent::Maybe));
        client.closed().await;
        assert_eq!(starts.text().lines().count(), 1, "started once");
        assert_eq!(heard.text().lines().count(), 1, "asked once");
    }
}

#[tokio::test]
async fn stops_with_its_caller_and_with_nobody_elses() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        for id in 1..=3 {
            server.call(id, "hang", json!({})).await;
        }
        server.until_active(3).await;
        server.cancel(2).await;
        server.until_active(2).await;
        belay_testkit::until("it has cleaned up", || server.cleaned() == 1).await;
        server.peer.hang_up().await;
        let (status, _, noise) = server.ended().await;
        assert_eq!((status.code(), noise.as_str()), (Some(0), ""));
        assert_eq!(server.cleaned(), 3);
    }
}

#[tokio::test]
async fn stop_is_real_for_plain_patient_and_blocking_handlers() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.call(1, "hang", json!({})).await;
        // Longer than the usual grace: it has said that it needs more.
        server.begin_rollback(2, 1500).await;
        server.call(3, "block", json!({ "ms": 60_000 })).await;
        server.until_active(1).await;
        for id in 1..=3 {
            server.cancel(id).await;
        }
        server.until_active(0).await;
        belay_testkit::until("both have cleaned up", || server.cleaned() == 2).await;
        // The one that blocks holds up nobody.
        server.call(4, "echo", json!({ "text": "hi" })).await;
        server.peer.expect_answer(4).await;
    }
}

#[tokio::test]
async fn ledger_started_is_ends_and_in_flight_on_both_sides() {
    for mode in MODES {
        let client = client(mode).await;
        let before = client.ledger().calls;
        client
            .call_tool("echo", json!({ "text": "hi" }))
            .await
            .unwrap();
        let unknown = client.call_tool("nonsense", json!({})).await;
        assert!(unknown.unwrap_err().is_refused());
        let late = client
            .call_tool("hang", json!({}))
            .timeout(Duration::from_millis(50));
        assert!(late.await.unwrap_err().is_timeout());
        let dropped = client.call_tool("hang", json!({})).start();
        until_active(&client, 1).await;
        drop(dropped);
        until_active(&client, 0).await;
        check(&client.ledger());

        let theirs = client.call_tool("ledger", json!({})).await.unwrap();
        let theirs = theirs.structured_content.unwrap();
        assert_eq!(theirs["started"], theirs["ended"], "{theirs}");
        assert_eq!(theirs["running"], 0);

        let hanging = client.call_tool("hang", json!({})).start();
        until_active(&client, 1).await;
        assert_eq!(client.ledger().calls.in_flight(), 1);
        assert_eq!(active(&client).await, 1);
        signal(client.pid().unwrap(), Signal::KILL);
        assert!(hanging.await.unwrap_err().is_lost());
        let ledger = client.ledger();
        check(&ledger);
        let ended = |end| ledger.calls.ended_as(end) - before.ended_as(end);
        assert_eq!(ended(End::Refused), 1);
        assert_eq!(ended(End::TimedOut), 1);
        assert_eq!(ended(End::Cancelled), 1);
        assert_eq!(ended(End::Lost), 1);
        assert_eq!(ledger.calls.in_flight(), 0);
    }
}
