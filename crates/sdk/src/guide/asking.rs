//! Asking the client: forms for the user (elicitation), calls to its language model (sampling), and
//! its folders (roots).
//!
//! A handler asks its client in one line, which works in both eras:
//!
//! ```
//! use belay::{Context, Server, Tool, ToolError};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Label {
//!     /// Who gets it.
//!     name: String,
//!     size: Option<u8>,
//! }
//!
//! let server = Server::new("orders", "1.0.0").tool(Tool::new(
//!     "ship",
//!     |cx: Context, (): ()| async move {
//!         let price: u64 = cx.once("price", || async { look_up_price().await }).await?;
//!         let label: Label = cx.elicit("Which label?").await?;
//!         Ok::<_, ToolError>(format!("{} pays {price}", label.name))
//!     },
//! ));
//! # async fn look_up_price() -> u64 { 7 }
//! ```
//!
//! In the legacy era the question is a request from the server to the client. In the modern era the
//! server answers the handler's request with the question, and the client sends the request again with
//! the answer (a round trip). So **the handler runs again, from its start**: everything it did before
//! it asked is repeated, and the server keeps nothing between two round trips.
//! [`Context::once`](crate::Context::once) keeps the result of an expensive step, or of one that should
//! not be repeated in each round trip.
//! State between round trips is encrypted and carried by the client, which can neither read nor change
//! it. It is valid for the same caller and the same request, for 15 minutes
//! ([`RequestState`](crate::server::RequestState); servers that share a key can continue each other's requests).
//!
//! Two questions that are asked concurrently, with `join!`, share one round trip. A question is
//! identified by its order, or by its name
//! ([`InputFuture::named`](crate::input::InputFuture::named)), and by its content. An answer to another question is
//! ignored.
//!
//! For explicit round trips use [`Tool::in_steps`](crate::Tool::in_steps).
//!
//! A handler can also send the user to a web page
//! ([`Context::elicit_url`](crate::Context::elicit_url)), for input that the client must not see, such
//! as a password. The user's consent to open the page does not mean that they have finished there: the
//! handler has to find that out itself. It can then notify a client of 2025-11-25
//! ([`Context::elicitation_complete`](crate::Context::elicitation_complete)).
//!
//! If the client does not support the question, the request ends at that point with the error that the
//! specification has for it. If the handler can do without an answer, check
//! [`Context::client_capabilities`](crate::Context::client_capabilities) first.
//!
//! # On the client
//!
//! A client registers one callback for each kind of question:
//!
//! ```
//! use belay::types::{CreateMessageResult, ElicitResult, Role, Root};
//!
//! let builder = belay::Client::builder("host", "1.0.0")
//!     .on_elicit(|form| async move { Ok(ElicitResult::accept(form.requested_schema.defaults())) })
//!     .on_sample(|_asked| async { Ok(CreateMessageResult::new(Role::Assistant, "42", "model")) })
//!     .roots([Root::new("file:///home/user/project")]);
//! ```
//!
//! When its folders change, the client sends a notification
//! ([`Client::roots_changed`](crate::Client::roots_changed)), for which a legacy server can register a
//! handler ([`Server::on_notification`](crate::Server::on_notification)).
//!
//! The client answers round trips automatically: at most ten for one call, each with its own request
//! id, all under one total timeout. Dropping a call also drops the callback that is running for it.
