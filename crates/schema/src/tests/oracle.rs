//! Random schemas and values, compared with another implementation.

use jsonschema::{Draft, PatternOptions};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use serde_json::{Map, Value, json};

use crate::Schema;

/// The patterns that occur in the schemas.
pub(super) const PATTERNS: [&str; 4] = ["^a", "b$", "^.$", "."];

/// Small values of few kinds, so that they often match.
pub(super) fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::Bool),
        prop::sample::select(vec![
            json!(0),
            json!(1),
            json!(1.0),
            json!(-2),
            json!(0.5),
            json!(4)
        ]),
        prop::sample::select(vec!["", "a", "ab", "b", "é"]).prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((names(), inner), 0..4).prop_map(object),
        ]
    })
}

fn names() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "ab", "c"]).prop_map(str::to_owned)
}

fn object(members: Vec<(String, Value)>) -> Value {
    Value::Object(members.into_iter().collect())
}

/// One keyword, or several that belong together. It may refer to the definitions in `known`.
fn schemas(known: Vec<&'static str>) -> impl Strategy<Value = Value> {
    let kinds = [
        "null", "boolean", "integer", "number", "string", "array", "object",
    ];
    let one = prop::sample::select(kinds.to_vec());
    let some = prop::collection::btree_set(one.clone(), 1..4);
    let number = prop::sample::select(vec![json!(0), json!(1), json!(0.5), json!(2)]);
    let size = || prop::sample::select(vec![0, 1, 2]);
    let limits = vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let sizes = vec![
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ];
    let patterns = || prop::sample::select(PATTERNS.to_vec());
    let mut leaves = vec![
        any::<bool>().prop_map(Value::Bool).boxed(),
        one.prop_map(|kind| json!({ "type": kind })).boxed(),
        some.prop_map(|kinds| json!({ "type": kinds })).boxed(),
        values().prop_map(|value| json!({ "const": value })).boxed(),
        prop::collection::vec(values(), 1..4)
            .prop_map(|values| json!({ "enum": values }))
            .boxed(),
        (prop::sample::select(limits), number)
            .prop_map(|(limit, number)| json!({ limit: number }))
            .boxed(),
        prop::sample::select(vec![json!(1), json!(2), json!(0.5)])
            .prop_map(|step| json!({ "multipleOf": step }))
            .boxed(),
        (prop::sample::select(sizes), size())
            .prop_map(|(keyword, size)| json!({ keyword: size }))
            .boxed(),
        patterns()
            .prop_map(|pattern| json!({ "pattern": pattern }))
            .boxed(),
        any::<bool>()
            .prop_map(|unique| json!({ "uniqueItems": unique }))
            .boxed(),
        prop::collection::btree_set(names(), 0..3)
            .prop_map(|names| json!({ "required": names }))
            .boxed(),
        (names(), prop::collection::btree_set(names(), 0..3))
            .prop_map(|(name, names)| json!({ "dependentRequired": { name: names } }))
            .boxed(),
    ];
    if !known.is_empty() {
        let reference = prop::sample::select(known);
        leaves.push(reference.prop_map(|name| json!({ "$ref": name })).boxed());
    }
    let leaf = prop::strategy::Union::new(leaves);
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let named = prop::collection::vec((names(), inner.clone()), 0..3).prop_map(object);
        let by_pattern =
            prop::collection::vec((patterns().prop_map(str::to_owned), inner.clone()), 0..3)
                .prop_map(object);
        let holders = vec![
            "not",
            "items",
            "contains",
            "additionalProperties",
            "propertyNames",
            "unevaluatedItems",
            "unevaluatedProperties",
        ];
        let optional = prop::option::of(inner.clone());
        prop_oneof![
            (prop::sample::select(holders), inner.clone())
                .prop_map(|(keyword, part)| json!({ keyword: part })),
            (
                prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]),
                list
            )
                .prop_map(|(keyword, parts)| json!({ keyword: parts })),
            (
                prop::sample::select(vec!["properties", "dependentSchemas"]),
                named
            )
                .prop_map(|(keyword, parts)| json!({ keyword: parts })),
            by_pattern.prop_map(|parts| json!({ "patternProperties": parts })),
            (inner.clone(), optional.clone(), optional).prop_map(|(condition, then, otherwise)| {
                let mut all = Map::from_iter([("if".to_owned(), condition)]);
                all.extend(then.map(|part| ("then".to_owned(), part)));
                all.extend(otherwise.map(|part| ("else".to_owned(), part)));
                Value::Object(all)
            }),
            (inner.clone(), 0..3, prop::option::of(0..3)).prop_map(|(part, least, most)| {
                let mut all = json!({ "contains": part, "minContains": least });
                if let Some(most) = most {
                    all["maxContains"] = json!(most);
                }
                all
            }),
            // Several at once, because they depend on each other.
            prop::collection::vec(inner, 2..5).prop_map(|parts| {
                let all = parts.into_iter().filter_map(|part| match part {
                    Value::Object(members) => Some(members),
                    _ => None,
                });
                Value::Object(all.flatten().collect())
            }),
        ]
    })
}

/// A schema with two definitions. The second may refer to the first.
pub(super) fn documents() -> impl Strategy<Value = Value> {
    let x = schemas(vec![]);
    let y = schemas(vec!["#/$defs/x"]);
    let root = schemas(vec!["#/$defs/x", "#y"]);
    (x, y, root).prop_map(|(x, y, root)| {
        let mut y = match y {
            Value::Object(members) => members,
            other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
        };
        y.insert("$anchor".into(), json!("y"));
        match root {
            Value::Object(mut members) => {
                members.insert("$defs".into(), json!({ "x": x, "y": y }));
                Value::Object(members)
            }
            other => other,
        }
    })
}

/// Runs the same cases each time, unless `BELAY_SEED` is set. `smaller` limits the steps that
/// shrink a failing case.
pub(super) fn runner(cases: u32, smaller: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: smaller,
        ..Config::default()
    };
    let seed = std::env::var("BELAY_SEED").ok();
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(config, random)
}

/// Checks many values against many schemas. `change` modifies our compiled schema.
fn compare(cases: u32, change: fn(&mut Schema)) -> Result<(), String> {
    let mut runner = runner(cases, 500);
    let pairs = (documents(), prop::collection::vec(values(), 8));
    let result = runner.run(&pairs, |(document, values)| {
        let oracle = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(PatternOptions::regex())
            .build(&document);
        let Ok(oracle) = oracle else {
            return Err(TestCaseError::reject("not a schema"));
        };
        let mut ours = Schema::compile(&document)
            .map_err(|error| TestCaseError::fail(format!("{error}: {document}")))?;
        change(&mut ours);
        for value in &values {
            let (ours, theirs) = (ours.check(value), oracle.is_valid(value));
            if ours.is_ok() != theirs {
                let problem = format!("{document}\n{value}\nours: {ours:?}, theirs: {theirs}");
                return Err(TestCaseError::fail(problem));
            }
        }
        Ok(())
    });
    match result {
        Ok(()) => Ok(()),
        Err(TestError::Fail(reason, _)) => Err(reason.to_string()),
        Err(TestError::Abort(reason)) => Err(format!("aborted: {reason}")),
    }
}

/// Keywords with arbitrary contents, including references and identifiers.
fn anything() -> impl Strategy<Value = Value> {
    const KEYWORDS: &[&str] = &[
        "$anchor",
        "$defs",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$recursiveAnchor",
        "$recursiveRef",
        "$ref",
        "$schema",
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "definitions",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "id",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "required",
        "then",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "a",
        "b",
    ];
    const TEXTS: &[&str] = &[
        "#",
        "#a",
        "#/$defs/a",
        "#/a/0",
        "a",
        "a#b",
        "http://a/b",
        "string",
        "array",
        "^a[\\w-z]",
        "(",
        "%zz",
        "#/%7E",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-04/schema",
    ];
    let leaf = prop_oneof![
        prop::sample::select(TEXTS).prop_map(Value::from),
        values(),
        Just(json!({})),
        Just(json!(1e300)),
        Just(json!(-1)),
    ];
    leaf.prop_recursive(5, 60, 5, |inner| {
        let keyword = prop::sample::select(KEYWORDS).prop_map(str::to_owned);
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            4 => prop::collection::vec((keyword, inner), 0..5).prop_map(object),
        ]
    })
}

/// Any schema is either refused, or can check values without a panic.
#[test]
fn anything_can_come_as_a_schema() {
    let mut runner = runner(5 * cases(), 500);
    let compiled = std::cell::Cell::new(0);
    let result = runner.run(&(anything(), anything()), |(schema, value)| {
        if let Ok(schema) = Schema::compile(&schema) {
            compiled.set(compiled.get() + 1);
            if let Err(unfit) = schema.check(&value) {
                prop_assert!(!unfit.to_string().is_empty());
            }
        }
        Ok(())
    });
    result.unwrap_or_else(|problem| panic!("{problem}"));
    // Otherwise the test would not check anything.
    assert!(compiled.get() > cases(), "{} could be used", compiled.get());
}

pub(super) fn cases() -> u32 {
    let asked = std::env::var("BELAY_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(2_000)
}

#[test]
fn it_agrees_with_another_implementation() {
    compare(cases(), |_| {}).unwrap_or_else(|problem| panic!("{problem}"));
}

/// The bug: evaluated members and items are not recorded.
#[test]
fn a_planted_bug_is_found() {
    let found = compare(100_000, |schema| schema.notes = false);
    assert!(found.unwrap_err().contains("unevaluated"));
}
