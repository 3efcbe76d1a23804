//! Notifications that only the legacy wire has.

use crate::types::{ElicitParams, Notification};

record! {
    /// The client's folders are not what they were.
    pub struct RootsListChangedParams {
    }
}

impl Notification for RootsListChangedParams {
    const METHOD: &'static str = "notifications/roots/list_changed";
}

record! {
    /// The person has done what was to be done at a URL; 2025-11-25 only.
    pub struct ElicitationCompleteParams {
        required {
            /// Which elicitation it was.
            elicitation_id: String = "elicitationId",
        }
    }
}

impl Notification for ElicitationCompleteParams {
    const METHOD: &'static str = "notifications/elicitation/complete";
}

record! {
    /// With `-32042`: the person has to visit these pages first; 2025-11-25 only.
    pub struct UrlElicitationRequiredData {
        required {
            /// The pages.
            elicitations: Vec<ElicitParams> = "elicitations",
        }
    }
}
