//! `notifications/cancelled`.

use super::Notification;
use crate::jsonrpc::RequestId;

record! {
    /// Tells the peer that the caller does not wait for a request any more.
    ///
    /// ```
    /// use belay_protocol::types::CancelledParams;
    /// let params = CancelledParams::new(7);
    /// assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"requestId":7}"#);
    /// ```
    pub struct CancelledParams {
        required {
            /// The id that the sender gave to the request.
            request_id: RequestId = "requestId",
        }
        optional {
            /// The reason, for logs or for people.
            reason: String = "reason",
        }
    }
}

impl Notification for CancelledParams {
    const METHOD: &'static str = "notifications/cancelled";
}
