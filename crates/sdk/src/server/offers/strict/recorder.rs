//! Records what a type asks for when it is deserialized, and gives it sample values.

use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The names of a struct's members, aliases included, if each of them asks for a plain type.
pub(super) fn plain_fields<A: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut fields = None;
    A::deserialize(Recorder {
        fields: &mut fields,
    })
    .ok()?;
    fields
}

/// The type asked for something else, or rejected a sample.
#[derive(Debug)]
struct NotPlain;

impl fmt::Display for NotPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not plain")
    }
}

impl std::error::Error for NotPlain {}

impl de::Error for NotPlain {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// The deserializer of the struct.
struct Recorder<'a> {
    fields: &'a mut Option<&'static [&'static str]>,
}

impl<'de> Deserializer<'de> for Recorder<'_> {
    type Error = NotPlain;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotPlain> {
        *self.fields = Some(fields);
        visitor.visit_map(Members { left: fields })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NotPlain> {
        Err(NotPlain)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// All members, in order.
struct Members {
    left: &'static [&'static str],
}

impl<'de> MapAccess<'de> for Members {
    type Error = NotPlain;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, NotPlain> {
        let Some((name, left)) = self.left.split_first() else {
            return Ok(None);
        };
        self.left = left;
        seed.deserialize(BorrowedStrDeserializer::new(name))
            .map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, NotPlain> {
        seed.deserialize(Sample)
    }
}

/// A sample value of any plain type that is asked for.
struct Sample;

macro_rules! samples {
    ($($asked:ident $visited:ident $sample:expr;)*) => {
        $(fn $asked<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotPlain> {
            visitor.$visited($sample)
        })*
    };
}

impl<'de> Deserializer<'de> for Sample {
    type Error = NotPlain;

    samples! {
        deserialize_bool visit_bool true;
        deserialize_i8 visit_i64 0;
        deserialize_i16 visit_i64 0;
        deserialize_i32 visit_i64 0;
        deserialize_i64 visit_i64 0;
        deserialize_u8 visit_u64 0;
        deserialize_u16 visit_u64 0;
        deserialize_u32 visit_u64 0;
        deserialize_u64 visit_u64 0;
        deserialize_f32 visit_f64 0.0;
        deserialize_f64 visit_f64 0.0;
        deserialize_str visit_str "";
        deserialize_string visit_str "";
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotPlain> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, NotPlain> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NotPlain> {
        Err(NotPlain)
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct seq tuple tuple_struct map struct enum
        identifier ignored_any
    }
}
