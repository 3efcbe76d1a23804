//! Observing: progress, logs and traces.
//!
//! ```
//! use belay::layers::Trace;
//! use belay::types::LoggingLevel;
//! use belay::{Context, Server, Tool};
//!
//! let server = Server::new("orders", "1.0.0")
//!     .layer(Trace)
//!     .tool(Tool::new("ship", |cx: Context, (): ()| async move {
//!         cx.log(LoggingLevel::Info, "packing").await;
//!         cx.progress(1.0, 2.0, "packing").await;
//!     }));
//! ```
//!
//! *Progress* is for whoever waits, and keeps its idle clock from running out
//! ([`Call::on_progress`](crate::Call::on_progress)). *Logs* go to whoever asked for that level: a
//! modern call with [`Call::log_level`](crate::Call::log_level), a legacy session with
//! [`Client::set_log_level`](crate::Client::set_log_level).
//!
//! [`Trace`](crate::layers::Trace) is a `tracing` span around each request on either side, which records
//! how it ended; the names of its fields are in [`layers::names`](crate::layers::names). Which trace a
//! request belongs to travels in `_meta`: [`TraceContext`](crate::TraceContext),
//! [`layers::Propagate`](crate::layers::Propagate), [`Context::trace_context`](crate::Context::trace_context).
//!
//! [`Server::stats`](crate::Server::stats) counts all requests, and an HTTP service can be asked
//! for `/metrics`.
