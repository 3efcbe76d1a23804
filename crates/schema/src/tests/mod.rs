//! Schemas of all kinds, including malicious ones.

use serde_json::{Value, json};

use super::*;

mod oracle;
mod suite;
mod unknown;
mod work;

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
            "`nick`: 7 is not a string",
        ),
        (
            json!({ "name": "a", "x": 1 }),
            "`x` is not expected; expected are `name`, `nick`",
        ),
        (
            json!({ "name": vec!["long"; 1000] }),
            "`name`: an array is not a string",
        ),
        (json!({ "name": "a", "nick": ["long".repeat(1000)] }), "…"),
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

/// Some generators write recursive types like this.
#[test]
fn parts_can_have_names_of_their_own() {
    let tree = json!({
        "properties": {
            "tree": {
                "$id": "Node",
                "required": ["children"],
                "properties": { "children": { "items": { "$ref": "Node" } } }
            }
        }
    });
    let good = json!({ "tree": { "children": [{ "children": [] }] } });
    assert_eq!(check(tree.clone(), good), Ok(()));
    let bad = json!({ "tree": { "children": [{ "children": [{}] }] } });
    assert_eq!(
        check(tree, bad).unwrap_err(),
        "`tree.children.0.children.0`: `children` is missing"
    );
    // A type that is repeated at every use.
    let repeated =
        json!({ "allOf": [{ "$id": "a", "$anchor": "b" }, { "$id": "a", "$anchor": "b" }] });
    assert_eq!(check(repeated, json!(1)), Ok(()));
    let twice = json!({ "allOf": [{ "$id": "a" }, { "$id": "a", "type": "string" }] });
    assert!(check(twice, json!(1)).unwrap_err().contains("twice"));
    let other = json!({ "$defs": { "a": { "$id": "a", "$schema": "http://json-schema.org/draft-07/schema" } } });
    assert!(
        check(other, json!(1))
            .unwrap_err()
            .contains("another dialect")
    );
}

/// An outer schema turns a list of anything into a list of numbers.
#[test]
fn references_can_depend_on_where_one_comes_from() {
    let list = json!({
        "$id": "https://example.com/list",
        "items": { "$dynamicRef": "#item" },
        "$defs": { "any": { "$dynamicAnchor": "item" } }
    });
    let numbers = json!({
        "$id": "https://example.com/numbers",
        "$ref": "list",
        "$defs": { "list": list, "number": { "$dynamicAnchor": "item", "type": "number" } }
    });
    assert_eq!(check(list, json!(["a"])), Ok(()));
    assert_eq!(check(numbers.clone(), json!([1])), Ok(()));
    assert_eq!(
        check(numbers.clone(), json!(["a"])).unwrap_err(),
        "`0`: \"a\" is not a number"
    );
    // A verdict in one dynamic scope is not reused in the other.
    let either = json!({
        "anyOf": [{ "$ref": "https://example.com/numbers" }, { "$ref": "https://example.com/list" }],
        "$defs": { "numbers": numbers }
    });
    assert_eq!(check(either, json!(["a"])), Ok(()));
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
fn schemas_that_loop_decide_nothing() {
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" }),
        json!({ "anyOf": [{ "type": "string" }, { "$ref": "#" }] }),
        json!({ "not": { "$ref": "#" } }),
    ] {
        let compiled = Schema::compile(&schema).unwrap();
        let unfit = compiled.check(&json!(1)).unwrap_err();
        assert!(unfit.is_undecided(), "{schema}");
        assert!(unfit.to_string().contains("without an end"), "{unfit}");
    }
    // A recursion that goes deeper into the value each time is allowed.
    let tree = json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } } });
    let mut value = json!({});
    for _ in 0..40 {
        value = json!({ "left": {}, "right": value });
    }
    assert_eq!(check(tree.clone(), value.clone()), Ok(()));
    // A failure deep in the value is found.
    let mut wrong = json!({ "left": 7 });
    for _ in 0..60 {
        wrong = json!({ "right": wrong });
    }
    let number = json!({ "type": "object", "anyOf": [{ "$ref": "#/$defs/tree" }], "$defs": { "tree": {
        "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } }
    } } });
    let problem = check(number, wrong).unwrap_err();
    assert!(problem.contains("…"), "{problem}");
    // The recursion may not go too deep.
    for _ in 0..LEVELS {
        value = json!({ "right": value });
    }
    let unfit = Schema::compile(&tree).unwrap().check(&value).unwrap_err();
    assert!(
        unfit.is_undecided() && unfit.to_string().contains("too deep"),
        "{unfit}"
    );
}

#[test]
fn what_is_no_schema_is_refused() {
    for (schema, problem) in [
        (json!(7), "a number stands where a schema belongs"),
        (json!({ "type": "strin" }), "`type` cannot be \"strin\""),
        (json!({ "required": true }), "`required` cannot be true"),
        (json!({ "minimum": "1" }), "`minimum` cannot be \"1\""),
        (json!({ "minLength": -1 }), "`minLength` cannot be -1"),
        (json!({ "multipleOf": 0 }), "not more than zero"),
        (json!({ "properties": [] }), "`properties` is an array"),
        (json!({ "properties": { "a": 1 } }), "a number stands where"),
        (json!({ "allOf": {} }), "`allOf` is an object"),
        (json!({ "items": [{}] }), "called `prefixItems` in 2020-12"),
        (json!({ "$ref": "#/$defs/a" }), "which is not there"),
        (json!({ "$ref": "#a" }), "which is not there"),
        (json!({ "$ref": 7 }), "`$ref` cannot be 7"),
        (json!({ "$ref": "#".repeat(5000) }), "is too long"),
        (
            json!({ "$id": format!("http://h/{}", "a".repeat(5000)) }),
            "is too long",
        ),
        (json!({ "type": [] }), "`type` cannot be []"),
        (
            json!({ "const": "a".repeat(10_000_000) }),
            "its constants are too large",
        ),
        (json!({ "pattern": "(?i)a" }), "is not understood"),
        (
            json!({ "patternProperties": { "(?=": {} } }),
            "is not understood",
        ),
        (
            json!({ "allOf": vec![json!({ "pattern": "(a{1000}){1000}" }); 100] }),
            "its patterns are too large",
        ),
        (
            json!({ "$defs": { "a": { "$anchor": "x" }, "b": { "$anchor": "x", "minimum": 1 } } }),
            "twice",
        ),
    ] {
        let found = check(schema.clone(), json!(1)).expect_err(problem);
        assert!(found.contains(problem), "{schema}: {found}");
    }
    // A property may have the name of a keyword, and an example may look like a schema.
    let named = json!({
        "properties": { "$ref": { "type": "string" }, "type": { "const": { "$id": "a" } } },
        "examples": [{ "$anchor": "x" }, { "$anchor": "x" }]
    });
    assert_eq!(
        check(named, json!({ "$ref": "a", "type": { "$id": "a" } })),
        Ok(())
    );
}

/// These messages are read by people, and by models that try again.
#[test]
fn problems_are_told_in_a_sentence() {
    for (schema, value, expected) in [
        (json!(false), json!(1), "1 is not expected"),
        (
            json!({ "type": ["string", "null"] }),
            json!(1),
            "1 is not null or a string",
        ),
        (json!({ "const": "a" }), json!("b"), r#""b" is not "a""#),
        (
            json!({ "enum": ["a", "b"] }),
            json!("c"),
            r#""c" is none of "a", "b""#,
        ),
        (
            json!({ "enum": (0..15).collect::<Vec<_>>() }),
            json!(99),
            "99 is none of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 5 more",
        ),
        (json!({ "maximum": 5 }), json!(7), "7 is more than 5"),
        (
            json!({ "exclusiveMinimum": 7 }),
            json!(7),
            "7 is not more than 7",
        ),
        (
            json!({ "multipleOf": 2 }),
            json!(7),
            "7 is not a multiple of 2",
        ),
        (
            json!({ "minLength": 3 }),
            json!("é"),
            r#""é" is shorter than 3 characters"#,
        ),
        (
            json!({ "maxItems": 1 }),
            json!([1, 2]),
            "it has more than 1 items",
        ),
        (
            json!({ "pattern": "^a" }),
            json!("b"),
            r#""b" does not match the pattern "^a""#,
        ),
        (
            json!({ "uniqueItems": true }),
            json!([1, 1.0]),
            "it has an item twice",
        ),
        (
            json!({ "required": ["a", "b"] }),
            json!({ "a": 1 }),
            "`b` is missing",
        ),
        (
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "a": 1 }),
            "`b` is missing, which `a` needs",
        ),
        (
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
            json!(1),
            "1 is not a string, or 1 is not null",
        ),
        (
            json!({ "oneOf": [{}, { "type": "integer" }] }),
            json!(1),
            "1 fits more than one of several options",
        ),
        (
            json!({ "not": { "type": "integer" } }),
            json!(1),
            "1 is what it must not be",
        ),
        (
            json!({ "contains": { "type": "string" } }),
            json!([1]),
            "less than 1 of its items fit",
        ),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            json!({ "ab": 1 }),
            r#"the name of a member: "ab" is longer than 1 characters"#,
        ),
        (
            json!({ "properties": { "a": {}, "b": {} }, "additionalProperties": false }),
            json!({ "c": 1 }),
            "`c` is not expected; expected are `a`, `b`",
        ),
        (
            json!({ "properties": { "a": false, "b": {} } }),
            json!({ "a": 1 }),
            "`a` is not expected; expected are `b`",
        ),
        (
            json!({ "properties": { "a": {} }, "unevaluatedProperties": false }),
            json!({ "c": 1 }),
            "`c` is not expected",
        ),
        (
            json!({ "properties": { "a": { "items": { "minimum": 0 } } } }),
            json!({ "a": [1, -1] }),
            "`a.1`: -1 is less than 0",
        ),
        (
            json!({ "if": { "minimum": 5 }, "then": { "maximum": 6 } }),
            json!(7),
            "7 is more than 6",
        ),
    ] {
        assert_eq!(
            check(schema.clone(), value).unwrap_err(),
            expected,
            "{schema}"
        );
    }
}
