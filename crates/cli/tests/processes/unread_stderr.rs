//! A stderr that nobody reads stops nothing: neither answers nor the end of the process.

use std::process::Stdio;
use std::time::{Duration, Instant};

use belay::Client;
use belay::client::Mode;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use crate::support::{BELAY, MODES, RawServer, signal};

async fn panic_often(server: &mut RawServer, times: i64) {
    for first in (1..=times).step_by(100) {
        for id in first..first + 100 {
            server.call(id, "panic", json!({})).await;
        }
        for _ in 0..100 {
            let answer = server.peer.hear().await.unwrap();
            assert_eq!(answer["error"]["code"], -32603, "{answer}");
        }
    }
}

#[tokio::test]
async fn panic_fence_a_full_stderr_holds_up_no_answer_and_no_end() {
    for mode in MODES {
        for by_signal in [false, true] {
            let mut server = RawServer::start(mode).await;
            // Far more than a pipe holds.
            panic_often(&mut server, 1000).await;
            server.call("last", "echo", json!({ "text": "hi" })).await;
            server.peer.expect_answer("last").await;
            match by_signal {
                true => signal(server.pid(), Signal::TERM),
                false => server.peer.hang_up().await,
            }
            let start = Instant::now();
            let status = server.child.wait().await.unwrap();
            assert_eq!(status.code(), Some(0), "{mode:?}");
            assert!(start.elapsed() < Duration::from_secs(10), "{mode:?}");
        }
    }
}

#[tokio::test]
async fn panic_fence_what_was_dropped_from_a_full_stderr_is_said() {
    let mut server = RawServer::start(Mode::Modern).await;
    // Far more than a pipe holds and is kept besides.
    panic_often(&mut server, 4000).await;
    // Now somebody reads.
    let mut lines = BufReader::new(server.child.stderr.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("it is said");
        if line.ends_with("bytes of stderr were dropped: nobody read it") {
            break;
        }
    }
    server.peer.hang_up().await;
    assert_eq!(server.child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn orderly_close_a_full_stderr_does_not_keep_a_server_on_http_alive() {
    let mut server = Command::new(BELAY)
        .args(["serve", "--http", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // Its first line tells where it is; the rest is not read.
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).await.unwrap();
    let url = line.trim().strip_prefix("serving at ").unwrap();
    let client = Client::http(url).await.unwrap();
    for _ in 0..1000 {
        assert!(client.call_tool("panic", json!({})).await.is_err());
    }
    assert!(client.list_tools().await.is_ok());
    signal(server.id().unwrap(), Signal::TERM);
    let ended = tokio::time::timeout(Duration::from_secs(10), server.wait()).await;
    assert_eq!(ended.unwrap().unwrap().code(), Some(0));
    drop(stderr);
}

/// Whoever reads it gets all of it, to the last word.
#[tokio::test]
async fn stderr_that_is_read_is_complete() {
    let mut server = RawServer::start(Mode::Legacy).await;
    let mut stderr = server.child.stderr.take().unwrap();
    let reading = tokio::spawn(async move {
        let mut noise = String::new();
        stderr.read_to_string(&mut noise).await.unwrap();
        noise
    });
    panic_often(&mut server, 300).await;
    server.peer.hang_up().await;
    server.child.wait().await.unwrap();
    let noise = reading.await.unwrap();
    assert_eq!(noise.matches("panicked at").count(), 300);
}
