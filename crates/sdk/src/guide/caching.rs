//! Caching: what may be used again. Modern only.
//!
//! A modern server says of lists, of what was read and of itself for how long that may be kept, and by
//! whom:
//!
//! ```
//! use belay::types::CacheScope;
//! use belay::{CacheHint, Resource, Server};
//! use std::time::Duration;
//!
//! let minute = Duration::from_secs(60);
//! let server = Server::new("orders", "1.0.0")
//!     .caching(|caching| caching.lists = CacheHint::public(minute))
//!     .resource(Resource::text("orders://help", "help", "…").cache(minute, CacheScope::Public));
//! ```
//!
//! A client keeps it for so long by itself, in a bounded [`Cache`](crate::Cache), and forgets it when it
//! hears that it changed. What is private is used only with the same credentials. A call with
//! [`fresh`](crate::Call::fresh) is always made, and so is one with something beside its parameters,
//! since that may say who asks; [`no_cache`](crate::ClientBuilder::no_cache) turns it off.
//!
//! ```no_run
//! # async fn example(client: belay::Client) -> Result<(), belay::Error> {
//! let tools = client.list_tools().await?;
//! let the_same = client.list_tools().await?; // no request, for as long as the server said
//! let now = client.list_tools().fresh().await?;
//! # Ok(())
//! # }
//! ```
