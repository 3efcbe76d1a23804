//! JSON Schema, within bounds: nothing is fetched, and nothing takes longer than it may.
//!
//! Schemas come from others, and some of them are bombs: they loop, or take a time that grows
//! exponentially with the depth of what they are held against. So before a value is held against a
//! schema, the work is counted, each pair of a place in the schema and a place in the value once:
//!
//! ```text
//!   compile ── too large, too deep, `$ref` to elsewhere, a dialect nobody knows ──► BadSchema
//!      │
//!   check ──── the work is counted ── loops, or more than it may be ──► Unfit
//!      │
//!      └────── held against the schema ──────────────────────────────► fits, or Unfit
//! ```

use std::collections::{HashMap, HashSet};
use std::fmt;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value};

use crate::percent::decoded;

/// A schema may be nested so deep.
const DEPTH: usize = 64;
/// And have so many parts.
const PARTS: usize = 20_000;
/// So many parts of a schema are held against parts of a value.
const WORK: u64 = 2_000_000;
/// So many characters of what is wrong are told.
const TOLD: usize = 300;
/// What cannot be bounded by counting is not understood.
const NOT_UNDERSTOOD: [&str; 5] = [
    "unevaluatedProperties",
    "unevaluatedItems",
    "dependencies",
    "$recursiveRef",
    "$dynamicRef",
];

/// A JSON Schema (2020-12 unless it says otherwise; draft 4, 6, 7 and 2019-09 are understood, too).
///
/// What cannot be bounded beforehand is not understood, and makes a schema one that cannot be used:
/// `unevaluatedProperties`, `unevaluatedItems`, `dependencies`, `$dynamicRef`, `$recursiveRef`, parts with
/// an id of their own, and references to elsewhere. Formats are not checked.
///
/// ```
/// use belay::Schema;
/// use serde_json::json;
///
/// let schema = Schema::compile(&json!({
///     "type": "object",
///     "properties": { "age": { "type": "integer", "minimum": 18 } }
/// }))
/// .unwrap();
/// assert!(schema.check(&json!({ "age": 36 })).is_ok());
/// let unfit = schema.check(&json!({ "age": 7 })).unwrap_err();
/// assert_eq!(unfit.to_string(), "`age`: 7 is less than the minimum of 18");
/// ```
pub struct Schema {
    validator: Validator,
    schema: Value,
    /// Named places in it.
    anchors: HashMap<String, Vec<Step>>,
}

/// A step from a part of a schema to one within it.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

/// Why a schema cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadSchema(String);

impl fmt::Display for BadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the schema cannot be used: {}", self.0)
    }
}

impl std::error::Error for BadSchema {}

/// Why a value does not fit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unfit(String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unfit {}

impl Schema {
    /// Reads a schema. Nothing is fetched: a `$ref` to elsewhere makes it one that cannot be used.
    pub fn compile(schema: &Value) -> Result<Self, BadSchema> {
        let mut anchors = HashMap::new();
        let mut parts = 0;
        look(schema, &mut Vec::new(), &mut anchors, &mut parts)?;
        let draft = draft(schema)?;
        let patterns = PatternOptions::regex()
            .size_limit(1 << 20)
            .dfa_size_limit(1 << 20);
        let validator = jsonschema::options()
            .with_draft(draft)
            .with_pattern_options(patterns)
            .should_validate_formats(false)
            .build(schema)
            .map_err(|error| BadSchema(error.to_string()))?;
        Ok(Self {
            validator,
            schema: schema.clone(),
            anchors,
        })
    }

    /// Holds a value against it.
    pub fn check(&self, value: &Value) -> Result<(), Unfit> {
        let mut count = Count {
            schema: self,
            known: HashMap::new(),
            open: HashSet::new(),
            looks: 0,
        };
        count.work(&self.schema, value, 0).map_err(Unfit)?;
        self.validator.validate(value).map_err(|error| {
            let path = error.instance_path().to_string();
            let path = path.trim_start_matches('/').replace('/', ".");
            let problem = match path.as_str() {
                "" => error.to_string(),
                path => format!("`{path}`: {error}"),
            };
            // It may repeat all of the value.
            Unfit(match problem.char_indices().nth(TOLD) {
                Some((at, _)) => format!("{}…", &problem[..at]),
                None => problem,
            })
        })
    }

    /// The part that a reference names, if it is one of this schema.
    fn named(&self, reference: &str) -> Option<&Value> {
        let fragment = reference.strip_prefix('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            let pointer = decoded(fragment)?;
            return self.schema.pointer(&pointer);
        }
        let mut part = &self.schema;
        for step in self.anchors.get(fragment)? {
            part = match step {
                Step::Key(key) => part.get(key)?,
                Step::Index(index) => part.get(index)?,
            };
        }
        Some(part)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.schema).finish()
    }
}

/// Which dialect it is in.
fn draft(schema: &Value) -> Result<Draft, BadSchema> {
    let Some(named) = schema.get("$schema") else {
        return Ok(Draft::Draft202012);
    };
    let named = named.as_str().unwrap_or_default();
    let plain = named.trim_end_matches('#');
    let plain = plain.split_once("://").map_or(plain, |(_, rest)| rest);
    match plain {
        "json-schema.org/draft/2020-12/schema" => Ok(Draft::Draft202012),
        "json-schema.org/draft/2019-09/schema" => Ok(Draft::Draft201909),
        "json-schema.org/draft-07/schema" => Ok(Draft::Draft7),
        "json-schema.org/draft-06/schema" => Ok(Draft::Draft6),
        "json-schema.org/draft-04/schema" => Ok(Draft::Draft4),
        _ => Err(BadSchema(format!(
            "the dialect {named:?} is not understood"
        ))),
    }
}

/// Looks at every part: how many there are, how deep, and where references lead.
fn look(
    part: &Value,
    path: &mut Vec<Step>,
    anchors: &mut HashMap<String, Vec<Step>>,
    parts: &mut usize,
) -> Result<(), BadSchema> {
    *parts += 1;
    if *parts > PARTS {
        return Err(BadSchema(format!("it has more than {PARTS} parts")));
    }
    if path.len() > DEPTH {
        return Err(BadSchema(format!("it is nested deeper than {DEPTH}")));
    }
    match part {
        Value::Object(members) => {
            if let Some(problem) = foreign_reference(members) {
                return Err(BadSchema(problem));
            }
            let has_id = |key: &str| members.get(key).is_some_and(Value::is_string);
            if !path.is_empty() && (has_id("$id") || has_id("id")) {
                let problem = "a part of it has an `$id` of its own";
                return Err(BadSchema(problem.into()));
            }
            // A field may be called anything.
            let names = matches!(path.last(), Some(Step::Key(key)) if key == "properties");
            let unknown = NOT_UNDERSTOOD
                .into_iter()
                .find(|key| members.contains_key(*key));
            if let Some(keyword) = unknown.filter(|_| !names) {
                return Err(BadSchema(format!("`{keyword}` is not understood")));
            }
            for keyword in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = members.get(keyword).and_then(Value::as_str)
                    && anchors.insert(name.to_owned(), path.clone()).is_some()
                {
                    let problem = format!("the anchor {name:?} stands in it twice");
                    return Err(BadSchema(problem));
                }
            }
            for (key, value) in members {
                path.push(Step::Key(key.clone()));
                look(value, path, anchors, parts)?;
                path.pop();
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                path.push(Step::Index(index));
                look(value, path, anchors, parts)?;
                path.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

/// Only what is in the schema itself is referred to.
fn foreign_reference(members: &Map<String, Value>) -> Option<String> {
    for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
        if let Some(reference) = members.get(keyword).and_then(Value::as_str)
            && !reference.starts_with('#')
        {
            return Some(format!(
                "`{keyword}` {reference:?} leads elsewhere, and nothing is fetched"
            ));
        }
    }
    None
}

/// Counts the work of holding a value against a schema, at most: as if no branch were ever cut short.
struct Count<'a> {
    schema: &'a Schema,
    known: HashMap<(usize, usize), u64>,
    open: HashSet<(usize, usize)>,
    /// The pairs that were looked at.
    looks: u64,
}

/// Stands for any name of a member.
static NAME: Value = Value::String(String::new());

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'a> Count<'a> {
    fn work(&mut self, part: &'a Value, value: &Value, depth: usize) -> Result<u64, String> {
        let Value::Object(members) = part else {
            return Ok(1);
        };
        let pair = (address(part), address(value));
        if let Some(known) = self.known.get(&pair) {
            return Ok(*known);
        }
        if depth > 4 * DEPTH || !self.open.insert(pair) {
            return Err("the schema refers to itself without an end".into());
        }
        self.looks += 1;
        if self.looks > WORK {
            return Err("the schema takes too much work to check this".into());
        }
        let mut total = 1;
        for (keyword, inside) in members {
            let work = self.keyword(keyword, inside, value, depth + 1)?;
            total = work.saturating_add(total);
            if total > WORK {
                return Err("the schema takes too much work to check this".into());
            }
        }
        self.open.remove(&pair);
        self.known.insert(pair, total);
        Ok(total)
    }

    fn keyword(
        &mut self,
        keyword: &str,
        inside: &'a Value,
        value: &Value,
        depth: usize,
    ) -> Result<u64, String> {
        match (keyword, inside, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                match self.schema.named(reference) {
                    Some(named) => self.work(named, value, depth),
                    None => Err(format!(
                        "the schema refers to {reference:?}, which is not there"
                    )),
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts), _) => {
                self.sum(parts.iter().map(|part| (part, value)), depth)
            }
            ("not" | "if" | "then" | "else", part, _) => self.work(part, value, depth),
            ("dependentSchemas", Value::Object(parts), _) => {
                self.sum(parts.values().map(|part| (part, value)), depth)
            }
            ("properties", Value::Object(parts), Value::Object(members)) => {
                let both = parts
                    .iter()
                    .filter_map(|(name, part)| Some((part, members.get(name)?)));
                self.sum(both, depth)
            }
            ("patternProperties", Value::Object(parts), Value::Object(members)) => {
                let all = parts.values();
                let both = all.flat_map(|part| members.values().map(move |value| (part, value)));
                self.sum(both, depth)
            }
            ("additionalProperties", part, Value::Object(members)) => {
                self.sum(members.values().map(|value| (part, value)), depth)
            }
            // Each name is a text of its own: the work for one is the work for all.
            ("propertyNames", part, Value::Object(members)) => {
                let one = self.work(part, &NAME, depth)?;
                let length: usize = members.keys().map(String::len).sum();
                let all = one.saturating_mul((members.len() + length / 16) as u64);
                match all > WORK {
                    true => Err("the schema takes too much work to check this".into()),
                    false => Ok(all),
                }
            }
            ("prefixItems", Value::Array(parts), Value::Array(values))
            | ("items", Value::Array(parts), Value::Array(values)) => {
                self.sum(parts.iter().zip(values), depth)
            }
            ("items" | "contains" | "additionalItems", part, Value::Array(values)) => {
                self.sum(values.iter().map(|value| (part, value)), depth)
            }
            ("uniqueItems", _, Value::Array(values)) => Ok(values.len() as u64 * 16),
            ("enum", Value::Array(options), _) => Ok(options.len() as u64),
            ("pattern", Value::String(pattern), Value::String(text)) => {
                Ok(text.len() as u64 * (pattern.len() as u64 / 64 + 1) / 16 + 1)
            }
            ("minLength" | "maxLength", _, Value::String(text)) => Ok(text.len() as u64 / 64),
            _ => Ok(0),
        }
    }

    fn sum<'v>(
        &mut self,
        pairs: impl Iterator<Item = (&'a Value, &'v Value)>,
        depth: usize,
    ) -> Result<u64, String> {
        let mut total: u64 = 0;
        for (part, value) in pairs {
            total = total.saturating_add(self.work(part, value, depth)?);
            if total > WORK {
                return Err("the schema takes too much work to check this".into());
            }
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: Value, value: Value) -> Result<(), String> {
        let schema = Schema::compile(&schema).map_err(|error| error.to_string())?;
        schema.check(&value).map_err(|unfit| unfit.to_string())
    }

    #[test]
    fn values_are_held_against_schemas_of_all_dialects() {
        let person = json!({
            "$defs": { "name": { "$anchor": "n", "type": "string", "minLength": 1 } },
            "type": "object",
            "properties": { "name": { "$ref": "#/$defs/name" }, "nick": { "$ref": "#n" } },
            "required": ["name"],
            "additionalProperties": false
        });
        assert_eq!(check(person.clone(), json!({ "name": "Ada" })), Ok(()));
        for (value, problem) in [
            (json!({ "name": "" }), "`name`: "),
            (
                json!({ "name": "a", "nick": 7 }),
                "`nick`: 7 is not of type \"string\"",
            ),
            (json!({ "name": "a", "x": 1 }), "'x' was unexpected"),
            (json!({ "name": vec!["long"; 1000] }), "…"),
        ] {
            let unfit = check(person.clone(), value).unwrap_err();
            assert!(unfit.contains(problem) && unfit.len() < 1000, "{unfit}");
        }
        for dialect in [
            "draft-04",
            "draft-06",
            "draft-07",
            "draft/2019-09",
            "draft/2020-12",
        ] {
            let dialect = format!("http://json-schema.org/{dialect}/schema#");
            let schema = json!({ "$schema": dialect, "type": "integer" });
            assert_eq!(check(schema.clone(), json!(7)), Ok(()), "{dialect}");
            assert!(check(schema, json!("7")).is_err());
        }
        let unknown = json!({ "$schema": "https://example.com/my-own" });
        assert!(
            check(unknown, json!(7))
                .unwrap_err()
                .contains("is not understood")
        );
    }

    #[test]
    fn nothing_is_fetched() {
        for reference in [
            "https://example.com/schema.json",
            "http://127.0.0.1:1/x",
            "file:///etc/passwd",
            "other.json",
            "//example.com/x",
        ] {
            let schema = json!({ "properties": { "a": { "$ref": reference } } });
            let problem = check(schema, json!({ "a": 1 })).unwrap_err();
            assert!(problem.contains("nothing is fetched"), "{problem}");
        }
    }

    /// What `#` means there would be another schema than the one whose work is counted.
    #[test]
    fn parts_with_an_id_of_their_own_are_refused() {
        let schema = json!({ "properties": { "a": { "$id": "https://example.com/a" } } });
        assert!(check(schema, json!({})).unwrap_err().contains("of its own"));
        assert_eq!(
            check(json!({ "$id": "https://example.com/a" }), json!({})),
            Ok(())
        );
    }

    #[test]
    fn deep_and_large_schemas_are_refused() {
        let mut deep = json!({ "type": "string" });
        for _ in 0..100 {
            deep = json!({ "not": deep });
        }
        assert!(check(deep, json!(1)).unwrap_err().contains("nested deeper"));
        let large: Vec<Value> = (0..PARTS)
            .map(|number| json!({ "const": number }))
            .collect();
        let problem = check(json!({ "anyOf": large }), json!(1)).unwrap_err();
        assert!(problem.contains("parts"), "{problem}");
    }

    #[test]
    fn schemas_that_loop_are_refused() {
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }),
            json!({ "anyOf": [{ "type": "string" }, { "$ref": "#" }] }),
        ] {
            let problem = check(schema.clone(), json!(1)).unwrap_err();
            assert!(!problem.is_empty(), "{schema}");
        }
        // One that goes deeper into the value each time comes to an end.
        let tree = json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } } });
        let mut value = json!({});
        for _ in 0..40 {
            value = json!({ "left": {}, "right": value });
        }
        assert_eq!(check(tree, value), Ok(()));
    }

    /// Each level doubles the work, and there are many levels.
    #[test]
    fn exponential_work_is_refused_before_it_is_done() {
        let mut definitions = Map::new();
        for number in 0..60 {
            let next = format!("#/$defs/d{}", number + 1);
            let both = json!({ "anyOf": [{ "$ref": next }, { "$ref": next, "minimum": 0 }] });
            definitions.insert(format!("d{number}"), both);
        }
        definitions.insert("d60".into(), json!({ "type": "string" }));
        let wide = json!({ "$defs": definitions, "$ref": "#/$defs/d0" });
        let problem = check(wide, json!(1)).unwrap_err();
        assert!(problem.contains("too much work"), "{problem}");

        let branch = json!({ "properties": { "a": { "$ref": "#" } } });
        let deep = json!({ "anyOf": [branch, branch, { "type": "string" }] });
        let mut value = json!(1);
        for _ in 0..50 {
            value = json!({ "a": value });
        }
        let problem = check(deep, value).unwrap_err();
        assert!(problem.contains("too much work"), "{problem}");
    }

    /// Work that hides where it is not looked for.
    #[test]
    fn bombs_behind_other_keywords_are_refused() {
        let mut definitions = Map::new();
        for number in 0..40 {
            let next = format!("#/$defs/d{}", number + 1);
            let both = json!({ "anyOf": [{ "$ref": next }, { "$ref": next, "maxLength": 0 }] });
            definitions.insert(format!("d{number}"), both);
        }
        definitions.insert("d40".into(), json!({ "type": "integer" }));
        let bomb = json!({ "$ref": "#/$defs/d0" });
        for (keyword, inside) in [
            ("propertyNames", bomb.clone()),
            ("unevaluatedProperties", bomb.clone()),
            ("dependencies", json!({ "a": bomb })),
            ("dependentSchemas", json!({ "a": bomb })),
            ("additionalProperties", bomb.clone()),
            ("patternProperties", json!({ "a": bomb })),
        ] {
            let schema = json!({ "$defs": definitions, keyword: inside });
            assert!(check(schema, json!({ "a": 1 })).is_err(), "{keyword}");
        }
        let sham = json!({
            "$ref": "#x",
            "$defs": { "b": { "$anchor": "x", "type": "string" } },
            "examples": [{ "$anchor": "x" }]
        });
        assert!(check(sham, json!(1)).unwrap_err().contains("twice"));
        let wide: Vec<Value> = (0..60).map(|_| json!({ "items": {} })).collect();
        let value = Value::from(vec![0; 100_000]);
        assert!(
            check(json!({ "allOf": wide }), value)
                .unwrap_err()
                .contains("too much work")
        );
        // A field may be called what a keyword is called.
        let named = json!({ "properties": { "dependencies": { "type": "string" } } });
        assert_eq!(check(named, json!({ "dependencies": "a" })), Ok(()));
    }

    #[test]
    fn patterns_take_no_longer_than_their_text_is() {
        let schema = json!({ "type": "string", "pattern": "^(a+)+$" });
        let hostile = "a".repeat(100_000) + "!";
        assert!(check(schema, json!(hostile)).is_err());
        let large = json!({ "pattern": "(a{1000}){1000}" });
        assert!(check(large, json!("a")).is_err());
    }
}
