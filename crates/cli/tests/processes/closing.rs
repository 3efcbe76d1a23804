//! **orderly-close**: end of input, SIGTERM and SIGINT take one path.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::support::{BELAY, MODES, RawServer, signal};

/// The bar is 2 s; a busy machine gets twice that.
const BAR: Duration = Duration::from_secs(4);

#[tokio::test]
async fn orderly_close_end_of_input_cleans_up_five_handlers_and_exits_0() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        for id in 1..=5 {
            server.call(id, "hang", json!({})).await;
        }
        server.until_active(5).await;
        server.peer.hang_up().await;
        let (status, after, noise) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(after < BAR, "{after:?}");
        assert_eq!(noise, "", "nothing crashes");
        assert_eq!(server.cleaned(), 5);
    }
}

#[tokio::test]
async fn orderly_close_signals_do_the_same_with_the_input_open_and_idle() {
    for (mode, by) in MODES.into_iter().zip([Signal::TERM, Signal::INT]) {
        let mut server = RawServer::start(mode).await;
        for id in 1..=5 {
            server.call(id, "hang", json!({})).await;
        }
        server.until_active(5).await;
        signal(server.pid(), by);
        let (status, after, noise) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(after < BAR, "{after:?}");
        assert_eq!(noise, "");
        assert_eq!(server.cleaned(), 5);
    }
}

#[tokio::test]
async fn orderly_close_an_idle_server_ends_at_once() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        signal(server.pid(), Signal::TERM);
        let (status, after, _) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(after < Duration::from_secs(1), "{after:?}");
    }
}

#[tokio::test]
async fn orderly_close_a_handler_with_its_token_gets_its_grace() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.begin_rollback(1, 300).await;
        server.call(2, "echo", json!({ "text": "hi" })).await;
        server.peer.expect_answer(2).await;
        server.cancel(1).await;
        for _ in 0..1000 {
            if server.cleaned() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(server.cleaned(), 1, "stop-is-real");
        server.begin_rollback(3, 300).await;
        server.call(4, "echo", json!({ "text": "hi" })).await;
        server.peer.expect_answer(4).await;
        server.peer.hang_up().await;
        let (status, after, _) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(after < BAR, "{after:?}");
        assert_eq!(server.cleaned(), 2);
    }
}

#[tokio::test]
async fn orderly_close_a_blocking_handler_does_not_keep_the_process_alive() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.call(1, "block", json!({ "ms": 60_000 })).await;
        server.call(2, "echo", json!({ "text": "hi" })).await;
        server.peer.expect_answer(2).await;
        signal(server.pid(), Signal::TERM);
        let (status, after, _) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(after < BAR, "{after:?}");
    }
}

#[tokio::test]
async fn orderly_close_a_full_stdout_that_nobody_reads_does_not_keep_the_process_alive() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        for id in 1..=20 {
            server
                .call(id, "echo", json!({ "text": "x".repeat(100_000) }))
                .await;
        }
        // Nobody reads; the pipe is full by now, or soon.
        tokio::time::sleep(Duration::from_millis(200)).await;
        signal(server.pid(), Signal::TERM);
        let (status, after, _) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(after < BAR, "{after:?}");
    }
}

#[tokio::test]
async fn orderly_close_what_is_piped_in_gets_its_answers() {
    let mut server = Command::new(BELAY)
        .arg("serve")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let requests = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"two"}}}"#,
        "\n",
        // The last one has no newline.
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"three"}}}"#,
    );
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(requests.as_bytes()).await.unwrap();
    drop(stdin);
    let output = server.wait_with_output().await.unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), 3, "{answers}");
    assert!(answers.contains("\"two\"") && answers.contains("\"three\""));
}

#[tokio::test]
async fn orderly_close_a_reader_that_is_gone_ends_the_server() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.call(1, "hang", json!({})).await;
        server.until_active(1).await;
        // Both ends go at once, as when a client is killed.
        let peer = belay_testkit::Peer::pipe().0;
        drop(std::mem::replace(&mut server.peer, peer));
        let (status, after, _) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        // Nobody would read an answer, so nothing is waited for.
        assert!(after < Duration::from_secs(1), "no drain: {after:?}");
        assert_eq!(server.cleaned(), 1);
    }
}

#[tokio::test]
async fn orderly_close_what_finishes_during_the_drain_is_answered() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        let slow = json!({ "to": 3, "delay_ms": 100 });
        server.call(1, "count", slow).await;
        server.peer.hang_up().await;
        for _ in 0..3 {
            server.peer.expect("notifications/progress").await;
        }
        server.peer.expect_answer(1).await;
        let (status, _, noise) = server.ended().await;
        assert_eq!((status.code(), noise.as_str()), (Some(0), ""));
    }
}

#[tokio::test]
async fn orderly_close_a_second_signal_ends_the_drain() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.call(1, "hang", json!({})).await;
        server.until_active(1).await;
        signal(server.pid(), Signal::TERM);
        // One signal after another; two at once may be one.
        tokio::time::sleep(Duration::from_millis(100)).await;
        signal(server.pid(), Signal::TERM);
        let (status, after, _) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(after < Duration::from_millis(800), "{after:?}");
        assert_eq!(server.cleaned(), 1);
    }
}
