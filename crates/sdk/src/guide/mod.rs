//! The guide: one page for each feature of the protocol, with an example to copy. The modules are
//! documentation only and contain no items.
//!
//! - [`tools`]: functions that a client calls, with schemas, validation and errors
//! - [`resources`]: data that a client reads, by URI or by URI template
//! - [`prompts`]: prompt templates, and completion of their arguments
//! - [`asking`]: elicitation (forms), sampling and roots: requests from a handler to its client
//! - [`listening`]: subscriptions to change notifications, as one stream
//! - [`lists`]: pagination of long lists
//! - [`caching`]: results that a client may reuse, by TTL
//! - [`versions`]: protocol versions (eras), server information, capabilities and extensions
//! - [`http`]: a server for many clients, its limits, `Host` and `Origin` checks, CORS
//! - [`stopping`]: cancellation, timeouts, and what happens to a handler
//! - [`errors`]: which error type is for what
//! - [`testing`]: an in-process client, cancellation in tests
//! - [`observing`]: progress, logging, tracing and metrics
//!
//! `examples/everything` is a server with one of each.

pub mod asking;
pub mod caching;
pub mod errors;
pub mod http;
pub mod listening;
pub mod lists;
pub mod observing;
pub mod prompts;
pub mod resources;
pub mod stopping;
pub mod testing;
pub mod tools;
pub mod versions;
