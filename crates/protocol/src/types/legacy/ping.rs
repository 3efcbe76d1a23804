//! `ping`: checks that the peer is alive.

use crate::types::{EmptyResult, Request};

record! {
    /// The parameters, which have no fields.
    pub struct PingParams {
    }
}

/// `ping`. Either side may send it at any time. The engine answers it itself.
#[derive(Clone, Copy, Debug)]
pub enum Ping {}

impl Request for Ping {
    const METHOD: &'static str = "ping";
    type Params = PingParams;
    type Result = EmptyResult;
}
