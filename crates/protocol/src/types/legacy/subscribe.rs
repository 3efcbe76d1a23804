//! `resources/subscribe` and `resources/unsubscribe`, which the modern `subscriptions/listen`
//! replaces.

use crate::types::{EmptyResult, Request};

record! {
    /// Which resource.
    pub struct SubscribeParams {
        required {
            /// Where it is.
            uri: String = "uri",
        }
    }
}

/// `resources/subscribe`: tell me when it changes.
#[derive(Clone, Copy, Debug)]
pub enum Subscribe {}

impl Request for Subscribe {
    const METHOD: &'static str = "resources/subscribe";
    type Params = SubscribeParams;
    type Result = EmptyResult;
}

/// `resources/unsubscribe`: that is enough.
#[derive(Clone, Copy, Debug)]
pub enum Unsubscribe {}

impl Request for Unsubscribe {
    const METHOD: &'static str = "resources/unsubscribe";
    type Params = SubscribeParams;
    type Result = EmptyResult;
}
