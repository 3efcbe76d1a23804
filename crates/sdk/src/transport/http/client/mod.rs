//! The HTTP client transport.
//!
//! ```text
//!   address       where the server is, and what was learnt of it
//!   carrier       opens an exchange for each call, and one for what is told
//!   post          one exchange: a POST, and what comes back
//!   post_body     the body of a POST, which can be withdrawn until it is written
//!   connect, tls  how it is reached
//!   answer        what a response means, however odd it is
//!   stream        events, and what is done when they break off
//!   event_stream  2024-11-05: one stream down, POSTs up
//! ```

mod address;
mod answer;
mod carrier;
mod connect;
mod event_stream;
mod open;
mod post;
mod post_body;
mod stream;
#[cfg(feature = "tls")]
mod tls;

pub use answer::HttpAnswer;
pub(crate) use connect::Reach;
