//! `ping`: is anybody there?

use crate::types::{EmptyResult, Request};

record! {
    /// Nothing.
    pub struct PingParams {
    }
}

/// `ping`. Either side may send it at any time; the engine answers by itself.
#[derive(Clone, Copy, Debug)]
pub enum Ping {}

impl Request for Ping {
    const METHOD: &'static str = "ping";
    type Params = PingParams;
    type Result = EmptyResult;
}
