//! Fifty callers lose patience. How many handlers are left?
//!
//! After the script of python-sdk #2507, where the answer is fifty.
//!
//! ```text
//! cargo run --example fifty_cancels
//! ```

use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::{Client, Context, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// The handlers that exist.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Counts a handler for as long as it exists. A database connection would be given back here.
struct Counted;

impl Counted {
    fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn hang(_: Context, _: Nothing) {
    let _counted = Counted::new();
    pending().await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // This program is its own server.
    if std::env::args().any(|argument| argument == "--server") {
        let running = Tool::new("running", |_: Context, _: Nothing| async {
            RUNNING.load(Ordering::SeqCst).to_string()
        });
        let server = Server::new("hangs", "1")
            .tool(Tool::new("hang", hang))
            .tool(running);
        belay::serve_stdio(server).await?;
        return Ok(());
    }

    let client = Client::stdio(std::env::current_exe()?, ["--server"]).await?;
    println!("baseline: {} running", running(&client).await?);
    for _ in 0..50 {
        let call = client.call_tool("hang", json!({}));
        let patience = Duration::from_millis(10);
        // The handler never looks at a token. It is dropped all the same.
        let _ = tokio::time::timeout(patience, call.into_future()).await;
    }
    // The last cancel is on its way. Let it arrive, as the script of the report does.
    tokio::time::sleep(Duration::from_millis(200)).await;
    println!("after 50 cancels: {} running", running(&client).await?);
    Ok(())
}

async fn running(client: &Client) -> Result<String, belay::Error> {
    let result = client.call_tool("running", json!({})).await?;
    let text = result.content.first().and_then(|block| block.as_text());
    Ok(text.unwrap_or("?").to_owned())
}
