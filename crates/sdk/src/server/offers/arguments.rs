//! The arguments of a tool call, parsed once: the handler gets the value that was
//! validated against the tool's schema.

use belay_protocol::jsonrpc::RawJson;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The arguments of a tool call.
pub(in crate::server) struct Arguments {
    json: RawJson,
    /// The parsed value, if validation needed it.
    value: Option<Value>,
}

impl Arguments {
    pub(in crate::server) fn new(json: RawJson) -> Self {
        Self { json, value: None }
    }

    #[cfg(feature = "validate")]
    pub(in crate::server) fn json(&self) -> &RawJson {
        &self.json
    }

    /// The parsed arguments. A duplicate name in an object is an error, because parsers differ in
    /// which of the values they take.
    #[cfg(feature = "validate")]
    pub(in crate::server) fn value(&mut self) -> Result<&Value, String> {
        if self.value.is_none() {
            let unique = serde_json::from_slice(self.json.as_bytes());
            let unique: unique::Value = unique.map_err(|error| without_place(&error))?;
            self.value = Some(unique.0);
        }
        Ok(self.value.as_ref().unwrap_or(&Value::Null))
    }

    /// Decodes the arguments for the handler. The error names the argument.
    pub(in crate::server) fn decode<A: DeserializeOwned>(self) -> Result<A, String> {
        // A handler without arguments takes `()`, which is not decoded from an object.
        if self.json.is_empty_object()
            && let Ok(none) = A::deserialize(Value::Null)
        {
            return Ok(none);
        }
        let decoded = match self.value {
            Some(value) => serde_json::from_value(value),
            None => self.json.decode(),
        };
        // The text decides: a `Value` cannot hold integers of more than 64 bits.
        decoded.or_else(|_| decode_slowly(&self.json))
    }
}

/// Decodes again and tracks the path, to name the invalid argument.
fn decode_slowly<A: DeserializeOwned>(json: &RawJson) -> Result<A, String> {
    let mut json = serde_json::Deserializer::from_slice(json.as_bytes());
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let problem = without_place(error.inner());
        match error.path().to_string().as_str() {
            "." => format!("invalid arguments: {problem}"),
            path => format!("invalid argument `{path}`: {problem}"),
        }
    })
}

/// Removes the position in the text, which does not help a caller that has not seen the text.
fn without_place(error: &serde_json::Error) -> String {
    let problem = error.to_string();
    let problem = problem.split(" at line ").next();
    problem.unwrap_or_default().to_owned()
}

/// JSON values without duplicate names in objects.
#[cfg(feature = "validate")]
mod unique {
    use std::fmt;

    use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
    use serde_json::{Map, Number};

    pub(in crate::server) struct Value(pub(in crate::server) serde_json::Value);

    impl<'de> Deserialize<'de> for Value {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(ValueVisitor).map(Self)
        }
    }

    struct ValueVisitor;

    impl<'de> Visitor<'de> for ValueVisitor {
        type Value = serde_json::Value;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(serde_json::Value::Null)
        }

        fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
            Ok(value.into())
        }

        fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
            Ok(value.into())
        }

        fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
            Ok(value.into())
        }

        fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
            let number = Number::from_f64(value);
            Ok(number.map_or(serde_json::Value::Null, Into::into))
        }

        fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
            Ok(value.into())
        }

        fn visit_string<E>(self, value: String) -> Result<Self::Value, E> {
            Ok(value.into())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(Value(item)) = access.next_element()? {
                items.push(item);
            }
            Ok(items.into())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
            let mut members = Map::new();
            while let Some(key) = access.next_key::<String>()? {
                if members.contains_key(&key) {
                    return Err(de::Error::custom(format_args!("duplicate field `{key}`")));
                }
                let Value(value) = access.next_value()?;
                members.insert(key, value);
            }
            Ok(members.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &'static str) -> Arguments {
        Arguments::new(RawJson::parse(text).unwrap())
    }

    #[cfg(feature = "validate")]
    #[derive(serde::Deserialize)]
    struct Order {
        number: u128,
        tags: Vec<String>,
        raw: Box<serde_json::value::RawValue>,
    }

    #[cfg(feature = "validate")]
    #[test]
    fn a_handler_gets_what_was_checked() {
        let text =
            r#"{"number":340282366920938463463374607431768211455,"tags":["a"],"raw":{"b":1}}"#;
        let mut checked = arguments(text);
        assert!(checked.value().is_ok());
        let checked: Order = checked.decode().unwrap();
        let unchecked: Order = arguments(text).decode().unwrap();
        assert_eq!(checked.number, u128::MAX, "no value holds that");
        assert_eq!(checked.tags, unchecked.tags);
        assert_eq!(checked.raw.get(), unchecked.raw.get());
    }

    #[cfg(feature = "validate")]
    #[test]
    fn a_name_that_stands_there_twice_is_refused_however_deep() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"a":[{"b":1,"\u0062":2}]}"#] {
            let problem = arguments(text).value().unwrap_err();
            assert!(problem.contains("duplicate field"), "{problem}");
        }
    }

    #[test]
    fn a_handler_without_arguments_takes_nothing() {
        assert_eq!(arguments("{ }").decode(), Ok(()));
    }
}
