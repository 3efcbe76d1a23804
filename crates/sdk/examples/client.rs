//! Starts a server, asks what it can do, and calls `boil`.
//!
//! ```text
//! cargo run --example client -- target/debug/examples/server
//! ```

use std::time::Duration;

use belay::Client;
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut command = std::env::args().skip(1);
    let program = command.next().ok_or("which server?")?;
    let client = Client::stdio(program, command).await?;
    for tool in client.list_tools().await?.tools {
        println!("{}: {}", tool.name, tool.description.unwrap_or_default());
    }
    let call = client
        .call_tool("boil", json!({ "eggs": 3 }))
        .on_progress(|step| println!("{} boiled", step.progress))
        .timeout(Duration::from_secs(5));
    match call.await {
        Ok(answer) => println!("{}", answer.content[0].as_text().unwrap_or_default()),
        Err(error) if error.is_lost() => println!("the server is gone: {error}"),
        Err(error) if error.is_timeout() => println!("that took too long, and the server knows"),
        Err(error) => println!("{error}"),
    }
    // The client is dropped here, as the last thing that happens. Its server ends all the same.
    Ok(())
}
