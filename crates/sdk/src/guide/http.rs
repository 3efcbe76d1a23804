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
//! # Limits
//!
//! Everything is bounded from the start, and what is too much is refused with a status that says so.
//!
//! | what | default | setting | over it |
//! |---|---|---|---|
//! | bytes kept for all clients | 256 MiB | `Endpoint::kept_bytes` | 503, -31001; a response becomes -32603 |
//! | bytes of a body | 4 MiB | `Server::limits`, `received_bytes` | 413 |
//! | time for headers, for a body | 10 s, 30 s | `Endpoint::read_timeouts` | closed, 408 |
//! | handlers in all, per connection | 4,096, 128 | `Endpoint::in_flight`, `in_flight_per_connection` | 503, 429 |
//! | blocking handlers | 64 | `Server::limits`, `blocking` | -31001 |
//! | listens | 1,024 | `Server::limits`, `listens` | 429 |
//! | legacy sessions, and their idle time | 10,000, 5 min | `Endpoint::sessions`, `session_idle` | 503 |
//! | connections, and requests that are open on them | 16,384 | `Endpoint::connections` | wait to be accepted; 503 |
//! | time in which nothing is read | 10 s | `Endpoint::write_stall` | closed, or the stream reset |
//!
//! No client can take one of them away from the others: it may hold as much as it leaves to them, which
//! is half if it is alone, and half of what is left otherwise. A client is a [`Principal`](crate::Principal) if there is one, else an
//! address. If a reverse proxy on another machine stands in front of the server, name it with
//! `Endpoint::reverse_proxy`: then each of its connections counts as a client.
//!
//! What is freed is given back to the allocator, and it depends on that what the system gets back.
//! glibc keeps large blocks: a program that serves large messages should call
//! `belay_process::return_large_blocks` when it begins, be started with
//! `MALLOC_MMAP_THRESHOLD_=262144`, or use another allocator.
