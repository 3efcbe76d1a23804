//! What all results have in common.

use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::{Serialize, Serializer};

/// What kind of result it is: the last word, or a question. Legacy results say nothing, which
/// means [`ResultType::Complete`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ResultType {
    /// The request is done.
    Complete,
    /// The request goes on once the client has supplied something.
    InputRequired,
    /// A kind that an extension defines.
    Other(String),
}

impl ResultType {
    /// As it stands on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Other(other) => other,
        }
    }
}

impl fmt::Display for ResultType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ResultType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ResultType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match String::deserialize(deserializer)? {
            text if text == Self::Complete.as_str() => Self::Complete,
            text if text == Self::InputRequired.as_str() => Self::InputRequired,
            other => Self::Other(other),
        })
    }
}

record! {
    /// A result that says nothing but "done".
    ///
    /// ```
    /// use belay_protocol::types::EmptyResult;
    /// assert_eq!(serde_json::to_string(&EmptyResult::new()).unwrap(), "{}");
    /// ```
    pub struct EmptyResult {
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
        }
    }
}
