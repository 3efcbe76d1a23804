//! Tools for testing MCP clients and servers, Belay's and your own.
//!
//! - [`Peer`] is a scripted peer: the test itself plays the other side, so it reads like a
//!   dialogue.
//! - [`RawHttp`] is a scripted HTTP client, down to single bytes.
//! - [`pair`] connects a real client and a real server.
//! - [`Faults`] make a pipe stall, break, split or delay its bytes, or deliver garbage.
//! - [`check`] checks a ledger: `started = ends + in flight`, and nothing is in flight.
//! - [`Transcript`] checks the wire: every request has exactly one answer.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use belay::Client;
//! use belay_testkit::Peer;
//! use serde_json::json;
//!
//! let (mut peer, (reader, writer)) = Peer::pipe();
//! let client = tokio::spawn(Client::connect(reader, writer));
//! peer.open_modern().await;
//! let client = client.await.unwrap().unwrap();
//!
//! let call = client.call_tool("ship", json!({ "order": 7 })).start();
//! let asked = peer.expect("tools/call").await;
//! assert_eq!(asked["params"]["name"], "ship");
//! drop(call);
//! let cancelled = peer.expect("notifications/cancelled").await;
//! assert_eq!(cancelled["params"]["requestId"], asked["id"]);
//! # }
//! ```

mod faults;
mod ledger;
mod pair;
mod peer;
mod raw_http;
mod transcript;

pub use faults::{Faults, Faulty};
pub use ledger::check;
pub use pair::{pair, until};
pub use peer::Peer;
pub use raw_http::{RawAnswer, RawHttp};
pub use transcript::Transcript;
