//! Form fields: the hint shown for a field, and parsing of the typed text.

use belay::schema::Schema;
use serde_json::Value;

/// The hint behind a field's label: choices, type, default.
pub(crate) fn hint(schema: &Value, required: bool) -> String {
    let mut hints = Vec::new();
    let options = options(schema);
    match schema["type"].as_str() {
        Some("array") if !options.is_empty() => {
            hints.push(format!("any of {}, separated by commas", listed(&options)));
        }
        _ if !options.is_empty() => hints.push(listed(&options)),
        Some("boolean") => hints.push("y or n".to_owned()),
        Some(kind @ ("integer" | "number")) => hints.push(kind.to_owned()),
        _ => {}
    }
    match &schema["default"] {
        Value::Null if required => {}
        Value::Null => hints.push("optional".to_owned()),
        default => hints.push(format!("default {default}")),
    }
    match hints.is_empty() {
        true => String::new(),
        false => format!(" ({})", hints.join("; ")),
    }
}

/// One choice of an enum, with its title.
struct Choice<'a> {
    value: &'a str,
    title: Option<&'a str>,
}

/// The choices of a field, in every form of elicitation schemas: `enum`, `enumNames`, `oneOf` and
/// `anyOf`, for a single value or for an array.
fn options(schema: &Value) -> Vec<Choice<'_>> {
    let inside = match schema["type"].as_str() {
        Some("array") => &schema["items"],
        _ => schema,
    };
    let titles = inside["enumNames"].as_array();
    let plain = inside["enum"].as_array().into_iter().flatten().enumerate();
    let plain = plain.filter_map(|(at, value)| {
        let title = titles.and_then(|titles| titles.get(at)?.as_str());
        let value = value.as_str()?;
        Some(Choice { value, title })
    });
    let titled = ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(|keyword| inside[keyword].as_array());
    let titled = titled.flatten().filter_map(|choice| {
        let value = choice["const"].as_str()?;
        let title = choice["title"].as_str();
        Some(Choice { value, title })
    });
    plain.chain(titled).collect()
}

fn listed(options: &[Choice<'_>]) -> String {
    let words = options.iter().map(|choice| match choice.title {
        Some(title) if title != choice.value => format!("{} = {title}", choice.value),
        _ => choice.value.to_owned(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Parses the typed text by the schema; null if an optional field is left empty.
pub(crate) fn read(text: &str, schema: &Value, required: bool) -> Result<Value, String> {
    if text.is_empty() {
        return match (&schema["default"], required) {
            (Value::Null, true) => Err("required; Ctrl-D declines".into()),
            (default, _) => Ok(default.clone()),
        };
    }
    let kind = schema["type"].as_str().unwrap_or("text");
    let options = options(schema);
    let one = |text: &str| match options.iter().any(|choice| choice.value == text) {
        true => Ok(Value::from(text)),
        false => Err(format!("expected one of {}", listed(&options))),
    };
    let value = match kind {
        "array" if !options.is_empty() => {
            let words = text
                .split(',')
                .map(str::trim)
                .filter(|word| !word.is_empty());
            Some(words.map(one).collect::<Result<Value, String>>()?)
        }
        _ if !options.is_empty() => Some(one(text)?),
        "boolean" => match text {
            "y" | "yes" | "true" => Some(true.into()),
            "n" | "no" | "false" => Some(false.into()),
            _ => None,
        },
        "integer" => text.parse::<i64>().ok().map(Value::from),
        "number" => text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(Value::from),
        "array" => Some(text.split(',').map(str::trim).map(Value::from).collect()),
        _ => Some(text.into()),
    };
    let value = value.ok_or(match kind {
        "boolean" => "expected y or n",
        "integer" => "expected an integer",
        _ => "expected a number",
    })?;
    // Checked here so that the user can correct it; the server would have to ask again.
    match Schema::compile(schema).map(|schema| schema.check(&value)) {
        Ok(Err(unfit)) if !unfit.is_undecided() => Err(unfit.to_string()),
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_typed_becomes_what_the_schema_wants() {
        let number = json!({ "type": "integer", "maximum": 9 });
        let flag = json!({ "type": "boolean", "default": true });
        let colour = json!({ "type": "string", "enum": ["red", "blue"] });
        let size = json!({ "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] });
        let old = json!({ "type": "string", "enum": ["a"], "enumNames": ["Alpha"] });
        let some = json!({
            "type": "array", "minItems": 1, "maxItems": 2,
            "items": { "type": "string", "enum": ["red", "blue", "green"] }
        });
        let titled =
            json!({ "type": "array", "items": { "anyOf": [{ "const": "s", "title": "Small" }] } });
        for (text, schema, required, expected) in [
            ("7", &number, true, Ok(json!(7))),
            ("x", &number, true, Err("expected an integer")),
            ("10", &number, true, Err("10 is more than 9")),
            ("", &number, true, Err("required; Ctrl-D declines")),
            ("", &number, false, Ok(Value::Null)),
            ("", &flag, true, Ok(json!(true))),
            ("no", &flag, true, Ok(json!(false))),
            ("maybe", &flag, true, Err("expected y or n")),
            ("red", &colour, true, Ok(json!("red"))),
            ("green", &colour, true, Err("expected one of red, blue")),
            ("s", &size, true, Ok(json!("s"))),
            ("m", &size, true, Err("expected one of s = Small")),
            ("a", &old, true, Ok(json!("a"))),
            ("red", &some, true, Ok(json!(["red"]))),
            ("red, blue,", &some, true, Ok(json!(["red", "blue"]))),
            (
                "red, pink",
                &some,
                true,
                Err("expected one of red, blue, green"),
            ),
            (
                "red, blue, green",
                &some,
                true,
                Err("it has more than 2 items"),
            ),
            ("s", &titled, true, Ok(json!(["s"]))),
            (
                "nan",
                &json!({ "type": "number" }),
                true,
                Err("expected a number"),
            ),
            ("anything", &json!({}), true, Ok(json!("anything"))),
        ] {
            let read = read(text, schema, required);
            assert_eq!(read, expected.map_err(str::to_owned), "{text:?}");
        }
        assert_eq!(hint(&flag, true), " (y or n; default true)");
        assert_eq!(hint(&colour, false), " (red, blue; optional)");
        assert_eq!(hint(&old, true), " (a = Alpha)");
        assert_eq!(
            hint(&some, true),
            " (any of red, blue, green, separated by commas)"
        );
        assert_eq!(
            hint(&titled, true),
            " (any of s = Small, separated by commas)"
        );
        assert_eq!(hint(&json!({ "type": "string" }), true), "");
    }
}
