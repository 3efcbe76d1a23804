//! Stopping: what dropping does, and what happens to a handler.
//!
//! ```no_run
//! # async fn example(client: belay::Client) -> Result<(), belay::Error> {
//! use std::time::Duration;
//!
//! let call = client.call_tool("ship", serde_json::json!({ "order": 7 }));
//! match call.timeout(Duration::from_secs(5)).await {
//!     Ok(answer) => println!("{:?}", answer.content),
//!     Err(e) if e.is_lost() && e.safe_to_retry() => { /* connect again, call again */ }
//!     Err(e) if e.is_timeout() => { /* the server was told */ }
//!     Err(e) if e.is_cancelled() => { /* somebody stopped it; never the server's death */ }
//!     Err(e) => eprintln!("{e}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Dropping a call cancels it on the server, whatever dropped it. A handler that nobody waits for is
//! dropped at its next `await`, and what it holds is released. One that has to clean up takes its token:
//!
//! ```
//! use belay::{Context, Server, Tool};
//! use std::time::Duration;
//!
//! let server = Server::new("orders", "1.0.0").tool(
//!     Tool::new("ship", |cx: Context, (): ()| async move {
//!         let why = cx.stopped().await;
//!         eprintln!("rolling back, since {why}");
//!     })
//!     .grace(Duration::from_secs(5)),
//! );
//! ```
//!
//! The same holds inside of every feature: while a form is open, while a resource is read, between two
//! rounds, while listening. `docs/lifecycle.md` has all rules by name.
