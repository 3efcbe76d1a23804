//! Notifications that only the legacy era has.

use crate::types::{ElicitParams, Notification};

record! {
    /// The list of the client's folders has changed.
    pub struct RootsListChangedParams {
    }
}

impl Notification for RootsListChangedParams {
    const METHOD: &'static str = "notifications/roots/list_changed";
}

record! {
    /// The user has completed an elicitation by URL; 2025-11-25 only.
    pub struct ElicitationCompleteParams {
        required {
            /// The id of the elicitation.
            elicitation_id: String = "elicitationId",
        }
    }
}

impl Notification for ElicitationCompleteParams {
    const METHOD: &'static str = "notifications/elicitation/complete";
}

record! {
    /// The data of the error `-32042`: the user has to visit these pages first; 2025-11-25 only.
    pub struct UrlElicitationRequiredData {
        required {
            /// The pages.
            elicitations: Vec<ElicitParams> = "elicitations",
        }
    }
}
