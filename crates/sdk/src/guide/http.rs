//! HTTP: one server, many clients at once. The feature is `http`, and `tls` for HTTPS.
//!
//! ```no_run
//! # #[cfg(feature = "http")]
//! # async fn example() -> std::io::Result<()> {
//! use belay::{Context, Server, Tool};
//!
//! let hello = Tool::new("hello", |_: Context, (): ()| async { "hello" });
//! let server = Server::new("greeter", "1.0.0").tool(hello);
//! belay::http::serve("127.0.0.1:8000", server).await
//! # }
//! ```
//!
//! That is Streamable HTTP on `/mcp`, in all revisions that have it; the event streams of 2024-11-05 are
//! there for whoever asks for them (`Endpoint::sse`). It answers to the names of this machine alone; a
//! server for others is told its names, and whatever else should not be as it is:
//!
//! ```no_run
//! # #[cfg(feature = "http")]
//! # async fn example(server: belay::Server) -> std::io::Result<()> {
//! let endpoint = belay::http::Endpoint::new(server)
//!     .allow_host("mcp.example.com")
//!     .allow_origin("https://app.example.com")
//!     .in_flight(1000);
//! let listening = endpoint.bind("0.0.0.0:8000").await?;
//! println!("{}", listening.address());
//! listening.await;
//! # Ok(())
//! # }
//! ```
//!
//! Pages in a browser may speak to it if they are of one of its own names, or of an origin that was
//! allowed: browsers are told so, before a page asks and with every answer (CORS). All other pages are
//! refused with 403.
//!
//! `Endpoint::service` is the same for a router that somebody else runs, of hyper's or axum's.
//!
//! # Clients
//!
//! ```no_run
//! # #[cfg(feature = "http")]
//! # async fn example() -> Result<(), belay::Error> {
//! let client = belay::Client::http("http://localhost:8000/mcp").await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Who is gone
//!
//! In the modern era a caller that hangs up has cancelled: its handler stops. In the legacy one a broken
//! stream is no cancellation, and the caller may come back for its answer for a minute; see
//! [`stopping`](super::stopping).
//!
//! An event stream, a session, a body: all is bounded from the start, and what is too much is refused
//! with a status that says so.
