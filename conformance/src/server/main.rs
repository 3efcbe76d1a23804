//! The server of the official conformance suite: `conformance-server --addr HOST:PORT`, at `/mcp`.
//!
//! The suite calls tools by name and checks the results. What each of them does is the contract of
//! the suite.

mod asking;
mod reading;
mod rounds;
mod tools;

use belay::Server;

/// The smallest PNG image, in base64.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--addr"), Some(address)) => address,
        _ => {
            eprintln!("conformance-server --addr HOST:PORT");
            std::process::exit(1);
        }
    };
    let server = Server::new("belay-conformance", env!("CARGO_PKG_VERSION"));
    let server = reading::offer(server);
    let server = tools::offer(server);
    let server = asking::offer(server);
    let server = rounds::offer(server);
    belay::http::serve(address, server).await
}
