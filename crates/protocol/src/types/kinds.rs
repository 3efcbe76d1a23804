//! Enums of records that are told apart by their `type`.
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
//! An unknown `type` is kept as it came.

use serde::de::{Deserialize, Error};
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::record::Record;

/// Decodes a record from a map, without its `type`.
pub(crate) fn of_kind<T: for<'a> Deserialize<'a>, E: Error>(
    mut map: Map<String, Value>,
) -> Result<T, E> {
    map.shift_remove("type");
    T::deserialize(Value::Object(map)).map_err(E::custom)
}

/// Encodes `content` with a `type` in front of its fields.
pub(crate) fn tagged<S: Serializer>(
    serializer: S,
    kind: &str,
    content: &impl Record,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("type", kind)?;
    content.write(&mut map)?;
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
                struct KindVisitor;

                impl<'de> serde::de::Visitor<'de> for KindVisitor {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    /// Mostly `type` comes first, and then the other members are read without
                    /// buffering.
                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut access: A,
                    ) -> Result<$name, A::Error> {
                        use serde::de::Error as _;
                        use $crate::types::record::{Key, Record, rest};
                        let untyped = || A::Error::custom("`type`: missing, or not a string");
                        let Key(first) = access.next_key()?.ok_or_else(untyped)?;
                        if first == "type" {
                            let Key(kind) = access.next_value().map_err(|_| untyped())?;
                            return match &*kind {
                                $($kind => Record::read(access, Some("type")).map($name::$variant),)*
                                _ => {
                                    let first = (first, serde_json::Value::from(&*kind));
                                    rest(access, first).map($name::Other)
                                }
                            };
                        }
                        let value = access.next_value()?;
                        let map = rest(access, (first, value))?;
                        match map.get("type").and_then(serde_json::Value::as_str) {
                            $(Some($kind) => {
                                $crate::types::kinds::of_kind(map).map($name::$variant)
                            })*
                            Some(_) => Ok($name::Other(map)),
                            None => Err(untyped()),
                        }
                    }
                }

                deserializer.deserialize_map(KindVisitor)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Self::$variant(content) => {
                        $crate::types::kinds::tagged(serializer, $kind, content)
                    })*
                    Self::Other(map) => serde::Serialize::serialize(map, serializer),
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
