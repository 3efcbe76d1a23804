//! Resources: data that a client reads, each by its own URI or by a URI template.
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
//! URI templates are matched in time that is linear in the length of the URI; see
//! [`UriTemplate`](crate::server::UriTemplate). The values of the variables come from the client and are not
//! trusted: a handler that reads files has to check for path traversal.
//!
//! A client reads with [`Client::read_resource`](crate::Client::read_resource). To be notified when a
//! resource changes, it [subscribes](super::listening); the server announces a change with
//! [`Resources::updated`](crate::server::Resources::updated).
