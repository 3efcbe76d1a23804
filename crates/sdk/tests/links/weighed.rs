//! **bounded**, in bytes, on a pipe: what is kept for running requests is weighed.

use std::future::pending;

use belay::{Context, Server, Tool};
use belay_testkit::Peer;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn bounded_requests_on_a_pipe_are_weighed_until_they_are_over() {
    let server = Server::new("test", "1")
        .limits(|limits| limits.kept_bytes = 150_000)
        .tool(Tool::new("hang", |_: Context, _: Nothing| pending::<()>()))
        .tool(Tool::new("quick", |_: Context, _: Nothing| async { "ok" }));
    let (mut peer, (reader, writer)) = Peer::pipe();
    let _serving = server.serve(reader, writer);
    peer.initialize().await;
    let call = |tool: &str, length: usize| json!({ "name": tool, "arguments": { "padding": "x".repeat(length) } });
    peer.ask(1, "tools/call", call("hang", 100_000)).await;
    peer.ask(2, "tools/call", call("quick", 100_000)).await;
    let refused = peer.expect_answer(2).await;
    assert_eq!(refused["error"]["code"], -31001, "{refused}");
    peer.ask(3, "tools/call", call("quick", 10)).await;
    assert!(peer.expect_answer(3).await["result"].is_object());
    // A cancel is read whatever is kept, and gives it back.
    let cancel = json!({ "requestId": 1, "reason": "x".repeat(100_000) });
    peer.tell("notifications/cancelled", cancel).await;
    for id in 4.. {
        peer.ask(id, "tools/call", call("quick", 100_000)).await;
        if peer.expect_answer(id).await["result"].is_object() {
            break;
        }
        assert!(id < 1000, "nothing was given back");
    }
}
