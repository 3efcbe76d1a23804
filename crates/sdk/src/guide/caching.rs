//! Caching: results that a client may reuse. Modern only.
//!
//! For lists, for resources that were read and for `server/discover`, a modern server sets a TTL, and a
//! scope: public, or private to one caller:
//!
//! ```
//! use belay::types::CacheScope;
//! use belay::server::CacheHint;
//! use belay::{Resource, Server};
//! use std::time::Duration;
//!
//! let minute = Duration::from_secs(60);
//! let server = Server::new("orders", "1.0.0")
//!     .caching(|caching| caching.lists = CacheHint::public(minute))
//!     .resource(Resource::text("orders://help", "help", "…").cache(minute, CacheScope::Public));
//! ```
//!
//! A client caches these results automatically for that time, in a bounded [`Cache`](crate::client::Cache). A
//! change notification invalidates them. A private result is reused only with the same credentials.
//! A call with [`fresh`](crate::Call::fresh) always sends a request. So does a call with metadata
//! other than a log level or a trace context, because metadata may identify the caller.
//! [`no_cache`](crate::client::ClientBuilder::no_cache) turns caching off.
//!
//! ```no_run
//! # async fn example(client: belay::Client) -> Result<(), belay::Error> {
//! let tools = client.list_tools().await?;
//! let the_same = client.list_tools().await?; // no request, for as long as the server said
//! let now = client.list_tools().fresh().await?;
//! # Ok(())
//! # }
//! ```
