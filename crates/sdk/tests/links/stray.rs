//! Stray prints, and what a handler's children find on their stdin.

use std::process::Command;

use belay::{Client, Context, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Not a test of its own: this program as a server, when the test below starts it so.
#[tokio::test]
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
    let server = Server::new("stray", "1").tool(prints).tool(child);
    belay::serve_stdio(server).await.unwrap();
}

#[tokio::test]
async fn stray_prints_and_children_do_not_reach_the_wire() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "stray::serve_when_asked_to", "--nocapture"])
        .env("BELAY_TEST_SERVE", "1");
    let client = Client::builder("test", "1").spawn(command).await.unwrap();
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
