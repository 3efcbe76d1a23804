//! Observing: progress, logging, tracing and metrics.
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
//! *Progress* goes to the caller of the request ([`Call::on_progress`](crate::Call::on_progress)) and
//! resets its idle timeout. *Log messages* go to the clients that asked for their level: a modern one
//! for a call, with [`Call::log_level`](crate::Call::log_level), a legacy one for its session, with
//! [`Client::set_log_level`](crate::Client::set_log_level). A legacy client that sets no level gets
//! messages from `info` on.
//!
//! [`Trace`](crate::layers::Trace) is a layer for clients and servers. It opens a `tracing` span around
//! each request and records how it ended; the names of its fields are in
//! [`layers::names`](crate::layers::names). The trace context of a request is sent in `_meta`:
//! [`TraceContext`](crate::layers::TraceContext),
//! [`layers::Propagate`](crate::layers::Propagate), [`Context::trace_context`](crate::Context::trace_context).
//!
//! [`Server::stats`](crate::Server::stats) has the request counters of all connections: how many
//! requests began, how each ended, how many are running. An HTTP service with `Endpoint::with_metrics` serves
//! them at `/metrics` in the format of Prometheus.
