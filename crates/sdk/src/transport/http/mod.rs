//! Streamable HTTP in both eras, and the event streams of 2024-11-05.

#[cfg(feature = "client")]
pub(crate) mod client;
mod executor;
mod headers;
#[cfg(feature = "server")]
pub(crate) mod server;
