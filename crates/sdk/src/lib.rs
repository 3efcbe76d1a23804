//! The Model Context Protocol for Rust, **in which no request is ever orphaned**.
//!
//! A server:
//!
//! ```no_run
//! # #[cfg(all(feature = "macros", feature = "stdio", unix))] mod example {
//! use belay::{Context, ToolError};
//!
//! struct Orders;
//!
//! #[belay::server(name = "orders", version = "1.0.0")]
//! impl Orders {
//!     /// Ships an order.
//!     #[tool(timeout = "30s")]
//!     async fn ship(&self, cx: &Context, order: u64) -> Result<String, ToolError> {
//!         cx.progress(1.0, 2.0, "packing").await;
//!         // The caller hangs up: this is dropped here, and whatever it holds is released.
//!         Ok(format!("order {order} is on its way"))
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     belay::serve_stdio(Orders).await   // or belay::http::serve("127.0.0.1:8000", Orders)
//! }
//! # }
//! ```
//!
//! A client:
//!
//! ```no_run
//! # #[cfg(all(feature = "client", feature = "stdio", unix))]
//! # async fn example() -> Result<(), belay::Error> {
//! let client = belay::Client::stdio("cargo", ["run", "--quiet"]).await?;   // or belay::Client::http(url)
//! let call = client.call_tool("ship", serde_json::json!({ "order": 7 }));
//! println!("{:?}", call.timeout(std::time::Duration::from_secs(5)).await?.content);
//! # Ok(())
//! # }
//! ```
//!
//! Dropping a call cancels it on the server; a handler runs only while somebody waits for it; and each
//! call ends in one of eight typed ways, of which *lost* is never *cancelled*. [`guide`] has a page for
//! each thing the protocol offers.
//!
//! # What dropping a call does
//!
//! A call is a future, and dropping it cancels the request: the peer is told, once, if any of it was
//! written; if nothing was, it is never sent. On a pipe (stdio, memory, any byte stream) and on legacy
//! HTTP that is one `notifications/cancelled`; on modern HTTP the response stream is closed, and that
//! says it. `select!`, `tokio::time::timeout` and aborting a task all drop the future, so all of them
//! cancel.
//!
//! # What happens to a handler
//!
//! When its caller cancels, disconnects or dies, at its deadline or at a shutdown, its token fires and
//! its future is dropped: at once, or after a grace if it has taken its token to clean up.
//!
//! The rules have names, such as **drop-announces**; `docs/lifecycle.md` has them all.

// What the README shows is compiled.
#![cfg_attr(doctest, doc = include_str!("../../../README.md"))]
// The driver serves both roles. With one of them alone, the other's half of it is not used.
#![cfg_attr(
    not(all(
        feature = "client",
        feature = "http",
        feature = "server",
        feature = "stdio"
    )),
    allow(dead_code, unused_imports)
)]

mod call;
#[cfg(feature = "client")]
pub mod client;
mod context;
mod driver;
mod error;
#[cfg(any(feature = "client", feature = "server"))]
mod filled;
#[cfg(feature = "server")]
mod form;
#[cfg(all(feature = "client", feature = "macros"))]
pub mod guide;
pub mod layers;
#[cfg(feature = "server")]
mod percent;
mod principal;
#[cfg(feature = "server")]
pub mod server;
mod sync;
mod trace_context;
pub mod transport;

pub use belay_protocol::{jsonrpc, types};
pub use call::{Call, Canceller, InFlight};
#[cfg(feature = "client")]
pub use client::handle::Client;
pub use context::Context;
pub use error::{Error, ErrorKind};
pub use principal::Principal;
#[cfg(feature = "server")]
pub use server::builder::Server;
#[cfg(feature = "server")]
pub use server::offers::{Prompt, RequestError, Resource, ResourceTemplate, Tool, ToolError};
#[cfg(feature = "server")]
pub use server::reply::Json;
#[cfg(all(feature = "stdio", feature = "server", unix))]
pub use transport::stdio::serve_stdio;

/// JSON Schema validation with bounded work.
#[cfg(feature = "validate")]
pub mod schema {
    pub use belay_schema::{Schema, SchemaError, ValidationError};
}

/// How a call ended, and what is known of calls and handlers as a whole.
pub mod outcome {
    pub use belay_protocol::engine::{
        Book, By, Clock, End, Ledger, Loss, LossKind, Outcome, Rejection, Sent, StopCause,
        Violation,
    };
}

/// Limits, deadlines and other timeouts.
pub mod limits {
    pub use belay_protocol::engine::{Deadlines, Limits, Timeouts, Wait};
}

/// Input from the client within a handler: elicitation, sampling and roots.
///
/// The everyday way is [`Context::elicit`], [`Context::sample`] and [`Context::roots`].
#[cfg(feature = "server")]
pub mod input {
    pub use crate::context::{InputError, InputFuture};
    pub use crate::form::form_of;
    pub use crate::server::input_required::{InputMethod, InputRequests, RoundTrip, Step};
}

/// Streamable HTTP in both eras, and the event streams of 2024-11-05.
///
/// On modern HTTP closing the response stream is the cancellation: whoever drops a call closes it,
/// and a handler whose caller hung up is stopped. On legacy HTTP a broken stream is *not* one: the
/// request lives on for a while, so that it can be resumed.
#[cfg(feature = "http")]
pub mod http {
    #[cfg(feature = "client")]
    pub use crate::transport::http::client::HttpAnswer;
    #[cfg(all(feature = "server", unix))]
    pub use crate::transport::http::server::serve;
    #[cfg(feature = "server")]
    pub use crate::transport::http::server::{
        Body, Endpoint, EventStore, HttpService, MemoryEvents, ServerHandle, StreamId, service,
    };
}

/// Marks a method as a tool; see [`macro@server`].
#[cfg(feature = "macros")]
pub use belay_macros::tool;

/// Marks a method as a prompt; see [`macro@server`].
#[cfg(feature = "macros")]
pub use belay_macros::prompt;

/// Marks a method as a resource, or as many by a pattern; see [`macro@server`].
#[cfg(feature = "macros")]
pub use belay_macros::resource;

///
/// The name and version are those of the package unless they are given; a doc comment on the block
/// becomes the server's instructions. The block's type becomes a [`Server`] by `into()`.
///
/// ```no_run
/// use belay::{Context, ToolError};
///
/// struct Orders;
///
/// #[belay::server(name = "orders", version = "1.0.0")]
/// impl Orders {
///     /// Ships an order.
///     #[tool(timeout = "5s")]
///     async fn ship(&self, cx: &Context, order: u64) -> Result<String, ToolError> {
///         cx.progress(1.0, 2.0, "packing").await;
///         Ok(format!("order {order} is on its way"))
///     }
/// }
///
/// #[tokio::main]
/// async fn main() -> std::io::Result<()> {
///     belay::serve_stdio(Orders).await
/// }
/// ```
///
/// And somebody who calls it:
///
/// ```no_run
/// #[tokio::main]
/// async fn main() -> Result<(), belay::Error> {
///     let client = belay::Client::stdio("cargo", ["run", "--quiet"]).await?;
///     let order = serde_json::json!({ "order": 7 });
///     let shipped = client.call_tool("ship", order).await?;
///     println!("{:?}", shipped.content[0].as_text());
///     client.close().await;
///     Ok(())
/// }
/// ```
///
/// # What a tool may look like
///
/// An `async fn` with `&self` or without. A parameter of type `&Context` or `Context` is the
/// [`Context`]; all others are arguments, and their types need `Deserialize` and `JsonSchema`. An
/// `Option` need not be given. Doc comments are descriptions, for the tool and for each argument;
/// `#[serde(…)]` and `#[schemars(…)]` may stand before an argument.
///
/// It returns nothing, a `String`, anything else that is [`IntoToolResult`](server::IntoToolResult), a type of one's own with
/// `Serialize` and `JsonSchema`, which becomes structured content with an output schema, or a
/// `Result` of one of these, whose error the model gets to see.
///
/// | option | what it says |
/// |---|---|
/// | `name = "…"`, `title = "…"`, `description = "…"` | what it is called, for programs and people, and what it does |
/// | `grace = "1s"` | how long it may clean up once its token has fired |
/// | `timeout = "5s"` | how long it may take |
/// | `concurrency = 4` | how many of it may run at once |
/// | `blocking` | it is a plain `fn` that blocks a thread of its own |
/// | `read_only`, `destructive`, `idempotent`, `open_world` | hints, each also as `= false` |
///
/// # Prompts and resources
///
/// They look the same. A prompt gives what [`IntoPrompt`](server::IntoPrompt) takes; its arguments are texts on the wire,
/// and may be numbers, `bool`s and enums here. A resource gives what [`IntoContents`](server::IntoContents) takes; if its
/// URI has something in braces, that is an argument (see [`UriTemplate`](server::UriTemplate)).
///
/// ```
/// use belay::RequestError;
///
/// struct Orders;
///
/// #[belay::server]
/// impl Orders {
///     /// Asks for a summary.
///     #[prompt(title = "Summarise")]
///     async fn summary(&self, customer: String, words: Option<u32>) -> String {
///         format!("Summarise {customer} in {} words.", words.unwrap_or(50))
///     }
///
///     /// An order, by its number.
///     #[resource(uri = "orders://{number}", mime_type = "text/plain")]
///     async fn order(&self, number: u64) -> Result<String, RequestError> {
///         match number {
///             0 => Err(RequestError::not_found()),
///             number => Ok(format!("order {number}")),
///         }
///     }
/// }
/// # let _ = belay::Server::from(Orders);
/// ```
///
/// Options of a prompt: `name`, `title`, `description`. Options of a resource: `uri`, `name`, `title`,
/// `description`, `mime_type`. Completion, icons and how long a resource may be kept are said by hand,
/// with [`Prompt`], [`Resource`] and [`ResourceTemplate`]; what the block becomes can have more of
/// anything: `Server::from(Orders).prompt(…)`.
///
/// # What it stands for
///
/// Nothing that could not be written by hand. The block above is the same as
///
/// ```
/// use belay::{Context, Server, Tool, ToolError};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// struct Orders;
///
/// impl Orders {
///     /// Ships an order.
///     async fn ship(&self, cx: &Context, order: u64) -> Result<String, ToolError> {
///         cx.progress(1.0, 2.0, "packing").await;
///         Ok(format!("order {order} is on its way"))
///     }
/// }
///
/// impl From<Orders> for Server {
///     fn from(this: Orders) -> Self {
///         #[derive(serde::Deserialize, schemars::JsonSchema)]
///         struct Arguments { order: u64 }
///
///         let this = Arc::new(this);
///         let ship = move |cx: Context, arguments: Arguments| {
///             let this = this.clone();
///             async move { this.ship(&cx, arguments.order).await }
///         };
///         Server::new("orders", "1.0.0").tool(
///             Tool::new("ship", ship)
///                 .description("Ships an order.")
///                 .timeout(Duration::from_secs(5)),
///         )
///     }
/// }
/// # let _ = Server::from(Orders);
/// ```
#[cfg(feature = "macros")]
pub use belay_macros::server;

/// What the macros write refers to this.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod macros {
    pub use crate::server::offers::{Produced, Structured, ViaContent, ViaResult, ViaStructured};
    pub use schemars;
    pub use serde;
}

/// What `cargo xtask cost` asks.
#[cfg(belay_counted)]
#[doc(hidden)]
pub use sync::counted::locks_and_tasks;

/// The identifier of an extension.
#[cfg(any(feature = "client", feature = "server"))]
#[track_caller]
fn extension(identifier: String) -> String {
    assert!(
        types::is_extension_identifier(&identifier),
        "{identifier:?} is no identifier of an extension: it needs a prefix, as in \"com.example/receipts\""
    );
    identifier
}
