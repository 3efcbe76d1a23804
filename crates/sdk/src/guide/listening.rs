//! Listening: what changes on a server, as one stream in both eras.
//!
//! ```no_run
//! # async fn example(client: belay::Client) -> Result<(), belay::Error> {
//! use belay::Change;
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
//! In the modern era that is `subscriptions/listen`, in the legacy one `resources/subscribe` and what a
//! server tells unasked. A change says *that* something changed, so the same change waits once, however
//! often it happened; if more happens than anybody looks at, that is told as
//! [`Change::Lagged`](crate::Change::Lagged). A stream that is lost is opened again:
//! [`Change::Restored`](crate::Change::Restored). It ends for good when the server says so, when there
//! will be no connection any more, or when it was lost thirty times in a row (some two minutes, if the
//! server cannot be reached); [`Subscription::end`](crate::Subscription::end) tells which. Dropping it
//! ends it on the server, too.
//!
//! The other side says what changes, and whoever listens is told:
//!
//! ```
//! use belay::{Context, Server, Tool};
//!
//! let server = Server::new("orders", "1.0.0");
//! let (tools, resources) = (server.tools(), server.resources());
//! tools.add(Tool::new("new", |_cx: Context, (): ()| async { "hello" }));
//! resources.updated("orders://7");
//! ```
