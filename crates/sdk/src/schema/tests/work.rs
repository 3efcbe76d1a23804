//! Bombs: what takes much work is counted, and comes to an end.

use serde_json::{Map, Value, json};

use super::super::*;
use super::check;

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
    let mut check = Check::new(&schema);
    assert_eq!(check.fits(0, &json!(1), 0).unwrap().fits, Truth::Yes);
    // Sixty meanings, each of sixty names.
    assert!(check.work > 60 * 60, "{}", check.work);
}

/// What it takes to find out that a value does not fit.
fn work(schema: &Value, value: &Value) -> u64 {
    let schema = Schema::compile(schema).unwrap();
    let mut check = Check::new(&schema);
    assert_eq!(check.fits(0, value, 0).unwrap().fits, Truth::No);
    let work = check.work;
    let problem = Problem::new(&mut check).find(0, value, 0).unwrap();
    assert!(problem.len() < 1000, "{problem}");
    work + check.work
}

/// Each level doubles the ways, and there are many levels.
#[test]
fn exponential_work_is_not_done() {
    let mut definitions = Map::new();
    for number in 0..60 {
        let next = format!("#/$defs/d{}", number + 1);
        let both = json!({ "anyOf": [{ "$ref": next }, { "$ref": next, "minimum": 0 }] });
        definitions.insert(format!("d{number}"), both);
    }
    definitions.insert("d60".into(), json!({ "type": "string" }));
    let bomb = json!({ "$ref": "#/$defs/d0" });
    let wide = json!({ "$defs": definitions, "$ref": "#/$defs/d0" });
    assert!(work(&wide, &json!(1)) < 2000);

    let branch = json!({ "properties": { "a": { "$ref": "#" } } });
    let deep = json!({ "oneOf": [branch, branch, { "type": "string" }] });
    let mut value = json!(1);
    for _ in 0..50 {
        value = json!({ "a": value });
    }
    assert!(work(&deep, &value) < 2000);

    definitions.insert("d60".into(), json!({ "type": "boolean" }));
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
        assert!(work(&schema, &json!({ "a": 1 })) < 4000, "{keyword}");
    }
}

/// A schema in which each of sixty levels doubles the ways to the next, and the last is `end`.
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

/// The same where nobody knows which way counts, since a pattern cannot be matched: that ends nothing
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
            let mut check = Check::new(&schema);
            check.fits(0, &value, 0).unwrap();
            assert!(check.work < 4000, "{keyword}: {}", check.work);
        }
    }
}

/// What really is much work is refused when it has become too much.
#[test]
fn work_is_bounded() {
    let wide: Vec<Value> = (0..60).map(|_| json!({ "items": {} })).collect();
    let wide = Schema::compile(&json!({ "allOf": wide })).unwrap();
    let unfit = wide.check(&Value::from(vec![0; 100_000])).unwrap_err();
    assert!(
        unfit.is_undecided() && unfit.to_string().contains("too much work"),
        "{unfit}"
    );
    let many = |count: usize| (0..count).map(|number| number.to_string());
    let short: Map<String, Value> = many(100_000).map(|name| (name, json!(0))).collect();
    let long = "long".repeat(1_000_000);
    let pairs = json!(vec![json!({ "a": 0, "b": 0 }); 10_000]);
    let anchors = many(60).map(|name| {
        (
            name.clone(),
            json!({ "$dynamicAnchor": format!("a{name}") }),
        )
    });
    let anchors: Map<String, Value> = anchors.collect();
    let mut forks = Map::new();
    for number in 0..60 {
        let next = |by: usize| json!({ "$ref": format!("r{}", number + by) });
        let fork = json!({
            "$id": format!("r{number}"), "$dynamicAnchor": format!("a{number}"),
            "anyOf": [next(1), next(2)]
        });
        forks.insert(format!("r{number}"), fork);
    }
    forks.insert(
        "r60".into(),
        json!({ "$id": "r60", "not": { "anyOf": [true] } }),
    );
    forks.insert(
        "r61".into(),
        json!({ "$id": "r61", "not": { "anyOf": [true] } }),
    );
    for (schema, value) in [
        (
            json!({ "items": { "const": vec!["a"; 1000] } }),
            json!(vec![vec!["a"; 1000]; 600]),
        ),
        (
            json!({ "items": { "enum": [[]] } }),
            json!([vec![0; 600_000]]),
        ),
        (
            json!({ "items": { "pattern": "(a|b)*a(a|b){12}" } }),
            json!(vec!["ab".repeat(500_000); 8]),
        ),
        (
            json!({ "items": { "minLength": 5 } }),
            json!(vec![long.clone(); 20]),
        ),
        (
            json!({ "items": { "uniqueItems": true } }),
            json!(vec![(0..10_000).collect::<Vec<_>>(); 101]),
        ),
        (
            json!({ "propertyNames": { "maxLength": 9 } }),
            json!({ "long".repeat(20_000_000): 1 }),
        ),
        (
            json!({ "items": { "multipleOf": 0.01 } }),
            json!(vec![1e308; 100_000]),
        ),
        // What nothing is said about is looked at as well.
        (
            json!({ "allOf": vec![json!({ "properties": { "z": true } }); 100] }),
            Value::Object(short),
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
        // Meanings of anchors can be many.
        (json!({ "$defs": forks, "$ref": "r0" }), json!(1)),
    ] {
        let schema = Schema::compile(&schema).unwrap();
        let unfit = schema.check(&value).unwrap_err();
        assert!(unfit.is_undecided(), "{schema:?}: {unfit}");
    }
    let named = Schema::compile(&json!({ "$defs": anchors, "items": { "type": "integer" } }));
    assert_eq!(named.unwrap().check(&Value::from(vec![0; 100_000])), Ok(()));
    // A long list is not much work.
    let list = Schema::compile(&json!({ "items": { "type": "integer" } })).unwrap();
    assert_eq!(list.check(&Value::from(vec![0; 100_000])), Ok(()));
}

#[test]
fn patterns_take_no_longer_than_their_text_is() {
    let schema = json!({ "type": "string", "pattern": "^(a+)+$" });
    let hostile = "a".repeat(100_000) + "!";
    assert!(check(schema, json!(hostile)).is_err());
}
