//! `notifications/progress`.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::Notification;
use crate::jsonrpc::RequestId;

/// The token under which progress of a request is reported: a string or an integer, like a request
/// id.
///
/// Belay uses the id of the request itself, which is unique while the request lives.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgressToken(pub RequestId);

impl From<i64> for ProgressToken {
    fn from(number: i64) -> Self {
        Self(number.into())
    }
}

impl From<&str> for ProgressToken {
    fn from(string: &str) -> Self {
        Self(string.into())
    }
}

record! {
    /// The progress of a request.
    ///
    /// ```
    /// use belay_protocol::types::ProgressParams;
    /// let mut params = ProgressParams::new(7, 3.0);
    /// params.total = Some(10.0.into());
    /// let json = serde_json::to_string(&params).unwrap();
    /// assert_eq!(json, r#"{"progressToken":7,"progress":3,"total":10}"#);
    /// ```
    pub struct ProgressParams {
        required {
            /// The progress token that the request came with.
            token: ProgressToken = "progressToken",
            /// The progress so far. It must grow from one notification to the next.
            progress: Amount = "progress",
        }
        optional {
            /// The progress at the end, if that is known.
            total: Amount = "total",
            /// What is being done, for the user.
            message: String = "message",
        }
    }
}

impl Notification for ProgressParams {
    const METHOD: &'static str = "notifications/progress";
}

/// A number of steps, bytes or other units. A whole number is written without a fraction.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Deserialize)]
#[serde(transparent)]
pub struct Amount(pub f64);

impl From<f64> for Amount {
    fn from(number: f64) -> Self {
        Self(number)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Up to 2^53 every integer is exact as a float.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self.0 {
            whole if whole.fract() == 0.0 && whole.abs() <= EXACT => {
                serializer.serialize_i64(whole as i64)
            }
            other => serializer.serialize_f64(other),
        }
    }
}
