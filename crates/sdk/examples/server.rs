//! A whole server, with handlers of every kind.
//!
//! ```text
//! cargo run --example server
//! cargo run --example client -- target/debug/examples/server
//! ```

use std::time::Duration;

use belay::{Context, Json, Server, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Structured output, and an error that the model gets to see.
async fn add(_: Context, Add { a, b }: Add) -> Result<Json<Sum>, String> {
    let sum = a
        .checked_add(b)
        .ok_or_else(|| format!("{a} + {b} is too much"))?;
    Ok(Json(Sum { sum }))
}

#[derive(Deserialize, JsonSchema)]
struct Boil {
    eggs: u32,
}

/// Progress. If the caller is gone, this is dropped at its next `await`.
async fn boil(cx: Context, Boil { eggs }: Boil) -> String {
    for egg in 1..=eggs {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cx.progress(egg.into(), f64::from(eggs), "boiling").await;
    }
    format!("{eggs} eggs")
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    seconds: u64,
}

/// Blocks a thread of its own: neither other requests nor the end of the process wait for it.
fn sleep(_: Context, Sleep { seconds }: Sleep) -> String {
    std::thread::sleep(Duration::from_secs(seconds));
    "awake".to_owned()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let server = Server::new("example", "1.0.0")
        .tool(Tool::new("add", add).description("Adds two numbers."))
        .tool(Tool::new("boil", boil).description("Boils eggs, one after another."))
        .tool(Tool::blocking("sleep", sleep).description("Sleeps, and blocks its thread."));
    belay::serve_stdio(server).await?;
    Ok(())
}
