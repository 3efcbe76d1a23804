//! Records that say by their `type` which of several they are.
//!
//! ```text
//! kinds! {
//!     /// A shape.
//!     pub enum Shape {
//!         /// Round.
//!         Circle(Circle) = "circle",
//!     }
//! }
//! ```
//!
//! One of a kind that we do not know is kept as it came.

use serde::de::{Deserialize, Error};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

/// The record behind its `type`.
pub(crate) fn of_kind<T: for<'a> Deserialize<'a>, E: Error>(
    mut map: Map<String, Value>,
) -> Result<T, E> {
    map.shift_remove("type");
    T::deserialize(Value::Object(map)).map_err(E::custom)
}

/// The fields of `content` after a `type`.
pub(crate) fn tagged<S: Serializer>(
    serializer: S,
    kind: &str,
    content: &impl Serialize,
) -> Result<S::Ok, S::Error> {
    let Value::Object(fields) = serde_json::to_value(content).map_err(serde::ser::Error::custom)?
    else {
        return Err(serde::ser::Error::custom("content must be an object"));
    };
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("type", kind)?;
    for (key, value) in &fields {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

macro_rules! kinds {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident($record:ty) = $kind:literal,
            )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant($record),)*
            /// A kind that this version of Belay does not know, kept as it came.
            Other(serde_json::Map<String, serde_json::Value>),
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error as _;
                let map = deserializer.deserialize_map($crate::types::meta::UniqueKeys)?;
                match map.get("type").and_then(serde_json::Value::as_str) {
                    $(Some($kind) => $crate::types::kinds::of_kind(map).map(Self::$variant),)*
                    Some(_) => Ok(Self::Other(map)),
                    None => Err(D::Error::custom("`type`: missing, or not a string")),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(content) => {
                        $crate::types::kinds::tagged(serializer, $kind, content)
                    })*
                    Self::Other(map) => map.serialize(serializer),
                }
            }
        }

        $(impl From<$record> for $name {
            fn from(record: $record) -> Self {
                Self::$variant(record)
            }
        })*
    };
}
