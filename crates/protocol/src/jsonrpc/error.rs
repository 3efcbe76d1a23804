//! The error object of a response.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::RawJson;

/// The error with which a peer refuses a request: a code, a message, and optional data.
///
/// Codes and their meaning are in [`types::error_code`](crate::types::error_code).
///
/// ```
/// use belay_protocol::jsonrpc::ErrorObject;
/// let error = ErrorObject::new(-32601, "no such method: tools/frobnicate");
/// assert_eq!(error.to_string(), "no such method: tools/frobnicate (-32601)");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ErrorObject {
    /// The error code.
    pub code: i64,
    /// One sentence for the user or the log.
    pub message: String,
    /// Additional data, undecoded.
    pub data: Option<RawJson>,
}

impl ErrorObject {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The same error with data.
    #[must_use]
    pub fn with_data(self, data: RawJson) -> Self {
        Self {
            data: Some(data),
            ..self
        }
    }
}

impl fmt::Display for ErrorObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ErrorObject {}

impl Serialize for ErrorObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        if let Some(data) = &self.data {
            map.serialize_entry("data", data)?;
        }
        map.end()
    }
}
