//! Converts `key=value` words of the command line to tool arguments, using the tool's schema.

use belay::types::ToolDefinition;
use serde_json::{Map, Value};

use crate::output::escaped;

/// Parses the typed words into arguments. The error is a message for the user.
pub(crate) fn parse(tool: &ToolDefinition, typed: &[String]) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    for word in typed {
        if word == "-" {
            arguments.extend(from_stdin()?);
            continue;
        }
        let (key, value) = pair(tool, word)?;
        if arguments.insert(key.clone(), value).is_some() {
            return Err(format!("the argument {key:?} is given twice"));
        }
    }
    let required = tool.input_schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !arguments.contains_key(name) {
            return Err(format!(
                "the argument {name:?} is missing: {}",
                signature(tool)
            ));
        }
    }
    Ok(arguments)
}

/// Reads a JSON object of arguments from stdin.
fn from_stdin() -> Result<Map<String, Value>, String> {
    let text = std::io::read_to_string(std::io::stdin())
        .map_err(|error| format!("cannot read stdin: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("stdin is not a JSON object: {error}"))
}

fn pair(tool: &ToolDefinition, word: &str) -> Result<(String, Value), String> {
    if let Some((key, json)) = word.split_once(":=")
        && !key.contains('=')
    {
        let value = serde_json::from_str(json).map_err(|error| {
            format!("argument {key:?}: expected JSON after `:=`, not {json:?}: {error}")
        })?;
        return Ok((key.to_owned(), value));
    }
    let Some((key, text)) = word.split_once('=') else {
        return Err(format!(
            "{word:?} is not an argument; write key=value or key:=json: {}",
            signature(tool)
        ));
    };
    let Some(schema) = property(tool, key) else {
        return Err(format!("there is no argument {key:?}: {}", signature(tool)));
    };
    let file = match text.strip_prefix('@') {
        Some(path) => Some(
            std::fs::read_to_string(path)
                .map_err(|error| format!("{}=@{}: {error}", escaped(key), escaped(path)))?,
        ),
        None => None,
    };
    let text = file.as_deref().unwrap_or(text);
    let value = match kind(schema) {
        "string" | "any" => Value::from(text),
        kind => {
            let expected = escaped(kind);
            serde_json::from_str(text)
                .map_err(|_| format!("argument {key:?}: expected {expected}, not {text:?}"))?
        }
    };
    Ok((key.to_owned(), value))
}

fn property<'a>(tool: &'a ToolDefinition, name: &str) -> Option<&'a Value> {
    tool.input_schema.get("properties")?.get(name)
}

fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        // `["integer", "null"]`
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").unwrap_or("any")
        }
        // `anyOf: [{ type: integer }, { type: null }]`, if only one choice is not null.
        _ => {
            let choices = schema.get("anyOf").or(schema.get("oneOf"));
            let choices = choices.and_then(Value::as_array);
            let kinds = choices.into_iter().flatten().map(kind);
            let kinds: Vec<&str> = kinds.filter(|kind| *kind != "null").collect();
            match kinds.as_slice() {
                [kind] => kind,
                _ => "any",
            }
        }
    }
}

/// An argument of a tool, from the properties of its schema.
pub(crate) struct Argument<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) required: bool,
}

/// The arguments of a tool: required ones first, each group in the schema's order.
pub(crate) fn arguments(tool: &ToolDefinition) -> Vec<Argument<'_>> {
    let schema = &tool.input_schema;
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let required: Vec<&str> = required.collect();
    let needed = required.iter().map(|name| Argument {
        name,
        kind: property(tool, name).map_or("any", kind),
        required: true,
    });
    let properties = schema.get("properties").and_then(Value::as_object);
    let optional = properties.into_iter().flatten();
    let optional = optional.filter(|(name, _)| !required.contains(&name.as_str()));
    let optional = optional.map(|(name, schema)| Argument {
        name,
        kind: kind(schema),
        required: false,
    });
    needed.chain(optional).collect()
}

/// `name(a: string, b?: integer)`, on one line.
pub(crate) fn signature(tool: &ToolDefinition) -> String {
    let arguments = arguments(tool).into_iter().map(|argument| {
        let mark = if argument.required { "" } else { "?" };
        let (name, kind) = (escaped(argument.name), escaped(argument.kind));
        format!("{name}{mark}: {kind}")
    });
    let arguments: Vec<String> = arguments.collect();
    format!("{}({})", escaped(&tool.name), arguments.join(", "))
}

/// The known name most similar to a mistyped one, for "did you mean".
pub(crate) fn nearest<'a>(meant: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (distance(meant, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(meant.len()) / 2)
        .min()
        .map(|(_, name)| name)
}

/// Edit distance (Levenshtein) of two strings, in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> ToolDefinition {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string" }, "count": { "type": "integer" },
                "flag": { "type": ["boolean", "null"] }, "free": {},
                "limit": { "anyOf": [{ "type": "integer" }, { "type": "null" }] }
            },
            "required": ["text"]
        });
        ToolDefinition::new("say", schema.as_object().unwrap().clone())
    }

    fn parsed(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        parse(&tool(), &words).map(Value::Object)
    }

    #[test]
    fn values_are_typed_by_the_schema() {
        let arguments = parsed(&["text=7", "count=7", "flag=true", "free=7"]);
        let expected = json!({ "text": "7", "count": 7, "flag": true, "free": "7" });
        assert_eq!(arguments, Ok(expected));
        let arguments = parsed(&["text=a=b", "free:=[1]", "limit=5"]);
        let expected = json!({ "text": "a=b", "free": [1], "limit": 5 });
        assert_eq!(arguments, Ok(expected));
    }

    #[test]
    fn mistakes_are_told_with_the_signature() {
        for (words, expected) in [
            (&["count=1"][..], "the argument \"text\" is missing: say("),
            (&["text"], "\"text\" is not an argument"),
            (&["txt=a"], "there is no argument \"txt\": say("),
            (
                &["text=a", "count=many"],
                "argument \"count\": expected integer, not \"many\"",
            ),
            (
                &["text=a", "text=b"],
                "the argument \"text\" is given twice",
            ),
            (&["text:=x"], "argument \"text\": expected JSON"),
        ] {
            let problem = parsed(words).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let names = ["echo", "count", "rollback"];
        assert_eq!(nearest("ecko", names.into_iter()), Some("echo"));
        assert_eq!(nearest("roll_back", names.into_iter()), Some("rollback"));
        assert_eq!(nearest("xyz", names.into_iter()), None);
    }
}
