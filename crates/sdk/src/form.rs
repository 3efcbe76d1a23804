//! Elicitation forms from Rust types.

use belay_protocol::types::{Field, FormSchema, TextFormat};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The form whose fields are those of a type.
///
/// ```
/// #[derive(schemars::JsonSchema)]
/// struct Person {
///     name: String,
///     age: Option<u8>,
/// }
///
/// let form = belay::input::form_of::<Person>().unwrap();
/// assert_eq!(form.required, Some(vec!["name".to_owned()]));
/// ```
///
/// A form is flat. A type that is not, is refused, and the problem says which field it is.
pub fn form_of<T: JsonSchema>() -> Result<FormSchema, String> {
    let schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>();
    let root = schema.as_object().ok_or("it has no schema")?;
    let fields = root.get("properties").and_then(Value::as_object);
    let Some(fields) = fields.filter(|_| is_type(root, "object")) else {
        return Err("a form is a struct with named fields".into());
    };
    let required = root.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|names| names.iter().any(|known| known.as_str() == Some(name)))
    };
    let mut form = FormSchema::new();
    for (name, schema) in fields {
        let schema = schema.as_object().cloned().unwrap_or_default();
        let field = field(without_null(schema)).map_err(|problem| format!("`{name}` {problem}"))?;
        form = match is_required(name) {
            true => form.field(name, field),
            false => form.optional(name, field),
        };
    }
    Ok(form)
}

fn is_type(schema: &Map<String, Value>, name: &str) -> bool {
    schema.get("type").and_then(Value::as_str) == Some(name)
}

/// Removes `null` from the schema of an `Option`: in a form, an empty field is left out.
fn without_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    let null = Value::from("null");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|known| *known != null);
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(options)) = schema.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
        any.retain(|one| one.get("type") != Some(&null));
        if let [Value::Object(only)] = any.as_slice() {
            let mut only = only.clone();
            schema.shift_remove("anyOf");
            // The keywords of the field override those of its type.
            only.extend(schema);
            return only;
        }
    }
    schema.retain(|key, value| key != "default" || !value.is_null());
    schema
}

/// Converts a schema to a form field.
fn field(schema: Map<String, Value>) -> Result<Field, String> {
    if let Some(options) = options(&schema) {
        return with(&schema, &["title", "description", "default"], |field| {
            field.insert("type".into(), "string".into());
            options.put(field, "oneOf");
        });
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => {
            let format = schema.get("format").and_then(Value::as_str);
            let known = format.is_some_and(|format| !matches!(format.into(), TextFormat::Other(_)));
            let keys = [
                "type",
                "title",
                "description",
                "minLength",
                "maxLength",
                "default",
                "format",
            ];
            with(&schema, &keys[..keys.len() - usize::from(!known)], |_| {})
        }
        Some("number" | "integer") => {
            let keys = [
                "type",
                "title",
                "description",
                "minimum",
                "maximum",
                "default",
            ];
            with(&schema, &keys, |_| {})
        }
        Some("boolean") => with(
            &schema,
            &["type", "title", "description", "default"],
            |_| {},
        ),
        Some("array") => {
            let items = schema.get("items").and_then(Value::as_object);
            let Some(options) = items.and_then(options) else {
                let problem = "is a list, and a form can only hold lists of enums without values";
                return Err(problem.into());
            };
            let keys = [
                "type",
                "title",
                "description",
                "minItems",
                "maxItems",
                "default",
            ];
            with(&schema, &keys, |field| {
                let mut items = Map::new();
                if let Options::Plain(_) = options {
                    items.insert("type".into(), "string".into());
                }
                options.put(&mut items, "anyOf");
                field.insert("items".into(), items.into());
            })
        }
        _ => {
            let kinds = "texts, numbers, `bool`s, enums without values, and lists of those";
            Err(format!("is none of what a form can hold: {kinds}"))
        }
    }
}

/// A form field from these members of a schema, and more.
fn with(
    schema: &Map<String, Value>,
    keys: &[&str],
    more: impl FnOnce(&mut Map<String, Value>),
) -> Result<Field, String> {
    let members = keys.iter().filter_map(|key| schema.get_key_value(*key));
    let mut field: Map<String, Value> = members
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    more(&mut field);
    serde_json::from_value(field.into()).map_err(|error| format!("cannot be shown: {error}"))
}

/// The options to choose from.
enum Options {
    Plain(Vec<String>),
    Titled(Vec<(String, String)>),
}

/// The variant names of an enum without values. Doc comments become titles.
fn options(schema: &Map<String, Value>) -> Option<Options> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(Value::Array(options)) = schema.get("enum") {
        return Some(Options::Plain(
            options.iter().map(text).collect::<Option<_>>()?,
        ));
    }
    let one_of = schema.get("oneOf")?.as_array()?;
    let mut titled = Vec::new();
    for option in one_of {
        let title = ["title", "description"]
            .into_iter()
            .find_map(|key| option.get(key));
        match (option.get("const"), option.get("enum")) {
            (Some(value), _) => {
                let value = text(value)?;
                let title = title.and_then(text).unwrap_or_else(|| value.clone());
                titled.push((value, title));
            }
            // schemars puts the variants without a comment into one list.
            (None, Some(Value::Array(plain))) => {
                for value in plain {
                    titled.push((text(value)?, text(value)?));
                }
            }
            _ => return None,
        }
    }
    Some(Options::Titled(titled))
}

impl Options {
    /// Writes the options, with titles under the keyword `titled`.
    fn put(&self, schema: &mut Map<String, Value>, titled: &str) {
        match self {
            Self::Plain(options) => {
                schema.insert("enum".into(), options.clone().into());
            }
            Self::Titled(options) => {
                let option = |(value, title): &(String, String)| serde_json::json!({ "const": value, "title": title });
                let options: Vec<Value> = options.iter().map(option).collect();
                schema.insert(titled.into(), options.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Everything {
        /// Who.
        #[schemars(length(min = 1, max = 9))]
        name: String,
        #[schemars(email)]
        email: Option<String>,
        #[serde(default = "thirty")]
        age: u8,
        score: f64,
        #[serde(default)]
        loud: bool,
        size: Size,
        colour: Option<Colour>,
        #[serde(default)]
        sizes: Vec<Size>,
        colours: Vec<Colour>,
    }

    fn thirty() -> u8 {
        30
    }

    #[derive(JsonSchema, serde::Serialize)]
    #[allow(dead_code)]
    enum Size {
        Small,
        Large,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    enum Colour {
        /// Like the sky.
        Blue,
        #[schemars(title = "Like blood")]
        Red,
        Green,
    }

    #[test]
    fn a_struct_becomes_a_form() {
        let form = form_of::<Everything>().unwrap();
        let titled = json!([
            { "const": "Blue", "title": "Like the sky." },
            { "const": "Red", "title": "Like blood" },
            { "const": "Green", "title": "Green" }
        ]);
        let mut value = serde_json::to_value(&form).unwrap();
        for option in ["oneOf", "anyOf"] {
            // Variants without a comment may be listed together, at either end.
            for path in ["/properties/colour", "/properties/colours/items"] {
                if let Some(Value::Array(options)) = value.pointer_mut(&format!("{path}/{option}"))
                {
                    options.sort_by_key(|option| option["const"] == "Green");
                }
            }
        }
        assert_eq!(
            value,
            json!({
                "type": "object",
                "required": ["name", "score", "size", "colours"],
                "properties": {
                    "name": {
                        "type": "string", "description": "Who.", "minLength": 1, "maxLength": 9
                    },
                    "email": { "type": "string", "format": "email" },
                    "age": { "type": "integer", "minimum": 0, "maximum": 255, "default": 30 },
                    "score": { "type": "number" },
                    "loud": { "type": "boolean", "default": false },
                    "size": { "type": "string", "enum": ["Small", "Large"] },
                    "colour": { "type": "string", "oneOf": titled },
                    "sizes": {
                        "type": "array", "default": [],
                        "items": { "type": "string", "enum": ["Small", "Large"] }
                    },
                    "colours": { "type": "array", "items": { "anyOf": titled } }
                }
            })
        );
        let order: Vec<&str> = form.properties.iter().map(|(name, _)| name).collect();
        assert_eq!(order[..3], ["name", "email", "age"]);
    }

    #[test]
    fn what_is_not_flat_is_refused() {
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Nested {
            inner: Inner,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Inner {
            text: String,
        }
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Texts {
            texts: Vec<String>,
        }
        let problem = |form: Result<FormSchema, String>| form.unwrap_err();
        assert!(
            problem(form_of::<Nested>()).starts_with("`inner` is none of what a form can hold")
        );
        assert!(problem(form_of::<Texts>()).starts_with("`texts` is a list"));
        assert!(problem(form_of::<String>()).contains("a struct with named fields"));
    }
}
