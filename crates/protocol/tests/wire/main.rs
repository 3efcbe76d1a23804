//! Tests of what is on the wire: envelopes, frames and types, through the public face.
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod allocations;
mod corpus;
mod envelope;
mod framing;
mod properties;
mod types;
