//! Listening: subscriptions to change notifications of a server, as one stream in both eras.
//!
//! ```no_run
//! # async fn example(client: belay::Client) -> Result<(), belay::Error> {
//! use belay::client::Change;
//! use belay::types::modern::SubscriptionFilter;
//!
//! let filter = SubscriptionFilter::new().tools().resource("orders://7");
//! let mut changes = client.listen(filter).await?;
//! while let Some(change) = changes.next().await {
//!     match change {
//!         Change::Tools => println!("list the tools again"),
//!         Change::Updated { uri } => println!("read {uri} again"),
//!         _ => println!("look at everything again"),
//!     }
//! }
//! println!("no more: {:?}", changes.end());
//! # Ok(())
//! # }
//! ```
//!
//! In the modern era this is `subscriptions/listen`. In the legacy era it is `resources/subscribe`,
//! together with the list change notifications that a server sends unrequested.
//!
//! A change says only *that* something changed, so equal changes that wait to be read are merged into
//! one. If more changes arrive than the program reads, the rest are dropped and counted
//! ([`Change::Lagged`](crate::client::Change::Lagged)). A stream that is lost is opened again:
//! [`Change::Restored`](crate::client::Change::Restored) says so, because changes may have been missed.
//!
//! The stream ends for good when the server ends it or refuses to go on, when the connection is gone for
//! good, or when it was lost thirty times in a row (about two minutes, if the server cannot be reached);
//! [`Subscription::end`](crate::client::Subscription::end) returns the reason. Dropping the stream also ends the
//! subscription on the server.
//!
//! The server announces changes, and all subscribed clients are notified. A change of a list, such as a
//! new tool, is announced automatically; a changed resource by the program:
//!
//! ```
//! use belay::{Context, Server, Tool};
//!
//! let server = Server::new("orders", "1.0.0");
//! let (tools, resources) = (server.tools(), server.resources());
//! tools.add(Tool::new("new", |_cx: Context, (): ()| async { "hello" }));
//! resources.updated("orders://7");
//! ```
