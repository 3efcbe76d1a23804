//! Structs that keep unknown fields, and whose decoding errors name the invalid field.
//!
//! serde's derive cannot do both: `flatten` keeps unknown fields, but an error in a nested value
//! then says "invalid type" without saying where. `record!` writes the two impls by hand:
//!
//! ```text
//! record! {
//!     /// A thing.
//!     pub struct Thing {
//!         required {                        // must be there
//!             /// What it is called.
//!             name: String = "name",
//!         }
//!         optional {                        // the field's type is Option<u64>
//!             /// How large it is.
//!             size: u64 = "size",
//!         }
//!         default {                         // always written; its absence is forgiven
//!             /// What it is about.
//!             tags: Vec<String> = "tags",
//!         }
//!         anything {                        // any JSON value, `null` included
//!             /// What it carries.
//!             payload = "payload",
//!         }
//!     }
//! }
//! ```
//!
//! Every record also has `meta` and `extra`. It implements `Default` only where that is written by
//! hand. It is built with `Thing::new(required…)`, and with a setter for each other field:
//! `.size(7_u64)`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de;
use serde::ser::SerializeMap;
use serde_json::{Map, Value};

/// The trait that `record!` implements.
pub(crate) trait Record: Sized {
    /// Writes its members.
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;

    /// Reads its members. `tag` was read before and must not appear again.
    fn read<'de, A: de::MapAccess<'de>>(
        access: A,
        tag: Option<&'static str>,
    ) -> Result<Self, A::Error>;
}

/// Visits an object that is a record as a whole.
pub(crate) struct Whole<T>(PhantomData<T>);

impl<T> Whole<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Record> de::Visitor<'de> for Whole<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, access: A) -> Result<T, A::Error> {
        T::read(access, None)
    }
}

/// A string that is borrowed where possible.
pub(crate) struct Key<'de>(pub(crate) Cow<'de, str>);

impl<'de> de::Deserialize<'de> for Key<'de> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> de::Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text)))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Keeps an unknown member.
pub(crate) fn unknown<'de, A: de::MapAccess<'de>>(
    access: &mut A,
    key: Cow<'de, str>,
    tag: Option<&'static str>,
    extra: &mut Map<String, Value>,
) -> Result<(), A::Error> {
    match tag {
        Some(tag) if tag == key => Err(de::Error::duplicate_field(tag)),
        _ => insert_unique(extra, key.into_owned(), access.next_value()?),
    }
}

pub(crate) fn insert_unique<E: de::Error>(
    map: &mut Map<String, Value>,
    key: String,
    value: Value,
) -> Result<(), E> {
    match map.contains_key(&key) {
        true => Err(E::custom(format_args!("duplicate field `{key}`"))),
        false => {
            map.insert(key, value);
            Ok(())
        }
    }
}

/// All members of an object whose first member was read before.
pub(crate) fn rest<'de, A: de::MapAccess<'de>>(
    mut access: A,
    (key, value): (Cow<'de, str>, Value),
) -> Result<Map<String, Value>, A::Error> {
    let mut map = Map::new();
    map.insert(key.into_owned(), value);
    while let Some(key) = access.next_key::<String>()? {
        insert_unique(&mut map, key, access.next_value()?)?;
    }
    Ok(map)
}

/// Reads the value of a field. A duplicate is an error, and errors name the field.
pub(crate) fn field<'de, A, T>(
    access: &mut A,
    name: &'static str,
    slot: &mut Option<T>,
) -> Result<(), A::Error>
where
    A: de::MapAccess<'de>,
    T: de::Deserialize<'de>,
{
    if slot.is_some() {
        return Err(de::Error::duplicate_field(name));
    }
    let value = access
        .next_value()
        .map_err(|error| de::Error::custom(format_args!("`{name}`: {error}")))?;
    *slot = Some(value);
    Ok(())
}

macro_rules! record {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident {
            $(required {
                $(
                    $(#[$required_doc:meta])*
                    $required:ident: $required_type:ty = $required_key:literal,
                )*
            })?
            $(optional {
                $(
                    $(#[$optional_doc:meta])*
                    $optional:ident: $optional_type:ty = $optional_key:literal,
                )*
            })?
            $(default {
                $(
                    $(#[$default_doc:meta])*
                    $default:ident: $default_type:ty = $default_key:literal,
                )*
            })?
            $(anything {
                $(
                    $(#[$anything_doc:meta])*
                    $anything:ident = $anything_key:literal,
                )*
            })?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Debug)]
        #[non_exhaustive]
        pub struct $name {
            $($($(#[$required_doc])* pub $required: $required_type,)*)?
            $($($(#[$optional_doc])* pub $optional: Option<$optional_type>,)*)?
            $($($(#[$default_doc])* pub $default: $default_type,)*)?
            $($($(#[$anything_doc])* pub $anything: Option<serde_json::Value>,)*)?
            /// The `_meta` of the message.
            pub meta: Option<$crate::types::Meta>,
            /// Fields that this version of Belay does not know.
            pub extra: $crate::types::Extra,
        }

        impl $name {
            /// Creates a record with the required fields only.
            #[allow(clippy::new_without_default, reason = "a `Default` is said, not implied")]
            pub fn new($($($required: impl Into<$required_type>),*)?) -> Self {
                Self {
                    $($($required: $required.into(),)*)?
                    $($($optional: None,)*)?
                    $($($default: Default::default(),)*)?
                    $($($anything: None,)*)?
                    meta: None,
                    extra: Default::default(),
                }
            }

            $($(
                $(#[$optional_doc])*
                pub fn $optional(mut self, $optional: impl Into<$optional_type>) -> Self {
                    self.$optional = Some($optional.into());
                    self
                }
            )*)?
            $($(
                $(#[$default_doc])*
                pub fn $default(mut self, $default: impl Into<$default_type>) -> Self {
                    self.$default = $default.into();
                    self
                }
            )*)?
            $($(
                $(#[$anything_doc])*
                pub fn $anything(mut self, $anything: impl Into<serde_json::Value>) -> Self {
                    self.$anything = Some($anything.into());
                    self
                }
            )*)?
        }

        impl $crate::types::record::Record for $name {
            fn write<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $($(map.serialize_entry($required_key, &self.$required)?;)*)?
                $($(if let Some(value) = &self.$optional {
                    map.serialize_entry($optional_key, value)?;
                })*)?
                $($(map.serialize_entry($default_key, &self.$default)?;)*)?
                $($(if let Some(value) = &self.$anything {
                    map.serialize_entry($anything_key, value)?;
                })*)?
                if let Some(meta) = &self.meta {
                    map.serialize_entry("_meta", meta)?;
                }
                for (key, value) in &self.extra {
                    map.serialize_entry(key, value)?;
                }
                Ok(())
            }

            fn read<'de, A: serde::de::MapAccess<'de>>(
                mut access: A,
                tag: Option<&'static str>,
            ) -> Result<Self, A::Error> {
                use $crate::types::record::{Key, field, unknown};
                $($(let mut $required: Option<$required_type> = None;)*)?
                $($(let mut $optional: Option<Option<$optional_type>> = None;)*)?
                $($(let mut $default: Option<$default_type> = None;)*)?
                $($(let mut $anything: Option<serde_json::Value> = None;)*)?
                let mut meta: Option<Option<$crate::types::Meta>> = None;
                let mut extra = $crate::types::Extra::new();
                while let Some(Key(key)) = access.next_key()? {
                    match &*key {
                        $($($required_key => {
                            field(&mut access, $required_key, &mut $required)?;
                        })*)?
                        $($($optional_key => {
                            field(&mut access, $optional_key, &mut $optional)?;
                        })*)?
                        $($($default_key => {
                            field(&mut access, $default_key, &mut $default)?;
                        })*)?
                        $($($anything_key => {
                            field(&mut access, $anything_key, &mut $anything)?;
                        })*)?
                        "_meta" => field(&mut access, "_meta", &mut meta)?,
                        _ => unknown(&mut access, key, tag, &mut extra)?,
                    }
                }
                Ok(Self {
                    $($($required: $required.ok_or_else(|| {
                        <A::Error as serde::de::Error>::missing_field($required_key)
                    })?,)*)?
                    $($($optional: $optional.flatten(),)*)?
                    $($($default: $default.unwrap_or_default(),)*)?
                    $($($anything,)*)?
                    meta: meta.flatten(),
                    extra,
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $crate::types::record::Record::write(self, &mut map)?;
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map($crate::types::record::Whole::new())
            }
        }
    };
}
