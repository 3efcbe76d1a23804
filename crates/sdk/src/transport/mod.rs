//! What carries bytes.

#[cfg(all(feature = "stdio", feature = "client", unix))]
pub(crate) mod child;
pub(crate) mod memory;
#[cfg(all(feature = "stdio", feature = "server", unix))]
pub(crate) mod stdio;
