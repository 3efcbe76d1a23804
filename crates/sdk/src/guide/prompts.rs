//! Prompts: words for a model, which a person chooses and fills in.
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
//! On the wire arguments are texts; here they may be numbers, `bool`s and enums, too. `complete` says
//! what an argument could be while somebody types it; other arguments, if they are settled, are in
//! [`CompletionRequest::settled`](crate::CompletionRequest). Templates of resources have the same.
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
