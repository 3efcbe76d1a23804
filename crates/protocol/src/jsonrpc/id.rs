//! Request ids, kept exactly as received.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// The id of a request, chosen by its sender: an integer or a string.
///
/// `7` and `"7"` are different ids. Floats, `null` and integers outside `i64` are refused when a
/// message is decoded, so an id that exists can be compared and written back without loss.
///
/// ```
/// use belay_protocol::jsonrpc::RequestId;
/// assert_ne!(RequestId::from(7), RequestId::from("7"));
/// assert_eq!(RequestId::from("7").to_string(), "\"7\"");
/// ```
// A string id is its own allocation on purpose: a slice would keep the whole frame it arrived in
// alive for as long as the request runs.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    /// An integer id, as Belay itself uses.
    Number(i64),
    /// A string id.
    String(Arc<str>),
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(string: &str) -> Self {
        Self::String(string.into())
    }
}

/// Formats an id as JSON, so that `7` and `"7"` differ in a log, too.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::String(string) => write!(f, "{string:?}"),
        }
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::String(string) => serializer.serialize_str(string),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an integer within 64 bits")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<RequestId, E> {
        Ok(RequestId::Number(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<RequestId, E> {
        i64::try_from(number)
            .map(RequestId::Number)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, string: &str) -> Result<RequestId, E> {
        Ok(RequestId::from(string))
    }
}
