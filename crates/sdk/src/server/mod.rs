//! Servers: what they offer, how long results may be cached, and what can be seen of them.
//!
//! The builder of a server is [`Server`]; tools, prompts and resources are
//! [`Tool`](crate::Tool), [`Prompt`](crate::Prompt), [`Resource`](crate::Resource) and
//! [`ResourceTemplate`](crate::ResourceTemplate). What is here is needed less often.

pub(crate) mod builder;
mod changes;
mod connection;
mod connections;
pub(crate) mod input_required;
pub(crate) mod layer;
pub(crate) mod offers;
pub(crate) mod reply;
mod service;

pub use connection::ServerConnection;
pub use connections::ServerStats;
#[cfg(feature = "sealed")]
pub use input_required::{RequestState, StateKey};
pub use offers::{
    CacheHint, Caching, CompletionRequest, Contents, IntoContents, IntoPrompt, Prompts, Resources,
    Tools, UriTemplate, UriTemplateError,
};
pub use reply::IntoToolResult;

#[cfg(all(any(feature = "stdio", feature = "http"), unix))]
pub use crate::transport::stderr::{StderrGuard, guard_stderr};

pub(crate) use builder::Server;
pub(crate) use changes::LegacySession;
#[cfg(feature = "http")]
pub(crate) use connections::{Connections, Entry, Unentered};
pub(crate) use input_required::Rounds;
pub(crate) use service::Service;
