//! Lists come in pages, and may be kept for a while.

use serde::{Deserialize, Deserializer, Serialize};

record! {
    /// Parameters of a list request.
    pub struct PaginatedParams {
        optional {
            /// Where the last page ended.
            cursor: String = "cursor",
        }
    }
}

impl PaginatedParams {
    /// The page that begins here.
    pub fn at(cursor: impl Into<String>) -> Self {
        Self {
            cursor: Some(cursor.into()),
            ..Self::new()
        }
    }
}

/// A span of milliseconds. What is negative or no whole number is read as the specification asks:
/// as none, or as the whole number below.
///
/// ```
/// use belay_protocol::types::Millis;
/// let read = |text: &str| serde_json::from_str::<Millis>(text).unwrap();
/// assert_eq!((read("5"), read("-5"), read("1.9")), (Millis(5), Millis(0), Millis(1)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let floor = || number.as_f64().map_or(0, |number| number as u64);
        Ok(Self(number.as_u64().unwrap_or_else(floor)))
    }
}

impl From<u64> for Millis {
    fn from(millis: u64) -> Self {
        Self(millis)
    }
}

words! {
    /// Who may share a result that is kept.
    pub enum CacheScope {
        /// Anybody: it is the same for all.
        Public = "public",
        /// Nobody: it belongs to whoever asked.
        Private = "private",
    }
}
