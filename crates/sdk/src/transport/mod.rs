//! What carries bytes.

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
