//! What only the modern wire has: discovery, and the errors of per-request metadata.

mod discover;
mod unsupported;

pub use discover::{Discover, DiscoverParams, DiscoverResult};
pub use unsupported::{MissingCapabilityData, UnsupportedVersionData};
