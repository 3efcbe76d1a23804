//! The HTTP server transport.
//!
//! ```text
//!   listener  connections, each with its limits
//!   streams   HTTP/2: the streams of one connection
//!   service   which era a request is of: what the message says decides
//!   door      who asks, under which name, with what kind of body
//!   request_body   a POST's body, within its limits, weighed against the client's share
//!   cors      what browsers are told, so that pages can ask
//!   exchange  modern: a POST by itself
//!   session   legacy: POSTs, a GET stream, streams that are resumed
//!   event_stream   2024-11-05: one stream down, POSTs up
//!   body      what goes back: one message, or events
//! ```

mod access;
mod body;
mod classify;
mod connection;
mod cors;
mod endpoint;
mod event_stream;
mod events;
mod exchange;
mod listener;
mod metrics;
mod peers;
mod refusal;
mod request_body;
mod service;
mod session;
mod sessions;
mod shared;
mod shared_timer;
mod streams;
#[cfg(feature = "tls")]
mod tls;

pub use body::Body;
pub use endpoint::{Endpoint, service};
pub use events::{EventStore, MemoryEvents, StreamId};
pub use listener::ServerHandle;
#[cfg(unix)]
pub use listener::serve;
pub use service::HttpService;
