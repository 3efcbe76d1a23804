//! Streamable HTTP in both eras, and the event streams of 2024-11-05.

#[cfg(feature = "client")]
pub(crate) mod client;
#[cfg(feature = "client")]
mod executor;
pub(crate) mod headers;
pub(crate) mod param_headers;
#[cfg(feature = "server")]
pub(crate) mod server;
