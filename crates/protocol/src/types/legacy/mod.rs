//! What only the legacy wire has: the handshake, and `ping`.

mod initialize;
mod ping;

pub use initialize::{Initialize, InitializeParams, InitializeResult, InitializedParams};
pub use ping::{Ping, PingParams};
