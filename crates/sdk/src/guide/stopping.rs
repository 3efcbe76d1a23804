//! Stopping: cancellation, timeouts, and what happens to a handler.
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
//! Dropping the future of a call cancels the request on the server, whether `select!`, a timeout or an
//! aborted task dropped it. A handler whose caller is gone is dropped at its next `await`, and the
//! resources it holds are released. A handler that has to clean up asynchronously takes its cancellation
//! token; [`Context::stopped`](crate::Context::stopped) counts as taking it. Then it is not dropped
//! before its grace period has passed:
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
//! The same holds in every feature: while a form is open, while a resource is read, between two round
//! trips, while listening. `docs/lifecycle.md` lists all rules by name.
