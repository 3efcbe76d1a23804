//! `resources/subscribe` and `resources/unsubscribe`, which the modern `subscriptions/listen`
//! replaces.

use crate::types::{EmptyResult, Request};

record! {
    /// The parameters of both methods.
    pub struct SubscribeParams {
        required {
            /// The URI of the resource.
            uri: String = "uri",
        }
    }
}

/// `resources/subscribe`: asks for a notification when the resource changes.
#[derive(Clone, Copy, Debug)]
pub enum Subscribe {}

impl Request for Subscribe {
    const METHOD: &'static str = "resources/subscribe";
    type Params = SubscribeParams;
    type Result = EmptyResult;
}

/// `resources/unsubscribe`: ends such a subscription.
#[derive(Clone, Copy, Debug)]
pub enum Unsubscribe {}

impl Request for Unsubscribe {
    const METHOD: &'static str = "resources/unsubscribe";
    type Params = SubscribeParams;
    type Result = EmptyResult;
}
