//! Clients and servers, on pipes in memory and on loopback sockets.
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod asked;
mod basics;
mod examples;
mod faults;
mod features;
mod guests;
mod http;
mod layers;
mod listening;
mod macros;
mod rounds;
#[cfg(all(unix, feature = "validate"))]
mod schemas;
#[cfg(unix)]
mod spinning;
mod stray;
mod tools;
mod ui;
mod weighed;
