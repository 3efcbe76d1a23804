//! InputFuture: a form for the person, a question for the model, the folders that matter.
//!
//! A handler asks its client in one line, and that line works on both wires:
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
//! In the legacy era the question is a request to the client. In the modern one the handler's request
//! is answered with the question, and the client makes it again with the answer. So **the handler is
//! run again, from its start**: what it did before it asked is done again, and nothing of it is left
//! in between. [`Context::once`](crate::Context::once) is for what costs, or should not be
//! done again in each round.
//! What is known so far travels with the client, sealed: it can neither read nor change it, and it is
//! good for the same caller, the same request and a quarter of an hour
//! ([`RequestState`](crate::RequestState); servers that share a key can go on for each other).
//!
//! Two questions at once, with `join!`, are one round. A question is known by its order, or by its name
//! ([`InputFuture::named`](crate::InputFuture::named)), and by what it asks: an answer to something else is none.
//!
//! Whoever would rather see the rounds writes [`Tool::in_steps`](crate::Tool::in_steps).
//!
//! A person can be sent to a page, too ([`Context::elicit_url`](crate::Context::elicit_url)), for what
//! the client must not see. That they agree does not mean that they are done there: the handler finds
//! that out by itself, and a client of 2025-11-25 can be told
//! ([`Context::elicitation_complete`](crate::Context::elicitation_complete)).
//!
//! If the client cannot be asked, the request ends there with the error that says so; look at
//! [`Context::client_capabilities`](crate::Context::client_capabilities) first where one can do without.
//!
//! # The other side
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
//! When its folders change, the client says so ([`Client::roots_changed`](crate::Client::roots_changed)),
//! and a legacy server hears it ([`Server::on_notification`](crate::Server::on_notification)).
//!
//! A call goes on by itself, in ten rounds at most, each with an id of its own, under one deadline. A
//! call that is dropped drops whoever was being asked.
