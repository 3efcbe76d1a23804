//! Stray prints, and what a handler's children find on their stdin.

use std::process::Command;

use belay::{Client, Context, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Not a test of its own: this program as a server, when the test below starts it so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_when_asked_to() {
    if std::env::var_os("BELAY_TEST_SERVE").is_none() {
        return;
    }
    let prints = Tool::new("prints", |_: Context, _: Nothing| async {
        println!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{}}}}");
        eprintln!("to stderr");
        "printed"
    });
    let child = Tool::blocking("child", |_: Context, _: Nothing| {
        // It reads its stdin and writes to its stdout: neither is the protocol's.
        let mut child = Command::new("sh");
        let status = child.args(["-c", "echo noise; cat; echo noise"]).status();
        status.map(|status| status.to_string())
    });
    let spin = Tool::new("spin", |_: Context, _: Nothing| async {
        // Never yields, so it can never be dropped.
        loop {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        #[allow(unreachable_code)]
        ()
    });
    let server = Server::new("stray", "1")
        .tool(prints)
        .tool(child)
        .tool(spin);
    belay::serve_stdio(server).await.unwrap();
}

fn this_program() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "stray::serve_when_asked_to", "--nocapture"])
        .env("BELAY_TEST_SERVE", "1");
    command
}

#[tokio::test]
async fn orderly_close_a_handler_that_never_yields_does_not_keep_the_process_alive() {
    let client = Client::builder("test", "1")
        .spawn(this_program())
        .await
        .unwrap();
    let call = client.call_tool("spin", json!({})).start();
    client.call_tool("prints", json!({})).await.unwrap();
    let pid = rustix::process::Pid::from_raw(client.pid().unwrap() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let error = call.await.unwrap_err();
    let status = error
        .exited()
        .and_then(belay::client::ProcessExit::status)
        .unwrap();
    assert_eq!(status.code(), Some(0), "{error:?}");
}

#[tokio::test]
async fn stray_prints_and_children_do_not_reach_the_wire() {
    let client = Client::builder("test", "1")
        .spawn(this_program())
        .await
        .unwrap();
    // What the test harness printed before the server took stdout is passed over.
    let before = client.ledger().malformed;
    for _ in 0..10 {
        let result = client.call_tool("prints", json!({})).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some("printed"));
    }
    let result = client.call_tool("child", json!({})).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("exit status: 0"));
    let ledger = client.ledger();
    assert_eq!((ledger.malformed, ledger.late_answers), (before, 0));
}
