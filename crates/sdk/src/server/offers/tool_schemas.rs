//! Validation of a tool's arguments and results against its schemas.

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::{ToolDefinition, error_code};
use serde_json::{Map, Value};

use super::arguments::Arguments;
use crate::schema::{Schema, SchemaError};

/// The limit on decoded arguments, as a multiple of the message size limit. An object can take this
/// many times the bytes of its text, and nested lists 150 times.
const DECODED: usize = 16;
/// No text takes more than this many times its bytes, so shorter texts need no estimate.
const MOST_DECODED: usize = 256;

/// The compiled schemas of one tool.
pub(in crate::server) struct ToolSchemas {
    input: Result<Schema, SchemaError>,
    /// The argument type rejects everything that the schema rejects, so validation is skipped.
    is_implied: bool,
    output: Option<Result<Schema, SchemaError>>,
}

/// Why a tool is not called.
pub(in crate::server) enum NotCalled {
    /// The request is refused with an error.
    Refused(ErrorObject),
    /// The problem is returned as a tool result, so that the model can read it.
    Told(String),
}

impl ToolSchemas {
    pub(in crate::server) fn of(tool: &ToolDefinition, is_implied: bool) -> Self {
        let output = tool.output_schema.as_ref();
        Self {
            is_implied,
            input: compile(&tool.name, "inputSchema", &tool.input_schema),
            output: output.map(|schema| compile(&tool.name, "outputSchema", schema)),
        }
    }

    /// Whether a tool may be called with these arguments. A message has at most
    /// `received_bytes` bytes.
    pub(in crate::server) fn check_arguments(
        &self,
        tool: &str,
        arguments: &mut Arguments,
        received_bytes: usize,
    ) -> Result<(), NotCalled> {
        let refused = |code, problem| Err(NotCalled::Refused(ErrorObject::new(code, problem)));
        // A tool with an unusable schema is not called, whether it is for the
        // arguments or for the result.
        let schema = match (&self.input, &self.output) {
            (Ok(input), None | Some(Ok(_))) => input,
            (Err(error), _) | (_, Some(Err(error))) => {
                return refused(error_code::INTERNAL_ERROR, format!("{tool:?}: {error}"));
            }
        };
        if self.is_implied {
            return Ok(());
        }
        let most = received_bytes.saturating_mul(DECODED);
        if is_larger_decoded(arguments.json().as_bytes(), most) {
            let problem = format!(
                "tools/call: `arguments` has too many values: decoded, they take more than {most} \
                 bytes; send fewer at once"
            );
            return refused(error_code::INVALID_PARAMS, problem);
        }
        let problem = match arguments.value() {
            Err(error) => format!("invalid arguments: {error}"),
            Ok(arguments) => match schema.check(arguments) {
                Ok(()) => return Ok(()),
                Err(unfit) if unfit.is_undecided() => {
                    format!("not called, since the arguments cannot be checked: {unfit}")
                }
                Err(unfit) => format!("invalid arguments: {unfit}"),
            },
        };
        Err(NotCalled::Told(problem))
    }

    /// Validates the structured content of a result. Undecided validation passes: schema and
    /// result are both the server's own.
    pub(in crate::server) fn check_result(
        &self,
        tool: &str,
        content: &Value,
    ) -> Result<(), String> {
        // An unusable schema was refused before the tool was called.
        let Some(Ok(schema)) = &self.output else {
            return Ok(());
        };
        match schema.check(content) {
            Err(unfit) if unfit.is_undecided() => {
                tracing::warn!(tool, %unfit, "a result is not checked against its output schema");
                Ok(())
            }
            checked => checked.map_err(|unfit| unfit.to_string()),
        }
    }
}

fn compile(tool: &str, keyword: &str, schema: &Map<String, Value>) -> Result<Schema, SchemaError> {
    let schema = Schema::compile(&Value::Object(schema.clone()));
    match &schema {
        Err(error) => tracing::error!(tool, keyword, %error, "this tool cannot be called"),
        Ok(schema) => {
            if let Some(patterns) = schema.unsupported_in_words() {
                tracing::warn!(
                    tool,
                    keyword,
                    patterns,
                    "what depends on these patterns is not checked: they cannot be matched in linear time"
                );
            }
        }
    }
    schema
}

/// Estimates whether JSON takes more than `most` bytes when it is decoded to a [`Value`].
fn is_larger_decoded(json: &[u8], most: usize) -> bool {
    if json.len().saturating_mul(MOST_DECODED) <= most {
        return false;
    }
    values_worth(json).saturating_mul(size_of::<Value>()) > most
}

/// Estimates the memory of decoded JSON, in values: one for each value, one for each name, and four
/// more for each list or object that is not empty, which has room for four at first.
fn values_worth(json: &[u8]) -> usize {
    let mut values = 1;
    let mut rest = json;
    while let [byte, more @ ..] = rest {
        rest = more;
        match byte {
            b'"' => rest = after_string(more),
            b',' | b':' => values += 1,
            b'[' | b'{' if !matches!(more.first(), Some(b']' | b'}')) => values += 5,
            _ => {}
        }
    }
    values
}

/// The rest after a string whose opening quote has been read.
fn after_string(mut rest: &[u8]) -> &[u8] {
    loop {
        rest = match rest {
            [] => return rest,
            [b'"', more @ ..] => return more,
            [b'\\', _, more @ ..] | [_, more @ ..] => more,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_decoded_json_is_estimated_from_its_text() {
        for (json, expected) in [
            ("7", 1),
            ("[]", 1),
            ("{}", 1),
            ("[1]", 6),
            ("[1,2,3]", 8),
            ("[[],[],[]]", 8),
            (r#"{"a":1}"#, 7),
            (r#"{"a":1,"b":{}}"#, 9),
            (r#""[1,2,{\"a\":3}]\\""#, 1),
            (r#"["a,b","\"",":"]"#, 8),
        ] {
            assert_eq!(values_worth(json.as_bytes()), expected, "{json}");
        }
    }
}
