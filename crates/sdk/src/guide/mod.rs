//! One page for each thing the protocol offers, with an example to copy. There is no code here.
//!
//! - [`tools`]: what a server does for a client
//! - [`resources`]: what can be read
//! - [`prompts`]: words for a model, and what their arguments could be
//! - [`asking`]: forms, models and folders, in one line on both wires
//! - [`listening`]: what changes on a server, as one stream
//! - [`lists`]: pages, and all of them
//! - [`caching`]: what may be used again
//! - [`versions`]: the eras, what a server says of itself, and extensions
//! - [`http`]: many clients at once
//! - [`stopping`]: what dropping does, and what happens to a handler
//! - [`observing`]: logs, progress and traces
//!
//! `examples/everything` is a server with one of each.

pub mod asking;
pub mod caching;
pub mod http;
pub mod listening;
pub mod lists;
pub mod observing;
pub mod prompts;
pub mod resources;
pub mod stopping;
pub mod tools;
pub mod versions;
