//! The Model Context Protocol for Rust, **in which no request is ever orphaned**.
//!
//! # What dropping a call does
//!
//! A call is a future, and dropping it cancels the request: the peer is told, once, if any of it was
//! written; if nothing was, it is never sent. On a pipe (stdio, memory, any byte stream) that is one
//! `notifications/cancelled`. `select!`, `tokio::time::timeout` and aborting a task all drop the
//! future, so all of them cancel.
//!
//! # What happens to a handler
//!
//! A handler runs only while somebody waits for it. When its caller cancels, disconnects or dies, at
//! its deadline or at a shutdown, its token fires and its future is dropped: at once, or after a
//! grace if it has taken its token to clean up.
//!
//! The rules have names, such as **drop-announces**; `docs/lifecycle.md` has them all.

// What the README shows is compiled.
#![cfg_attr(doctest, doc = include_str!("../../../README.md"))]
// The driver serves both roles. With one of them alone, the other's half of it is not used.
#![cfg_attr(
    not(all(feature = "client", feature = "server", feature = "stdio")),
    allow(dead_code, unused_imports)
)]

mod call;
#[cfg(feature = "client")]
mod client;
mod context;
mod driver;
mod error;
#[cfg(feature = "server")]
mod server;
mod transport;

pub use belay_protocol::{engine, jsonrpc, types};
pub use call::{Call, Canceller, InFlight};
#[cfg(feature = "client")]
pub use client::{Client, ClientBuilder};
pub use context::Context;
pub use error::{Error, ErrorKind};
#[cfg(feature = "server")]
pub use server::{IntoToolResult, Json, Server, Serving, Tool, Tools};
#[cfg(all(feature = "stdio", feature = "client", unix))]
pub use transport::child::Exited;
pub use transport::memory::{MemoryEnd, memory};
#[cfg(all(feature = "stdio", feature = "server", unix))]
pub use transport::stdio::serve_stdio;
