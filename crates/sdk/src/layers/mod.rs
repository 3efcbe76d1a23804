//! Layers to put around requests.
//!
//! Those for servers implement [`ServerLayer`](crate::ServerLayer), those for clients
//! [`ClientLayer`](crate::ClientLayer); [`Trace`] is both.

pub mod names;
#[cfg(feature = "client")]
mod propagate;
#[cfg(feature = "server")]
mod rate_limit;
#[cfg(feature = "client")]
mod retry;
mod trace;

#[cfg(feature = "client")]
pub use propagate::Propagate;
#[cfg(feature = "server")]
pub use rate_limit::RateLimit;
#[cfg(feature = "client")]
pub use retry::Retry;
pub use trace::Trace;
