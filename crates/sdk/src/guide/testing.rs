//! Testing a server: an in-process client, a scripted peer, and what was counted.
//!
//! [`Client::in_process`](crate::Client::in_process) connects to a server over memory, in one line. The
//! whole protocol is spoken, so a test sees what a real client sees:
//!
//! ```
//! use belay::{Client, ToolError};
//!
//! struct Orders;
//!
//! #[belay::server]
//! impl Orders {
//!     /// Ships an order.
//!     #[tool]
//!     async fn ship(&self, order: u64) -> Result<String, ToolError> {
//!         match order {
//!             0 => Err("there is no order 0")?,
//!             order => Ok(format!("order {order} is on its way")),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), belay::Error> {
//! // In your crate: `#[tokio::test] async fn ships()`.
//! let client = Client::in_process(Orders).await?;
//! let shipped = client.call_tool("ship", serde_json::json!({ "order": 7 })).await?;
//! assert_eq!(shipped.as_text(), Some("order 7 is on its way"));
//!
//! // A tool that fails is a result, which the model reads; a request that fails is an error.
//! let failed = client.call_tool("ship", serde_json::json!({ "order": 0 })).await?;
//! assert_eq!(failed.is_error, Some(true));
//! let error = client.call_tool("shp", ()).await.unwrap_err();
//! assert!(error.is_refused(), "{error}");
//!
//! // What a model gets to see is worth a snapshot: names, descriptions and schemas.
//! let tools = client.list_all_tools().await?;
//! assert_eq!(tools[0].description.as_deref(), Some("Ships an order."));
//! # Ok(())
//! # }
//! ```
//!
//! # Cancellation
//!
//! Dropping a call cancels it, and a handler whose caller is gone is dropped. [`Server::stats`] counts
//! the handlers that exist, so a test can wait until there are none:
//!
//! ```
//! use belay::{Client, Context, Server, Tool};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), belay::Error> {
//! let hang = |_: Context, (): ()| async { std::future::pending::<()>().await };
//! let server = Server::new("example", "1.0.0").tool(Tool::new("hang", hang));
//! let stats = server.stats();
//! let client = Client::in_process(server).await?;
//!
//! let call = client.call_tool("hang", ());
//! let given_up = tokio::time::timeout(Duration::from_millis(50), call).await;
//! assert!(given_up.is_err());
//! while stats.handlers() > 0 {
//!     tokio::time::sleep(Duration::from_millis(1)).await;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # More
//!
//! The crate `belay-testkit` has what Belay's own tests use: a scripted peer that sends any bytes
//! (`Peer`), pipes that stall, break and cut (`Faults`), raw HTTP (`RawHttp`), and a checker for
//! ledgers (`check`). `belay call … -- cargo run --quiet` calls the real program from a shell.
//!
//! [`Server::stats`]: crate::Server::stats
