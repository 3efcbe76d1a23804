//! Resources: what can be read, one by one or by a pattern.
//!
//! ```
//! use belay::{Context, RequestError, Resource, ResourceTemplate, Server};
//!
//! #[derive(serde::Deserialize)]
//! struct Which { number: u64 }
//!
//! let server = Server::new("orders", "1.0.0")
//!     .resource(Resource::text("orders://help", "help", "Ask for a number."))
//!     .resource(Resource::new("orders://logo", "logo", |_cx: Context| async {
//!         Ok::<_, RequestError>(tokio_read("/srv/logo.png").await?)
//!     }).mime_type("image/png"))
//!     .resource_template(ResourceTemplate::new(
//!         "orders://{number}",
//!         "order",
//!         |_cx: Context, which: Which| async move {
//!             // `None` is "not found".
//!             (which.number < 1000).then(|| format!("order {}", which.number))
//!         },
//!     ));
//! # async fn tokio_read(path: &str) -> std::io::Result<Vec<u8>> { std::fs::read(path) }
//! ```
//!
//! Patterns are matched in time that grows with the length of the URI, whatever it says; see
//! [`UriTemplate`](crate::UriTemplate). What stands in place of a variable comes from the client: a
//! handler that reads files has to look where that leads.
//!
//! A client reads with [`Client::read_resource`](crate::Client::read_resource). One that wants to know
//! when a resource changes [listens](super::listening); the server says so with
//! [`Resources::updated`](crate::Resources::updated).
