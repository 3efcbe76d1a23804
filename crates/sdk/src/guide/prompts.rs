//! Prompts: templates of messages for a model, which a user selects and fills in.
//!
//! ```
//! use belay::types::PromptMessage;
//! use belay::{Context, Prompt, Server};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Review {
//!     /// The code to look at.
//!     code: String,
//!     language: Option<String>,
//! }
//!
//! let server = Server::new("reviews", "1.0.0").prompt(
//!     Prompt::new("review", |_cx: Context, it: Review| async move {
//!         let language = it.language.unwrap_or("unknown".to_owned());
//!         [
//!             PromptMessage::user(format!("Please review this {language} code.")),
//!             PromptMessage::user(it.code),
//!         ]
//!     })
//!     .description("Asks for a review.")
//!     .complete("language", |_cx, typed| async move {
//!         let known = ["rust", "ruby", "python"].into_iter();
//!         known.filter(move |known| known.starts_with(&typed.value))
//!     }),
//! );
//! ```
//!
//! On the wire all arguments are strings; in the argument type they may also be numbers, `bool`s and
//! enums. `complete` registers a completion callback for one argument: it gets what the user has typed
//! so far and returns suggestions. Arguments that are already filled in are in
//! [`CompletionRequest::settled`](crate::server::CompletionRequest). Resource templates have completion, too.
//!
//! A client requests suggestions, and the messages of a prompt:
//!
//! ```no_run
//! # async fn example(client: belay::Client) -> Result<(), belay::Error> {
//! use belay::types::PromptReference;
//!
//! let known = client.complete(PromptReference::new("review"), "language", "ru").await?;
//! let prompt = client.get_prompt("review", [("code", "fn main() {}")]).await?;
//! # Ok(())
//! # }
//! ```
