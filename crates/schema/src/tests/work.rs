//! Expensive schemas: their work is counted, and limited.

use serde_json::{Map, Value, json};

use super::check;
use crate::check::{REMEMBERED, WORK, WORK_PER_PART};
use crate::number::weight;
use crate::*;

/// The work of finding and describing the failure of a value.
fn work(schema: &Value, value: &Value) -> u64 {
    let schema = Schema::compile(schema).unwrap();
    let mut check = Check::new(&schema, value);
    assert_eq!(check.fits(0, value, 0).unwrap().fits, Truth::No);
    let work = check.work;
    let problem = Problem::new(&mut check).find(0, value, 0).unwrap();
    assert!(problem.len() < 1000, "{problem}");
    work + check.work
}

#[test]
fn what_anchors_mean_is_counted_as_work() {
    let chain = (0..60).map(|number| {
        let next = match number {
            59 => json!(true),
            _ => json!({ "$ref": format!("r{}", number + 1) }),
        };
        let link = json!({
            "$id": format!("r{number}"), "$dynamicAnchor": format!("a{number}"), "allOf": [next]
        });
        (format!("r{number}"), link)
    });
    let chain: Map<String, Value> = chain.collect();
    let schema = Schema::compile(&json!({ "$defs": chain, "$ref": "r0" })).unwrap();
    let value = json!(1);
    let mut check = Check::new(&schema, &value);
    assert_eq!(check.fits(0, &value, 0).unwrap().fits, Truth::Yes);
    // Sixty dynamic scopes, each with sixty names.
    assert!(check.work > 60 * 60, "{}", check.work);
}

/// A schema in which each of sixty levels doubles the paths to the next. The last one is `end`.
fn doubled(end: Value) -> Map<String, Value> {
    let mut definitions = Map::new();
    for number in 0..60 {
        let next = format!("#/$defs/d{}", number + 1);
        let both = json!({ "anyOf": [{ "$ref": next }, { "$ref": next, "minimum": 0 }] });
        definitions.insert(format!("d{number}"), both);
    }
    definitions.insert("d60".into(), end);
    definitions
}

/// Each level doubles the paths, and there are many levels.
#[test]
fn exponential_work_is_not_done() {
    let definitions = doubled(json!({ "type": "string" }));
    let bomb = json!({ "$ref": "#/$defs/d0" });
    let wide = json!({ "$defs": definitions, "$ref": "#/$defs/d0" });
    assert!(work(&wide, &json!(1)) < 8000);

    let branch = json!({ "properties": { "a": { "$ref": "#" } } });
    let deep = json!({ "oneOf": [branch, branch, { "type": "string" }] });
    let mut value = json!(1);
    for _ in 0..50 {
        value = json!({ "a": value });
    }
    assert!(work(&deep, &value) < 8000);

    let definitions = doubled(json!({ "type": "boolean" }));
    for (keyword, inside) in [
        ("additionalProperties", bomb.clone()),
        ("allOf", json!([bomb])),
        ("dependentSchemas", json!({ "a": bomb })),
        ("else", bomb.clone()),
        ("if", json!({ "not": bomb })),
        ("patternProperties", json!({ "a": bomb })),
        ("propertyNames", bomb.clone()),
        ("unevaluatedProperties", bomb),
    ] {
        let schema = json!({ "$defs": definitions, "if": false, "then": false, keyword: inside });
        assert!(work(&schema, &json!({ "a": 1 })) < 16_000, "{keyword}");
    }
}

/// The same with an unsupported pattern, which makes the option unknown, so that no check ends
/// early.
#[test]
fn what_is_unknown_is_not_found_out_twice() {
    let unknown = json!({ "pattern": "(?=a)" });
    let definitions = doubled(unknown.clone());
    let bomb = json!({ "$ref": "#/$defs/d0" });
    for (keyword, inside) in [
        ("patternProperties", json!({ "(?=a)": bomb, "(?=b)": bomb })),
        ("allOf", json!([{ "additionalProperties": bomb }])),
        (
            "oneOf",
            json!([{ "items": bomb }, { "properties": { "a": bomb } }]),
        ),
        ("contains", bomb),
    ] {
        let schema = json!({
            "$defs": definitions, keyword: inside, "if": { "required": ["a"], "properties": { "a": unknown } },
            "then": { "properties": { "a": { "$ref": "#/$defs/d0" } } }, "else": { "minProperties": 1 }
        });
        let schema = Schema::compile(&schema).unwrap();
        for value in [json!({ "a": "x", "b": "y" }), json!(["x", "y"])] {
            let mut check = Check::new(&schema, &value);
            check.fits(0, &value, 0).unwrap();
            assert!(check.work < 16_000, "{keyword}: {}", check.work);
        }
    }
}

/// Resources with dynamic anchors, each referring to the next two. There are exponentially many
/// paths, each with its own dynamic scope.
fn forks() -> Map<String, Value> {
    let mut forks = Map::new();
    for number in 0..60 {
        let next = |by: usize| json!({ "$ref": format!("r{}", number + by) });
        let fork = json!({
            "$id": format!("r{number}"), "$dynamicAnchor": format!("a{number}"),
            "anyOf": [next(1), next(2)]
        });
        forks.insert(format!("r{number}"), fork);
    }
    for end in ["r60", "r61"] {
        forks.insert(
            end.into(),
            json!({ "$id": end, "not": { "anyOf": [true] } }),
        );
    }
    forks
}

#[test]
fn meanings_of_anchors_are_bounded() {
    let schema = Schema::compile(&json!({ "$defs": forks(), "$ref": "r0" })).unwrap();
    let value = json!(1);
    let mut check = Check::new(&schema, &value);
    check.most_work = u64::MAX;
    let found = check.fits(0, &value, 0).map(|verdict| verdict.fits);
    assert_eq!(found, Err(Undecided::Work));
}

/// Schemas and values whose work multiplies. The values grow with `scale`.
fn bombs(scale: usize) -> Vec<(Value, Value)> {
    let many = |count: usize| (0..count).map(|number| number.to_string());
    let members: Map<String, Value> = many(scale * 10_000).map(|name| (name, json!(0))).collect();
    let long = "long".repeat(1_000_000);
    let text = "long".repeat(scale * 25_000);
    let pairs = json!(vec![json!({ "a": 0, "b": 0 }); scale * 1000]);
    let times = |count: usize, schema: Value| json!({ "allOf": vec![schema; count] });
    vec![
        (
            times(200, json!({ "items": {} })),
            json!(vec![0; scale * 10_000]),
        ),
        (
            times(150, json!({ "items": { "const": vec!["a"; 100] } })),
            json!(vec![vec!["a"; 100]; scale * 600]),
        ),
        (
            times(100, json!({ "items": { "not": { "enum": [[]] } } })),
            json!([vec![0; scale * 60_000]]),
        ),
        (
            times(100, json!({ "items": { "pattern": "(a|b)*a(a|b){12}" } })),
            json!(vec!["ab".repeat(scale * 5000); 8]),
        ),
        (
            times(1000, json!({ "items": { "minLength": 5 } })),
            json!(vec![text.clone(); 5]),
        ),
        (
            times(100, json!({ "items": { "uniqueItems": true } })),
            json!(vec![(0..1000).collect::<Vec<_>>(); scale * 10]),
        ),
        (
            times(1000, json!({ "propertyNames": { "minLength": 9 } })),
            json!({ (text): 1 }),
        ),
        (
            times(100, json!({ "items": { "multipleOf": 0.01 } })),
            json!(vec![1e308; scale * 10_000]),
        ),
        // Members without a rule are looked at as well.
        (
            times(100, json!({ "properties": { "z": true } })),
            Value::Object(members),
        ),
        // Evaluated items are recorded.
        (
            times(100, json!({ "items": true, "unevaluatedItems": false })),
            json!(vec![0; scale * 10_000]),
        ),
        // Names in the schema can be long.
        (
            json!({ "items": { "dependentRequired": { (long.clone()): [] } } }),
            pairs.clone(),
        ),
        (
            json!({ "items": { "not": { "required": [long] } } }),
            pairs.clone(),
        ),
        (
            json!({ "items": { "dependentSchemas": { long: true } } }),
            pairs,
        ),
        // There can be many dynamic scopes for each part of a value.
        (
            json!({ "$defs": forks(), "items": { "$ref": "r0" } }),
            json!(vec![1; scale * 1000]),
        ),
    ]
}

/// Work beyond a fixed multiple of the size of the value is refused. Memory does not grow with the
/// value at all.
#[test]
fn work_is_bounded_by_the_size_of_the_value() {
    for scale in [1, 2] {
        for (number, (schema, value)) in bombs(scale).into_iter().enumerate() {
            let schema = Schema::compile(&schema).unwrap();
            let mut check = Check::new(&schema, &value);
            let found = check.fits(0, &value, 0).map(|verdict| verdict.fits);
            assert_eq!(found, Err(Undecided::Work), "bomb {number}");
            let most = WORK + WORK_PER_PART * weight(&value);
            assert!(check.work <= most, "{schema:?}: {} of {most}", check.work);
            assert!(check.remembered <= REMEMBERED, "{}", check.remembered);
        }
    }
}

/// A check that only looks at each part a few times is allowed, however large the value is.
#[test]
fn large_values_are_not_much_work() {
    let anchors = (0..60).map(|name| {
        let name = format!("a{name}");
        (name.clone(), json!({ "$dynamicAnchor": name }))
    });
    let anchors: Map<String, Value> = anchors.collect();
    let row = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "pattern": "^[0-9a-f]{8}$" },
            "name": { "type": "string", "minLength": 1, "maxLength": 80 },
            "price": { "anyOf": [{ "type": "number", "minimum": 0 }, { "type": "null" }] },
            "kind": { "enum": ["a", "b", "c"] }
        },
        "required": ["id", "name", "price", "kind"],
        "additionalProperties": false
    });
    let good = json!({ "id": "0123abcd", "name": "an article", "price": null, "kind": "c" });
    for (schema, value) in [
        (
            json!({ "items": { "type": "integer" } }),
            json!(vec![0; 1_000_000]),
        ),
        (
            json!({ "$defs": anchors, "items": { "type": "integer" } }),
            json!(vec![0; 1_000_000]),
        ),
        (
            json!({ "items": { "$ref": "#/$defs/row" }, "$defs": { "row": row } }),
            json!(vec![good; 60_000]),
        ),
        (
            json!({ "items": { "uniqueItems": true } }),
            json!([(0..600_000).collect::<Vec<_>>()]),
        ),
        (
            json!({ "pattern": "^[a-z]*$" }),
            json!("a".repeat(10_000_000)),
        ),
    ] {
        let schema = Schema::compile(&schema).unwrap();
        assert_eq!(schema.check(&value), Ok(()), "{schema:?}");
    }
}

/// A value with more pairs than are remembered: verdicts are forgotten, and not needed again.
#[test]
fn verdicts_are_forgotten_when_there_are_many() {
    let schema = json!({ "items": { "$ref": "#/$defs/d0" }, "$defs": doubled(json!({ "type": "integer" })) });
    let schema = Schema::compile(&schema).unwrap();
    let value = json!(vec![1; 5000]);
    let mut check = Check::new(&schema, &value);
    check.most_work = u64::MAX;
    assert_eq!(check.fits(0, &value, 0).unwrap().fits, Truth::Yes);
    assert!(check.remembered <= REMEMBERED, "{}", check.remembered);
    // Sixty levels with at most three pairs each: no verdict was computed twice.
    assert!(check.work < 5000 * 60 * 3 * 8, "{}", check.work);
    let endless = Schema::compile(&json!({ "items": { "$ref": "#/$defs/a" }, "$defs": {
        "a": { "allOf": [{ "items": { "items": true } }, { "$ref": "#/$defs/a" }] }
    } }));
    let value = json!([vec![json!([0]); 510_000]]);
    let unfit = endless.unwrap().check(&value).unwrap_err();
    assert!(unfit.to_string().contains("without an end"), "{unfit}");
}

#[test]
fn patterns_take_no_longer_than_their_text_is() {
    let schema = json!({ "type": "string", "pattern": "^(a+)+$" });
    let hostile = "a".repeat(100_000) + "!";
    assert!(check(schema, json!(hostile)).is_err());
}
