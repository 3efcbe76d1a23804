//! Patterns that cannot be matched: which results are still known, and which are not.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::oracle::{PATTERNS, cases, documents, runner, values};
use crate::*;

/// Patterns that cannot be matched here.
const UNSUPPORTED: [&str; 3] = ["(?=a)", "(?=b)", "(?=c)"];

fn truth(schema: &Value, value: &Value) -> Truth {
    let schema = Schema::compile(schema).unwrap_or_else(|error| panic!("{error}: {schema}"));
    let verdict = Check::new(&schema, value).fits(0, value, 0);
    verdict.expect("it can be decided").fits
}

/// The schema with every occurrence of `pattern` replaced.
fn with_pattern(schema: &Value, pattern: &str, other: &str) -> Value {
    let replaced = |text: &String| match text == pattern {
        true => other.to_owned(),
        false => text.clone(),
    };
    match schema {
        Value::String(text) => Value::String(replaced(text)),
        Value::Array(parts) => parts
            .iter()
            .map(|part| with_pattern(part, pattern, other))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, part)| (replaced(name), with_pattern(part, pattern, other)))
            .collect::<Map<String, Value>>()
            .into(),
        other => other.clone(),
    }
}

/// The result for every way in which the first `patterns` patterns could match `texts`; unknown if
/// the ways differ.
fn whatever_they_match(schema: &Value, value: &Value, patterns: usize, texts: &[&str]) -> Truth {
    let matching = |subset: usize| {
        let texts = texts.iter().enumerate();
        let texts = texts.filter(|(at, _)| subset & 1 << at != 0);
        let texts: Vec<&str> = texts.map(|(_, text)| *text).collect();
        match texts.is_empty() {
            true => "[]".to_owned(),
            false => format!("^(?:{})$", texts.join("|")),
        }
    };
    let found = (0..1 << (texts.len() * patterns)).map(|case| {
        let mut schema = schema.clone();
        for (number, pattern) in UNSUPPORTED[..patterns].iter().enumerate() {
            // Each replacement is different, because member names must be unique.
            let other = format!(
                "{}{}",
                matching(case >> (number * texts.len())),
                "|[]".repeat(number)
            );
            schema = with_pattern(&schema, pattern, &other);
        }
        truth(&schema, value)
    });
    found
        .reduce(Truth::either)
        .expect("there is one case at least")
}

/// All lists of this length whose subschemas match, do not match, or are unknown.
fn lists(length: usize) -> Vec<Vec<Value>> {
    (0..length).fold(vec![vec![]], |lists, at| {
        let unknown = json!({ "pattern": UNSUPPORTED[at] });
        let parts = [json!(true), unknown, json!(false)];
        let longer = lists.iter().flat_map(|list| {
            let longer = |part: &Value| [&list[..], std::slice::from_ref(part)].concat();
            parts.iter().map(longer).collect::<Vec<_>>()
        });
        longer.collect()
    })
}

/// How often each result was found: no, unknown, yes.
#[derive(Default)]
struct Found([u32; 3]);

impl Found {
    /// Checks that the result is exactly the one that holds in all cases.
    fn same(&mut self, schema: Value, value: &Value, patterns: usize, texts: &[&str]) {
        let expected = whatever_they_match(&schema, value, patterns, texts);
        assert_eq!(truth(&schema, value), expected, "{schema} {value}");
        self.0[expected as usize] += 1;
    }

    /// Otherwise the test tries too little.
    fn each_was_found(&self) {
        assert!(self.0.iter().all(|count| *count > 20), "{:?}", self.0);
    }
}

#[test]
fn truth_tables_of_lists() {
    let mut found = Found::default();
    for length in 1..=3 {
        for parts in lists(length) {
            let mut same = |schema| found.same(schema, &json!("x"), length, &["x"]);
            for keyword in ["allOf", "anyOf", "oneOf"] {
                same(json!({ keyword: parts }));
                same(json!({ "not": { keyword: parts } }));
            }
            if let [condition, then, otherwise] = &parts[..] {
                same(json!({ "if": condition, "then": then, "else": otherwise }));
                same(json!({ "if": condition, "then": then }));
                same(json!({ "if": condition, "else": otherwise }));
            }
        }
    }
    found.each_was_found();
}

/// Each subschema has its own text, and it is unknown whether the text matches.
#[test]
fn truth_tables_of_what_is_inside() {
    let mut found = Found::default();
    for length in 1..=3 {
        for parts in lists(length) {
            let parts = with_pattern(&Value::Array(parts), UNSUPPORTED[1], UNSUPPORTED[0]);
            let parts = with_pattern(&parts, UNSUPPORTED[2], UNSUPPORTED[0]);
            let texts = &["x", "y", "z"][..length];
            let by_text = |of: &dyn Fn(usize) -> Value| {
                let members = texts.iter().enumerate();
                let members = members.map(|(at, text)| ((*text).to_owned(), of(at)));
                Value::Object(members.collect())
            };
            let named = by_text(&|at| parts[at].clone());
            let value = by_text(&|at| json!(texts[at]));
            let unknown = json!({ "pattern": UNSUPPORTED[0] });
            found.same(json!({ "properties": named }), &value, 1, texts);
            found.same(
                json!({ "propertyNames": unknown, "minProperties": 2 }),
                &value,
                1,
                texts,
            );
            found.same(json!({ "prefixItems": parts }), &json!(texts), 1, texts);
        }
    }
    let unknown = json!({ "type": "string", "pattern": UNSUPPORTED[0] });
    for items in [
        json!([]),
        json!(["x"]),
        json!(["x", 1]),
        json!(["x", "y", 1]),
    ] {
        let mut same = |schema| found.same(schema, &items, 1, &["x", "y"]);
        same(json!({ "items": unknown }));
        same(json!({ "dependentSchemas": { "a": unknown } }));
        for least in 0..4 {
            for most in 0..4 {
                same(json!({ "contains": unknown, "minContains": least, "maxContains": most }));
                same(json!({
                    "contains": unknown, "minContains": least, "unevaluatedItems": { "const": most }
                }));
            }
        }
    }
    found.each_was_found();
}

/// A name that may match a pattern, beside `additionalProperties` and `unevaluatedProperties`.
#[test]
fn truth_tables_of_members() {
    let options = [json!(true), json!(false), json!({ "type": "string" })];
    let mut found = Found::default();
    for value in [json!({}), json!({ "x": 1 }), json!({ "x": "a", "y": 1 })] {
        let mut same = |schema| found.same(schema, &value, 1, &["x", "y"]);
        for by_pattern in &options {
            let patterns = json!({ UNSUPPORTED[0]: by_pattern });
            same(json!({ "patternProperties": patterns }));
            for others in &options {
                for keyword in ["additionalProperties", "unevaluatedProperties"] {
                    let both = json!({ "patternProperties": patterns, keyword: others });
                    same(json!({ "not": both }));
                    same(both);
                    for named in &options {
                        same(json!({
                            "patternProperties": patterns, keyword: others, "properties": { "x": named }
                        }));
                        let patterns = json!({ UNSUPPORTED[0]: by_pattern, "^x": named });
                        same(json!({ "patternProperties": patterns, keyword: others }));
                    }
                }
                same(json!({
                    "anyOf": [{ "patternProperties": patterns }, { "required": ["y"] }],
                    "unevaluatedProperties": others
                }));
                same(json!({
                    "patternProperties": patterns, "additionalProperties": others,
                    "allOf": [{ "unevaluatedProperties": true }], "unevaluatedProperties": false
                }));
                same(json!({
                    "allOf": [{ "patternProperties": patterns, "unevaluatedProperties": others }],
                    "unevaluatedProperties": false
                }));
            }
        }
        for others in &options {
            // The first option may have evaluated `x`; then `unevaluatedProperties` does not apply
            // to it.
            let by_value = json!({ "properties": { "x": { "pattern": UNSUPPORTED[0] } } });
            let any = json!({ "anyOf": [by_value, true], "unevaluatedProperties": others });
            found.same(any, &value, 1, &["a"]);
            let chosen = json!({
                "if": { "required": ["x"], "properties": { "x": { "pattern": UNSUPPORTED[0] } } },
                "then": { "properties": { "y": true } }, "properties": { "x": true },
                "unevaluatedProperties": others
            });
            found.same(chosen, &value, 1, &["a"]);
        }
        for one in &options {
            for other in &options {
                let patterns = json!({ UNSUPPORTED[0]: one, UNSUPPORTED[1]: other });
                let all = json!({ "patternProperties": patterns, "additionalProperties": false });
                found.same(all, &value, 2, &["x", "y"]);
            }
        }
    }
    found.each_was_found();
}

/// A failure that is certain is described with all its possible reasons.
#[test]
fn problems_that_depend_on_a_pattern_are_told() {
    for (schema, value, expected) in [
        (
            json!({ "patternProperties": { UNSUPPORTED[0]: { "type": "string" } }, "additionalProperties": false }),
            json!({ "x": 1 }),
            "`x`: 1 is not a string, or 1 is not expected",
        ),
        (
            json!({ "if": { "pattern": UNSUPPORTED[0] }, "then": { "minLength": 3 }, "else": { "const": "y" } }),
            json!("x"),
            r#""x" is shorter than 3 characters, or "x" is not "y""#,
        ),
        (
            json!({ "properties": { "x": { "pattern": UNSUPPORTED[0], "maxLength": 0 } } }),
            json!({ "x": "y" }),
            r#"`x`: "y" is longer than 0 characters"#,
        ),
        (
            json!({ "oneOf": [{ "pattern": UNSUPPORTED[0] }, true, { "type": "string" }] }),
            json!("x"),
            r#""x" fits more than one of several options"#,
        ),
        (
            json!({ "contains": { "type": "string", "pattern": UNSUPPORTED[0] }, "minContains": 2 }),
            json!(["x", 1]),
            "less than 2 of its items fit",
        ),
    ] {
        assert_eq!(super::check(schema, value), Err(expected.to_owned()));
    }
}

/// The pattern itself, one that matches everything, and one that matches nothing.
const VARIANTS: [fn(&str) -> String; 3] = [
    |pattern| pattern.to_owned(),
    |pattern| format!("{pattern}|"),
    |pattern| format!("{pattern}[]"),
];

/// The document with its patterns replaced.
fn with_patterns(document: &Value, other: impl Fn(usize, &str) -> String) -> Value {
    let patterns = PATTERNS.iter().enumerate();
    patterns.fold(document.clone(), |document, (number, pattern)| {
        with_pattern(&document, pattern, &other(number, pattern))
    })
}

/// Checks many values against many schemas whose patterns are made unsupported by `unsupported`. A
/// known result must hold whatever the patterns match, and a schema beside it must still be able to
/// refuse a value. Returns how often each result was found.
fn compare(cases: u32, unsupported: fn(&str) -> String, smaller: u32) -> Result<Found, String> {
    let found = std::cell::RefCell::new(Found::default());
    let mixed = prop::array::uniform4(0..VARIANTS.len());
    let values = prop::collection::vec(values(), 8);
    let all = (documents(), documents(), mixed, values);
    let result = runner(cases, smaller).run(&all, |(document, known, mixed, values)| {
        let fail = |problem: String| TestCaseError::fail(format!("{problem}\n{document}\n{known}"));
        let compile =
            |schema: &Value| Schema::compile(schema).map_err(|error| fail(error.to_string()));
        let unknown = with_patterns(&document, |_, pattern| unsupported(pattern));
        let both = json!({ "allOf": [with_id(&unknown, "u"), with_id(&known, "k")] });
        let (unknown, known, both) = (compile(&unknown)?, compile(&known)?, compile(&both)?);
        let mut possible = Vec::new();
        for choice in [[0; 4], [1; 4], [2; 4], mixed] {
            let other = |number: usize, pattern: &str| VARIANTS[choice[number]](pattern);
            possible.push((choice, compile(&with_patterns(&document, other))?));
        }
        for value in &values {
            let truth = |schema: &Schema| match Check::new(schema, value).fits(0, value, 0) {
                Ok(verdict) => Ok(verdict.fits),
                Err(_) => Err(TestCaseError::reject("undecided")),
            };
            let verdict = truth(&unknown)?;
            found.borrow_mut().0[verdict as usize] += 1;
            for (choice, schema) in &possible {
                let fits = truth(schema)?;
                if verdict != Truth::Unknown && verdict != fits {
                    let problem = format!("{verdict:?}, though {fits:?} with {choice:?}: {value}");
                    return Err(fail(problem));
                }
            }
            let known = truth(&known)?;
            let both = truth(&both)?;
            if both != verdict.and(known) {
                let problem = format!("{verdict:?} and {known:?} is {both:?}: {value}");
                return Err(fail(problem));
            }
        }
        Ok(())
    });
    result.map_err(|problem| problem.to_string())?;
    Ok(found.into_inner())
}

/// Adds an identifier, so that references in the document stay within it.
fn with_id(document: &Value, id: &str) -> Value {
    let mut document = document.clone();
    if let Value::Object(members) = &mut document {
        members.insert("$id".into(), json!(format!("http://localhost/{id}")));
    }
    document
}

#[test]
fn what_is_found_is_so_whatever_patterns_match() {
    let found = compare(cases() / 4, |pattern| format!("(?={pattern})"), 500);
    found
        .unwrap_or_else(|problem| panic!("{problem}"))
        .each_was_found();
}

/// The bugs: an unknown match counts as a match, or as none.
#[test]
fn planted_bugs_are_found() {
    for variant in &VARIANTS[1..] {
        let Err(problem) = compare(10_000, *variant, 0) else {
            panic!("{} is not found", variant("^a"));
        };
        assert!(problem.contains("though"), "{problem}");
    }
}
