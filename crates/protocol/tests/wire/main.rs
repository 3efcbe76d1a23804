//! Tests of what is on the wire: envelopes, frames and types, through the public face.

mod allocations;
mod corpus;
mod envelope;
mod framing;
mod properties;
mod types;
