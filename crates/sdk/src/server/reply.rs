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

/// `"format": "uint64"` and the like are words of schemars, which other validators warn about. The type
/// and its bounds say as much.
fn remove_integer_formats(schema: &mut Map<String, Value>) {
    let is_integer = |format: &Value| {
        let width = format.as_str().map(|format| format.trim_start_matches('u'));
        width.is_some_and(|width| {
            let width = width.strip_prefix("int");
            width.is_some_and(|width| width.is_empty() || width.parse::<u8>().is_ok())
        })
    };
    if schema.contains_key("type") && schema.get("format").is_some_and(is_integer) {
        schema.shift_remove("format");
    }
    // What stands in these are values, not schemas.
    let schemas = schema
        .iter_mut()
        .filter(|(key, _)| !matches!(&***key, "const" | "default" | "enum" | "examples"));
    schemas.for_each(|(_, value)| remove_within(value));
}

fn remove_within(value: &mut Value) {
    match value {
        Value::Object(schema) => remove_integer_formats(schema),
        Value::Array(values) => values.iter_mut().for_each(remove_within),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use schemars::generate::Contract;

    use super::*;

    #[test]
    fn a_schema_has_no_format_for_integers() {
        #[derive(serde::Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "it is only read")]
        struct Order {
            number: u64,
            amounts: Vec<i8>,
            share: f32,
            #[schemars(default = "int_format")]
            note: String,
        }
        fn int_format() -> String {
            "int32".into()
        }
        let schema = Value::Object(schema_of::<Order>(Contract::Deserialize)).to_string();
        assert!(
            !schema.contains("uint64") && !schema.contains("int8"),
            "{schema}"
        );
        assert!(schema.contains(r#""format":"float""#), "{schema}");
        assert!(schema.contains(r#""default":"int32""#), "{schema}");
    }
}
