//! Layers to put around requests.
//!
//! Those for servers implement [`ServerLayer`], those for clients
//! [`ClientLayer`]; [`Trace`] is both.

#[cfg(any(feature = "client", feature = "server"))]
pub mod names;
#[cfg(feature = "client")]
mod propagate;
#[cfg(feature = "server")]
mod rate_limit;
#[cfg(feature = "client")]
mod retry;
#[cfg(any(feature = "client", feature = "server"))]
mod trace;

#[cfg(feature = "client")]
pub use propagate::Propagate;
#[cfg(feature = "server")]
pub use rate_limit::RateLimit;
#[cfg(feature = "client")]
pub use retry::Retry;
#[cfg(any(feature = "client", feature = "server"))]
pub use trace::Trace;

pub use crate::call::{CallRequest, ClientLayer, NextCall};
pub use crate::context::Extensions;
pub use crate::driver::LayerFuture;
#[cfg(feature = "server")]
pub use crate::server::layer::{Next, ServerLayer};
pub use crate::trace_context::TraceContext;
