//! **typed-end**: the death of a server is *lost*, never *cancelled*.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    MODES, Scratch, client, client_of_script, exists, signal, until_active, until_gone,
};

async fn kill_with_twenty_calls(client: belay::Client, pid: u32) {
    let calls: Vec<_> = (0..20)
        .map(|_| client.call_tool("hang", json!({})).start())
        .collect();
    until_active(&client, 20).await;
    signal(pid, Signal::KILL);
    let killed = Instant::now();
    for call in calls {
        let error = call.await.unwrap_err();
        assert!(
            error.is_lost() && !error.is_cancelled(),
            "typed-end: {error:?}"
        );
        assert_eq!(error.exited().unwrap().signal(), Some(9), "{error:?}");
    }
    // The bar is 100 ms; a busy machine gets ten times that.
    assert!(
        killed.elapsed() < Duration::from_secs(1),
        "{:?}",
        killed.elapsed()
    );
    until_gone(pid, Duration::from_secs(5)).await;
    let error = client.list_tools().await.unwrap_err();
    assert!(
        error.is_lost() && error.safe_to_retry(),
        "closed-is-known: {error:?}"
    );
}

#[tokio::test]
async fn typed_end_kill_9_is_lost_with_its_signal_and_leaves_no_zombie() {
    for mode in MODES {
        let client = client(mode).await;
        let pid = client.pid().unwrap();
        kill_with_twenty_calls(client, pid).await;
    }
}

#[tokio::test]
async fn typed_end_kill_9_is_lost_even_if_a_grandchild_holds_stdout() {
    for mode in MODES {
        let grandchild = Scratch::new("grandchild");
        let script = format!(
            "sleep 1000 & echo $! > {}; exec $BELAY serve",
            grandchild.0.display()
        );
        let client = client_of_script(mode, &script).await;
        let held_by = grandchild.number().await;
        assert!(exists(held_by));
        let pid = client.pid().unwrap();
        kill_with_twenty_calls(client, pid).await;
        // What the server left behind in its group is gone, too.
        until_gone(held_by, Duration::from_secs(6)).await;
    }
}

#[tokio::test]
async fn typed_end_what_a_server_said_before_it_died_is_heard_first() {
    // It answers the second request by dying, after it has answered the first.
    let script = r#"
        read probe
        echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
        read first
        read second
        echo '{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'
        kill -9 $$
    "#;
    let client = client_of_script(belay::client::Mode::Auto, script).await;
    let first = client.call_tool("a", json!({})).start();
    let second = client.call_tool("b", json!({})).start();
    assert!(first.await.is_ok());
    assert!(second.await.unwrap_err().is_lost());
}

#[tokio::test]
async fn typed_end_what_a_server_said_before_it_died_is_heard_by_a_busy_runtime() {
    // It answers, the last time without a newline, and is gone before the client looks.
    for end in [r"\n", ""] {
        let script = format!(
            r#"
            read probe
            echo '{{"jsonrpc":"2.0","id":1,"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{}}}}}}'
            read call
            sleep 0.1
            printf '{{"jsonrpc":"2.0","id":2,"result":{{"content":[]}}}}{end}'
            "#
        );
        let client = client_of_script(belay::client::Mode::Auto, &script).await;
        let call = client.call_tool("a", json!({})).start();
        tokio::time::sleep(Duration::from_millis(20)).await;
        // The only thread of the runtime is busy.
        std::thread::sleep(Duration::from_millis(300));
        assert!(call.await.is_ok());
        assert!(client.closed().await.source.is_some(), "it has exited");
    }
}

#[tokio::test]
async fn a_server_that_exits_at_once_tells_its_last_words() {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "echo 'no database' >&2; exit 3"]);
    let error = belay::Client::builder("test", "1")
        .spawn(command)
        .await
        .unwrap_err();
    assert!(error.is_lost());
    let chain = format!("{error:?}");
    assert!(
        chain.contains("exit status: 3") && chain.contains("no database"),
        "{chain}"
    );
}

#[tokio::test]
async fn a_server_that_dies_on_the_probe_is_started_once_more_the_legacy_way() {
    // The first start dies on anything but `initialize`, as some legacy servers do.
    let script = r#"
        read line
        case "$line" in
            *'"initialize"'*) ;;
            *) exit 1;;
        esac
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}'
        cat > /dev/null
    "#;
    let client = client_of_script(belay::client::Mode::Auto, script).await;
    assert_eq!(client.version().as_str(), "2024-11-05");
}

#[tokio::test]
async fn a_second_start_is_no_different_from_the_first() {
    let script = r#"
        read line
        case "$line" in *'"initialize"'*) ;; *) exit 1;; esac
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"'${CARGO_PKG_NAME-nothing}'","version":"1"}}}'
        read line
        read line
    "#;
    let mut command = std::process::Command::new("/bin/sh");
    command.args(["-c", script]).env_clear();
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    let client = belay::Client::builder("test", "1")
        .spawn(command)
        .await
        .unwrap();
    let introduction = client.introduction();
    let introduction = introduction.as_str();
    assert!(
        introduction.contains("nothing"),
        "it saw our environment: {introduction}"
    );
}

#[tokio::test]
async fn no_hang_a_server_that_is_gone_before_it_is_greeted_is_lost_every_time() {
    for _ in 0..200 {
        let command = std::process::Command::new("false");
        let connecting = belay::Client::builder("test", "1").spawn(command);
        let connected = tokio::time::timeout(Duration::from_secs(10), connecting).await;
        assert!(connected.expect("it must not hang").unwrap_err().is_lost());
    }
}
