//! Whether a type rejects everything that its schema rejects. If so, arguments are decoded straight
//! into it, without validating a `Value` against the schema first.
//!
//! This is tested rather than assumed, and only for schemas that list members and
//! the plain type of each:
//!
//! 1. The type is deserialized from a recorder (`recorder.rs`), which sees what it asks for.
//!    It must be a struct with exactly these members, aliases included, each of which asks
//!    for a plain type: a JSON deserializer then accepts no other. A type that accepts
//!    anything (a lenient `deserialize_with`, `flatten`, a map, a `Value`) asks for any
//!    value, and is validated as before.
//! 2. It is given the values that only the type itself can reject: `null`, a missing or duplicate
//!    member, numbers with a fraction or beyond a bound. It must reject all of them.

mod recorder;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Whether `A` rejects everything that this schema rejects. False if that cannot be determined.
pub(in crate::server) fn refuses_all_that_its_schema_does<A: DeserializeOwned>(
    schema: &Map<String, Value>,
) -> bool {
    let refuses = |text: &str| serde_json::from_str::<A>(text).is_err();
    // `A`'s deserializer is user code, and may panic on these values.
    let told = catch_unwind(AssertUnwindSafe(|| {
        let members = Members::of(schema)?;
        Some(members.are(recorder::plain_fields::<A>()?) && members.refuses_all(refuses))
    }));
    told.ok().flatten().unwrap_or(false)
}

/// The members of an object schema, if the schema says nothing else.
struct Members<'a> {
    all: Vec<Member<'a>>,
    /// Additional members are not allowed.
    closed: bool,
}

struct Member<'a> {
    name: &'a str,
    types: Vec<&'a str>,
    bounds: Vec<i64>,
    required: bool,
}

/// Keywords that do not restrict values.
const ANNOTATIONS: [&str; 5] = ["$schema", "title", "description", "default", "examples"];

impl<'a> Members<'a> {
    fn of(schema: &'a Map<String, Value>) -> Option<Self> {
        let known = ["type", "properties", "required", "additionalProperties"];
        let says_more = |key: &String| !known.contains(&&**key) && !is_annotation(key);
        if schema.keys().any(says_more) || schema.get("type") != Some(&json!("object")) {
            return None;
        }
        let closed = match schema.get("additionalProperties") {
            None | Some(Value::Bool(true)) => false,
            Some(Value::Bool(false)) => true,
            Some(_) => return None,
        };
        let required: Vec<&str> = match schema.get("required") {
            None => Vec::new(),
            Some(required) => {
                let required = required.as_array()?.iter();
                required.map(Value::as_str).collect::<Option<_>>()?
            }
        };
        let properties = match schema.get("properties") {
            None => {
                return required.is_empty().then_some(Self {
                    all: Vec::new(),
                    closed,
                });
            }
            Some(properties) => properties.as_object()?,
        };
        if required.iter().any(|name| !properties.contains_key(*name)) {
            return None;
        }
        let all = properties.iter().map(|(name, schema)| {
            let required = required.contains(&&**name);
            Member::of(name, schema, required)
        });
        let all = all.collect::<Option<_>>()?;
        Some(Self { all, closed })
    }

    /// Whether these are the names of the members.
    fn are(&self, names: &[&str]) -> bool {
        self.all.len() == names.len() && self.all.iter().all(|member| names.contains(&member.name))
    }

    /// Whether every variation of a minimal object that the schema rejects is
    /// rejected by `refuses`.
    fn refuses_all(&self, refuses: impl Fn(&str) -> bool) -> bool {
        let mut least = Map::new();
        for member in self.all.iter().filter(|member| member.required) {
            least.insert(member.name.to_owned(), member.sample());
        }
        let with = |name: &str, value: &Value| {
            let mut object = least.clone();
            object.insert(name.to_owned(), value.clone());
            Value::Object(object).to_string()
        };
        // A type that rejects even the minimal object rejects everything, which proves nothing.
        if refuses(&Value::Object(least.clone()).to_string()) {
            return false;
        }
        let unknown = "a member that this schema does not have";
        if self.closed && !refuses(&with(unknown, &json!(1))) {
            return false;
        }
        self.all.iter().all(|member| {
            let mut without = least.clone();
            without.shift_remove(member.name);
            let is_needed = !member.required || refuses(&Value::Object(without).to_string());
            let takes = !refuses(&with(member.name, &member.sample()));
            // With duplicate names it is ambiguous which value counts.
            let is_unique = refuses(&with(member.name, &member.sample()).replacen(
                '{',
                &format!("{{{}:{},", json!(member.name), member.sample()),
                1,
            ));
            let is_kept = member
                .refused()
                .iter()
                .all(|value| refuses(&with(member.name, value)));
            is_needed && takes && is_unique && is_kept
        })
    }
}

impl<'a> Member<'a> {
    fn of(name: &'a str, schema: &'a Value, required: bool) -> Option<Self> {
        let schema = schema.as_object()?;
        let mut member = Self {
            name,
            types: Vec::new(),
            bounds: Vec::new(),
            required,
        };
        for (key, value) in schema {
            match &**key {
                "type" => {
                    member.types = match value {
                        Value::String(one) => vec![one],
                        Value::Array(several) => {
                            several.iter().map(Value::as_str).collect::<Option<_>>()?
                        }
                        _ => return None,
                    };
                }
                "minimum" => member.bounds.push(value.as_i64()?.checked_sub(1)?),
                "maximum" => member.bounds.push(value.as_i64()?.checked_add(1)?),
                // The width of an integer, which its bounds express as well.
                "format" if value.as_str().is_some_and(is_width) => {}
                _ if is_annotation(key) => {}
                _ => return None,
            }
        }
        let plain = ["string", "boolean", "integer", "number", "null"];
        let is_plain = |kind: &&str| plain.contains(kind);
        (!member.types.is_empty() && member.types.iter().all(is_plain)).then_some(member)
    }

    /// A valid value.
    fn sample(&self) -> Value {
        match self.types.first().copied() {
            Some("string") => json!(""),
            Some("boolean") => json!(true),
            Some("integer" | "number") => json!(self.bounds.first().map_or(0, |bound| bound + 1)),
            _ => Value::Null,
        }
    }

    /// Invalid values: of every other type, and just beyond each bound.
    fn refused(&self) -> Vec<Value> {
        let is = |kind: &str| self.types.contains(&kind);
        let kinds = [
            (is("null"), Value::Null),
            (is("boolean"), json!(false)),
            (is("integer") || is("number"), json!(7)),
            (is("number"), json!(1.5)),
            (is("string"), json!("7")),
            (is("string"), json!("")),
            (false, json!([])),
            (false, json!(["7"])),
            (false, json!({})),
        ];
        let others = kinds.into_iter().filter(|(fits, _)| !fits);
        let beyond = self.bounds.iter().map(|bound| json!(bound));
        others.map(|(_, value)| value).chain(beyond).collect()
    }
}

fn is_annotation(key: &str) -> bool {
    ANNOTATIONS.contains(&key)
}

fn is_width(format: &str) -> bool {
    let bits = format.trim_start_matches('u').strip_prefix("int");
    let is_float = matches!(format, "float" | "double");
    is_float || bits.is_some_and(|bits| bits.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use schemars::generate::Contract;
    use serde::Deserialize;

    use super::*;
    use crate::server::reply::schema_of;

    fn is_strict<A: DeserializeOwned + JsonSchema>() -> bool {
        refuses_all_that_its_schema_does::<A>(&schema_of::<A>(Contract::Deserialize))
    }

    #[test]
    fn plain_members_are_read_without_a_second_look() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Plain {
            text: String,
            small: u8,
            large: i64,
            share: f64,
            flag: bool,
            note: Option<String>,
            #[serde(default)]
            count: u32,
        }
        #[derive(Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "it is only read")]
        struct Closed {
            text: String,
        }
        assert!(is_strict::<Plain>());
        assert!(is_strict::<Closed>());
    }

    /// Whatever the schema says and the type does not is checked by the schema.
    #[test]
    fn a_type_that_takes_more_than_its_schema_is_not_trusted() {
        fn lenient<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
            Value::deserialize(from).map(|value| value.to_string())
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Lenient {
            #[serde(deserialize_with = "lenient")]
            text: String,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Bounded {
            #[schemars(range(min = 5))]
            count: u32,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Patterned {
            #[schemars(length(max = 3))]
            text: String,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Nested {
            inner: Inner,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Inner {
            text: String,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Renamed {
            #[serde(alias = "cmd")]
            command: String,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Open {
            text: String,
            #[serde(flatten)]
            rest: Map<String, Value>,
        }
        fn either<'de, D: serde::Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
            match Value::deserialize(from)? {
                Value::Bool(flag) => Ok(flag),
                Value::String(text) if text == "true" => Ok(true),
                _ => Err(serde::de::Error::custom("neither yes nor no")),
            }
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Almost {
            #[serde(deserialize_with = "either")]
            flag: bool,
        }
        assert!(!is_strict::<Renamed>(), "it takes another name");
        assert!(
            !is_strict::<Open>(),
            "it keeps what its schema does not bound"
        );
        assert!(!is_strict::<Almost>(), "it takes a text that nobody tried");
        assert!(!is_strict::<Map<String, Value>>());
        assert!(!is_strict::<Lenient>());
        assert!(!is_strict::<Bounded>());
        assert!(!is_strict::<Patterned>());
        assert!(!is_strict::<Nested>(), "a list would do for a struct");
        assert!(!is_strict::<std::collections::HashMap<String, String>>());
    }

    /// The schema that counts is the one that is offered.
    #[test]
    fn a_schema_of_ones_own_is_held_against_the_type() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "it is only read")]
        struct Two {
            text: String,
            more: Option<i64>,
        }
        let strict = |schema: Value| {
            refuses_all_that_its_schema_does::<Two>(schema.as_object().expect("an object"))
        };
        let properties =
            json!({ "text": { "type": "string" }, "more": { "type": ["integer", "null"] } });
        assert!(strict(
            json!({ "type": "object", "properties": properties, "required": ["text"] })
        ));
        // The type can do without it.
        let all = ["text", "more"];
        assert!(!strict(
            json!({ "type": "object", "properties": properties, "required": all })
        ));
        // The type takes others.
        assert!(!strict(json!({
            "type": "object", "properties": properties, "required": ["text"],
            "additionalProperties": false,
        })));
        // The type takes null.
        let narrow = json!({ "text": { "type": "string" }, "more": { "type": "integer" } });
        assert!(!strict(
            json!({ "type": "object", "properties": narrow, "required": ["text"] })
        ));
        assert!(!strict(json!({
            "type": "object", "properties": properties, "required": ["text"], "minProperties": 2,
        })));
    }
}
