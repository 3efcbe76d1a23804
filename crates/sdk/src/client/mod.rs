//! Clients: building and supervising them, their subscriptions, lists and caches.
//!
//! The client itself is [`Client`].

mod builder;
mod cache;
mod changes;
mod features;
pub(crate) mod handle;
mod hooks;
mod input_handlers;
#[cfg(feature = "validate")]
mod outputs;
mod pages;
mod stream;
pub(crate) mod supervise;

pub use belay_protocol::engine::Mode;
pub use builder::ClientBuilder;
pub use cache::Cache;
pub use changes::{Change, Subscription, SubscriptionEnd};
pub use features::PromptArguments;
pub use pages::{Pages, PaginatedRequest};
pub use supervise::{Restart, Supervision};

#[cfg(all(feature = "stdio", unix))]
pub use crate::transport::child::ProcessExit;

pub(crate) use cache::{Shelf, is_kept};
pub(crate) use changes::ChangeHub;
pub(crate) use handle::{Client, Established, Held, Routes};
pub(crate) use hooks::CallHooks;
pub(crate) use input_handlers::InputHandlers;
pub(crate) use pages::PAGES;
