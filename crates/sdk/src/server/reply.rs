//! Results of tools, and how results are adapted to the protocol era.

use std::fmt::Display;

use belay_protocol::types::modern::InputRequiredResult;
use belay_protocol::types::{
    CacheScope, CallToolResult, CompleteResult, ContentBlock, EmptyResult, GetPromptResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, Meta,
    Millis, ReadResourceResult, ResultType,
};
use schemars::JsonSchema;
use schemars::generate::Contract;
use serde::Serialize;
use serde_json::{Map, Value};

/// A type that a tool handler can return.
///
/// A string becomes text content; [`Json`] becomes structured content; an `Err` becomes a
/// result with `isError`, which the model can read. (A tool that failed is a *result*; a
/// request that failed is an *error*.)
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "the result of a tool",
    note = "return a `String`, `Json` of something with `Serialize` and `JsonSchema`, a `CallToolResult`, or a `Result` of one of these"
)]
pub trait IntoToolResult {
    /// Converts it to a tool result.
    fn into_tool_result(self) -> CallToolResult;

    /// The JSON Schema of the structured content, if there is any.
    fn output_schema() -> Option<Map<String, Value>>
    where
        Self: Sized,
    {
        None
    }
}

/// A value for programs: becomes structured content, and the same as text for those who only read.
///
/// ```
/// use belay::server::IntoToolResult;
/// use belay::Json;
/// let result = Json([1, 2]).into_tool_result();
/// assert_eq!(result.structured_content, Some(serde_json::json!([1, 2])));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl IntoToolResult for CallToolResult {
    fn into_tool_result(self) -> CallToolResult {
        self
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::text(self)
    }
}

impl IntoToolResult for &str {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::text(self)
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> CallToolResult {
        CallToolResult::new()
    }
}

impl IntoToolResult for Vec<ContentBlock> {
    fn into_tool_result(self) -> CallToolResult {
        let mut result = CallToolResult::new();
        result.content = self;
        result
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn output_schema() -> Option<Map<String, Value>> {
        Some(schema_of::<T>(Contract::Serialize))
    }

    fn into_tool_result(self) -> CallToolResult {
        match serde_json::to_value(self.0) {
            Ok(value) => {
                let mut result = CallToolResult::text(value.to_string());
                result.structured_content = Some(value);
                result
            }
            Err(error) => CallToolResult::error(format!("the result is not JSON: {error}")),
        }
    }
}

impl<T: IntoToolResult, E: Display> IntoToolResult for Result<T, E> {
    fn output_schema() -> Option<Map<String, Value>> {
        T::output_schema()
    }

    fn into_tool_result(self) -> CallToolResult {
        match self {
            Ok(value) => value.into_tool_result(),
            Err(error) => CallToolResult::error(error.to_string()),
        }
    }
}

/// A result of the server, with the differences between the eras.
pub(super) trait Reply: Serialize {
    /// The fields that the modern era requires in every result.
    fn marks(&mut self) -> Marks<'_>;

    /// Removes what a legacy result cannot contain.
    fn make_legacy(&mut self) {}
}

/// The fields that the modern era requires in every result.
pub(super) struct Marks<'a> {
    pub(super) result_type: &'a mut Option<ResultType>,
    pub(super) meta: &'a mut Option<Meta>,
    /// The cache hint, in results that have one.
    pub(super) hint: Option<(&'a mut Option<Millis>, &'a mut Option<CacheScope>)>,
}

macro_rules! replies {
    ($($result:ty $(, $hint:ident)? $(=> $legacy:expr)?;)*) => {
        $(impl Reply for $result {
            fn marks(&mut self) -> Marks<'_> {
                Marks {
                    result_type: &mut self.result_type,
                    meta: &mut self.meta,
                    hint: replies!(@hint self $($hint)?),
                }
            }

            $(fn make_legacy(&mut self) {
                ($legacy)(self);
            })?
        })*
    };
    (@hint $this:ident cached) => {
        Some((&mut $this.ttl_ms, &mut $this.cache_scope))
    };
    (@hint $this:ident) => { None };
}

replies! {
    ListToolsResult, cached => |result: &mut ListToolsResult| {
        // Structured content must be an object in the legacy era.
        for tool in &mut result.tools {
            let schema = &mut tool.output_schema;
            schema.take_if(|schema| schema.get("type") != Some(&"object".into()));
        }
    };
    CallToolResult => |result: &mut CallToolResult| {
        result.structured_content.take_if(|value| !value.is_object());
    };
    ListResourcesResult, cached;
    ListResourceTemplatesResult, cached;
    ReadResourceResult, cached => |result: &mut ReadResourceResult| {
        (result.ttl_ms, result.cache_scope) = (None, None);
    };
    ListPromptsResult, cached;
    GetPromptResult;
    CompleteResult;
    EmptyResult;
    InputRequiredResult;
}

/// The root schema of a type, as it is deserialized or serialized.
pub(super) fn schema_of<T: JsonSchema>(contract: Contract) -> Map<String, Value> {
    let schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.contract = contract)
        .into_generator()
        .into_root_schema_for::<T>();
    let mut schema = match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.shift_remove("title");
    remove_integer_formats(&mut schema);
    schema
}

/// `"format": "uint64"` and the like are words of schemars, which other validators warn about. Where
/// schemars gives no bounds beside them, bounds of 32 bits are added; JSON readers differ on larger ones.
fn remove_integer_formats(schema: &mut Map<String, Value>) {
    let is_integer = match schema.get("type") {
        Some(Value::String(kind)) => kind == "integer",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
        _ => false,
    };
    let format = schema.get("format").and_then(Value::as_str);
    let width = format.filter(|_| is_integer).and_then(width);
    if let Some(width) = width {
        schema.shift_remove("format");
        let bounds = match width {
            Width::Signed32 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
            Width::Unsigned32 => Some((0, i64::from(u32::MAX))),
            Width::Other => None,
        };
        if let Some((least, most)) = bounds {
            schema.entry("minimum").or_insert(least.into());
            schema.entry("maximum").or_insert(most.into());
        }
    }
    for (keyword, value) in schema {
        match (&**keyword, value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(schemas),
            ) => schemas.values_mut().for_each(remove_within),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(remove_within);
            }
            (
                "additionalProperties"
                | "contains"
                | "else"
                | "if"
                | "items"
                | "not"
                | "propertyNames"
                | "then"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                schema,
            ) => remove_within(schema),
            // Whatever else there is holds no schemas, but values.
            _ => {}
        }
    }
}

fn remove_within(schema: &mut Value) {
    if let Value::Object(schema) = schema {
        remove_integer_formats(schema);
    }
}

enum Width {
    Signed32,
    Unsigned32,
    Other,
}

/// Whether a format is the width of an integer, as schemars names it.
fn width(format: &str) -> Option<Width> {
    match format {
        "int32" => Some(Width::Signed32),
        "uint32" => Some(Width::Unsigned32),
        "int" | "int8" | "int16" | "int64" | "int128" => Some(Width::Other),
        "uint" | "uint8" | "uint16" | "uint64" | "uint128" => Some(Width::Other),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use schemars::generate::Contract;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_has_no_format_for_integers() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Order {
            number: u64,
            default: Option<i64>,
            #[schemars(extend("x-column" = { "type": "integer", "format": "int64" }))]
            amounts: Vec<i32>,
            share: f32,
        }
        let schema = Value::Object(schema_of::<Order>(Contract::Deserialize));
        let properties = &schema["properties"];
        assert_eq!(
            properties["number"],
            json!({ "type": "integer", "minimum": 0 })
        );
        assert_eq!(
            properties["default"],
            json!({ "type": ["integer", "null"] })
        );
        let bounds = json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX });
        assert_eq!(properties["amounts"]["items"], bounds);
        assert_eq!(properties["amounts"]["x-column"]["format"], "int64");
        assert_eq!(properties["share"]["format"], "float");
    }

    #[test]
    fn a_text_that_holds_a_number_keeps_its_format() {
        let mut schema = json!({ "type": "string", "format": "int64" });
        remove_within(&mut schema);
        assert_eq!(schema["format"], "int64");
    }
}
