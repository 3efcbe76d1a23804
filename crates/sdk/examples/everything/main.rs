//! A server with one of everything that the protocol offers.
//!
//! ```text
//! cargo run --example everything
//! ```

mod asking;
mod reading;
mod tools;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use belay::Server;
use belay::server::CacheHint;
use belay::types::{Extra, Icon};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    belay::serve_stdio(server()).await
}

/// All of it.
pub(crate) fn server() -> Server {
    let colours = Extra::from_iter([("colours".to_owned(), json!(["red", "blue"]))]);
    let server = Server::from(Written)
        .title("Everything")
        .description("One of each.")
        .icon(Icon::new("data:image/png;base64,AA=="))
        .website("https://example.com/everything")
        .instructions("Ask it anything.")
        .extension("com.example/colours", colours)
        .caching(|caching| caching.lists = CacheHint::private(Duration::from_secs(60)))
        .page_size(4);
    let server = tools::tools(server);
    let server = asking::asking(server);
    reading::reading(server)
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

/// What is written with macros. All the rest is written by hand.
struct Written;

#[belay::server(name = "everything", version = "1.0.0")]
impl Written {
    /// Says hello.
    #[tool(read_only)]
    async fn hello(&self, name: String) -> String {
        format!("Hello, {name}!")
    }

    /// Asks for a poem.
    #[prompt(title = "Poem")]
    async fn poem(&self, about: String, lines: Option<u8>) -> String {
        format!("Write {} lines about {about}.", lines.unwrap_or(4))
    }

    #[resource(uri = "written://{number}", mime_type = "text/plain")]
    async fn written(&self, number: u8) -> String {
        format!("number {number}")
    }
}

/// Another number each time.
fn number() -> u64 {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    NUMBER.fetch_add(1, Ordering::SeqCst)
}
