//! Typed arguments from strings: prompt arguments, and variables of URI templates.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::value::{MapDeserializer, StringDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, EnumAccess, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// Decodes named strings. The error names the one that is invalid.
pub(in crate::server) fn decode<'a, T: DeserializeOwned>(
    named: impl IntoIterator<Item = (&'a str, Cow<'a, str>)>,
) -> Result<T, String> {
    let pairs: Vec<(&str, Text<'a>)> = named
        .into_iter()
        .map(|(name, text)| (name, Text { name, text }))
        .collect();
    // A handler without arguments takes `()`, which is not decoded from a map.
    if pairs.is_empty()
        && let Ok(none) = T::deserialize(Value::Null)
    {
        return Ok(none);
    }
    let map = MapDeserializer::new(pairs.into_iter());
    T::deserialize(map).map_err(|Problem(problem)| problem)
}

/// A named string.
struct Text<'a> {
    name: &'a str,
    text: Cow<'a, str>,
}

impl Text<'_> {
    fn parse<T: FromStr>(&self, what: &str) -> Result<T, Problem> {
        self.text.parse().map_err(|_| {
            let Self { name, text } = self;
            Problem(format!("`{name}`: {text:?} is not {what}"))
        })
    }

    fn about(name: &str, problem: Problem) -> Problem {
        Problem(format!("`{name}`: {}", problem.0))
    }
}

impl<'de> IntoDeserializer<'de, Problem> for Text<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($method:ident => $visit:ident: $what:literal,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            let parsed = self.parse($what)?;
            visitor.$visit(parsed).map_err(|problem| Self::about(self.name, problem))
        })*
    };
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        let Self { name, text } = self;
        let visited = match text {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        };
        visited.map_err(|problem| Self::about(name, problem))
    }

    parsed! {
        deserialize_bool => visit_bool: "true or false",
        deserialize_i8 => visit_i8: "a whole number that fits",
        deserialize_i16 => visit_i16: "a whole number that fits",
        deserialize_i32 => visit_i32: "a whole number that fits",
        deserialize_i64 => visit_i64: "a whole number that fits",
        deserialize_i128 => visit_i128: "a whole number that fits",
        deserialize_u8 => visit_u8: "a whole number that fits",
        deserialize_u16 => visit_u16: "a whole number that fits",
        deserialize_u32 => visit_u32: "a whole number that fits",
        deserialize_u64 => visit_u64: "a whole number that fits",
        deserialize_u128 => visit_u128: "a whole number that fits",
        deserialize_f32 => visit_f32: "a number",
        deserialize_f64 => visit_f64: "a number",
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        let name = self.name;
        let visited = visitor.visit_enum(Variant(self.text.into_owned()));
        visited.map_err(|problem| Self::about(name, problem))
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

/// A string as the name of an enum variant.
struct Variant(String);

impl<'de> EnumAccess<'de> for Variant {
    type Error = Problem;
    type Variant = <StringDeserializer<Problem> as EnumAccess<'de>>::Variant;

    fn variant_seed<V: de::DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self::Variant), Problem> {
        let name: StringDeserializer<Problem> = self.0.into_deserializer();
        name.variant_seed(seed)
    }
}

/// Why a string is invalid.
#[derive(Debug)]
struct Problem(String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self(problem.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, PartialEq, Debug)]
    struct Arguments {
        name: String,
        age: u8,
        ratio: Option<f64>,
        size: Option<Size>,
        #[serde(default)]
        loud: bool,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        Small,
    }

    fn read(pairs: &[(&'static str, &'static str)]) -> Result<Arguments, String> {
        decode(
            pairs
                .iter()
                .map(|(name, text)| (*name, Cow::Borrowed(*text))),
        )
    }

    #[test]
    fn texts_become_what_is_wanted() {
        let all = [
            ("name", "Ada"),
            ("age", "36"),
            ("ratio", "0.5"),
            ("size", "small"),
            ("loud", "true"),
            ("else", "x"),
        ];
        let expected = Arguments {
            name: "Ada".into(),
            age: 36,
            ratio: Some(0.5),
            size: Some(Size::Small),
            loud: true,
        };
        assert_eq!(read(&all), Ok(expected));
        assert_eq!(decode::<()>([]), Ok(()));
    }

    #[test]
    fn problems_name_their_argument() {
        let problem = |pairs| read(pairs).unwrap_err();
        assert_eq!(problem(&[("age", "36")]), "missing field `name`");
        assert_eq!(
            problem(&[("name", "Ada"), ("age", "300")]),
            "`age`: \"300\" is not a whole number that fits"
        );
        assert_eq!(
            problem(&[("name", "Ada"), ("age", "36"), ("size", "huge")]),
            "`size`: unknown variant `huge`, expected `small`"
        );
    }
}
