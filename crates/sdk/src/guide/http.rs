//! HTTP: one server for many clients. The cargo feature is `http`, and `tls` for HTTPS.
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
//! This serves Streamable HTTP at `/mcp`, in all revisions that have it. `Endpoint::sse` adds the
//! HTTP+SSE transport of 2024-11-05. By default only `localhost` and loopback addresses are accepted in
//! the `Host` header. To bind a public address, list the allowed host names; `Endpoint` has the other
//! settings, too:
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
//! A web page may call the server if its `Origin` is one of the server's own host names or an allowed
//! origin. For these pages the server answers preflight requests and adds the CORS response headers.
//! Requests with any other `Origin` are refused with 403.
//!
//! `Endpoint::service` returns a service for hyper, or for a router such as axum's.
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
//! # Disconnects
//!
//! In the modern era a caller that closes its stream cancels the request, and the handler stops. In the
//! legacy era a broken stream is not a cancellation: the client can resume it for 60 s. See
//! [`stopping`](super::stopping).
//!
//! # Limits
//!
//! Everything is bounded by default. A request over a limit is refused with the status in the last
//! column.
//!
//! | limit | default | setting | above the limit |
//! |---|---|---|---|
//! | bytes kept for all clients | 256 MiB | `Endpoint::kept_bytes` | 503, -31001; a response becomes -32603 |
//! | bytes of a request body | 4 MiB | `Server::limits`, `received_bytes` | 413 |
//! | time to receive headers, a body | 10 s, 30 s | `Endpoint::read_timeouts` | closed, 408 |
//! | running handlers in all, per connection | 4,096, 128 | `Endpoint::in_flight`, `in_flight_per_connection` | 503, 429 |
//! | threads of blocking handlers | 64 | `Server::limits`, `blocking` | -31001 |
//! | open subscriptions (listens) | 1,024 | `Server::limits`, `listens` | 429 |
//! | legacy sessions, and their idle time | 10,000, 5 min | `Endpoint::sessions`, `session_idle` | 503 |
//! | connections; open HTTP requests | 16,384 | `Endpoint::connections` | wait to be accepted, or closed; 503 |
//! | time in which the client reads nothing | 10 s | `Endpoint::write_stall` | closed, or the stream reset |
//!
//! No single client can use up a limit for the others: it may hold at most as much as it leaves free,
//! which is half of the limit if it is alone, and half of the rest otherwise. A client is identified by
//! its [`Principal`](crate::Principal) if it has one, else by its
//! address. If a reverse proxy on another machine stands in front of the server, name it with
//! `Endpoint::reverse_proxy`: then each of its connections counts as a client.
//!
//! Freed memory goes back to the allocator, which decides how much of it the system gets back.
//! glibc keeps large blocks: a program that serves large messages should call
//! `belay_process::return_large_blocks` when it starts, be started with
//! `MALLOC_MMAP_THRESHOLD_=262144`, or use another allocator.
