//! `notifications/cancelled`.

use super::Notification;
use crate::jsonrpc::RequestId;

record! {
    /// Tells the peer that nobody waits for a request any more.
    ///
    /// ```
    /// use belay_protocol::types::CancelledParams;
    /// let params = CancelledParams::new(7);
    /// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"requestId":7}"#);
    /// ```
    pub struct CancelledParams {
        required {
            /// The request, as its sender called it.
            request_id: RequestId = "requestId",
        }
        optional {
            /// Why, for a log or for a person.
            reason: String = "reason",
        }
    }
}

impl Notification for CancelledParams {
    const METHOD: &'static str = "notifications/cancelled";
}
