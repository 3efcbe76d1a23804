//! Pagination and caching of lists.

use serde::{Deserialize, Deserializer, Serialize};

record! {
    /// Parameters of a list request.
    pub struct PaginatedParams {
        optional {
            /// The cursor at which the page begins; none for the first page.
            cursor: String = "cursor",
        }
    }
}

impl PaginatedParams {
    /// Asks for the page at this cursor.
    pub fn at(cursor: impl Into<String>) -> Self {
        Self {
            cursor: Some(cursor.into()),
            ..Self::new()
        }
    }
}

/// A duration in milliseconds. As the specification asks, a negative number is read as zero and a
/// fraction is rounded down.
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
    /// Who may share a cached result.
    pub enum CacheScope {
        /// Any client: the result is the same for all.
        Public = "public",
        /// Only the client that asked.
        Private = "private",
    }
}
