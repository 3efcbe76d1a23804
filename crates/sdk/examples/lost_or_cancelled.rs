//! A server dies, and a caller changes its mind: two ends that must not look the same.
//!
//! After the script of python-sdk #1830, in which both raise `CancelledError`.
//!
//! ```text
//! cargo run --example lost_or_cancelled
//! ```

use std::future::pending;
use std::process::Command;
use std::time::Duration;

use belay::{Client, Context, Error, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // This program is its own server.
    if std::env::args().any(|argument| argument == "--server") {
        let slow = Tool::new("slow", |_: Context, _: Nothing| pending::<()>());
        belay::serve_stdio(Server::new("slow", "1").tool(slow)).await?;
        return Ok(());
    }

    println!("the server dies:     {}", describe(server_dies().await?));
    println!("the caller cancels:  {}", describe(caller_cancels().await?));
    Ok(())
}

async fn server_dies() -> Result<Error, Box<dyn std::error::Error>> {
    let client = connect().await?;
    let call = client.call_tool("slow", json!({})).start();
    let pid = client.pid().ok_or("the server is a child")?;
    // It has the call before it dies: it answers a later one.
    client.list_tools().await?;
    Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status()?;
    Ok(call.await.err().ok_or("it cannot be answered")?)
}

async fn caller_cancels() -> Result<Error, Box<dyn std::error::Error>> {
    let client = connect().await?;
    let call = client.call_tool("slow", json!({}));
    let canceller = call.canceller();
    let (ended, ()) = tokio::join!(call.into_future(), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        canceller.cancel_because("changed my mind");
    });
    Ok(ended.err().ok_or("it cannot be answered")?)
}

async fn connect() -> Result<Client, Box<dyn std::error::Error>> {
    let program = std::env::current_exe()?;
    Ok(Client::stdio(program, ["--server"]).await?)
}

/// What a caller would do next depends on which of the two it is.
fn describe(error: Error) -> String {
    match &error {
        error if error.is_lost() => format!("lost, so connect again ({error:?})"),
        error if error.is_cancelled() => format!("cancelled, so stop ({error:?})"),
        error => format!("something else ({error:?})"),
    }
}
