//! Byte streams in memory, and the direction of a frame that a tap sees.
//!
//! The everyday transports need nothing from here: stdio is [`serve_stdio`](crate::serve_stdio) and
//! `Client::stdio`, HTTP has the module `http`.

#[cfg(all(feature = "stdio", feature = "client", unix))]
pub(crate) mod child;
#[cfg(feature = "http")]
pub(crate) mod http;
pub(crate) mod memory;
#[cfg(all(feature = "stdio", feature = "server", target_os = "linux"))]
mod nowait;
#[cfg(all(any(feature = "stdio", feature = "http"), feature = "server", unix))]
pub(crate) mod stderr;
#[cfg(all(feature = "stdio", feature = "server", unix))]
pub(crate) mod stdio;

pub use crate::driver::Direction;
pub use memory::{MemoryEnd, memory};
