//! What a tool takes and gives, held against its schemas.

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::{Tool as Description, error_code};
use serde_json::{Map, Value};

use super::arguments::Arguments;
use crate::schema::{Schema, SchemaError};

/// Arguments that are decoded take up to so many times the bytes that a message may have. A table takes so
/// many times its text, and a list within a list 150 times.
const DECODED: usize = 16;
/// Nothing takes so many times its text, so that it need not be looked at while it is short.
const MOST_DECODED: usize = 256;

/// The schemas of one tool.
pub(in crate::server) struct ToolSchemas {
    input: Result<Schema, SchemaError>,
    /// The type of the arguments refuses all that the schema does, so nothing is checked twice.
    is_implied: bool,
    output: Option<Result<Schema, SchemaError>>,
}

/// Why arguments are not passed on.
pub(in crate::server) enum NotCalled {
    /// The request is refused.
    Refused(ErrorObject),
    /// The tool answers what is wrong with them, so that the model gets to see it.
    Told(String),
}

impl ToolSchemas {
    pub(in crate::server) fn of(tool: &Description, is_implied: bool) -> Self {
        let output = tool.output_schema.as_ref();
        Self {
            is_implied,
            input: compile(&tool.name, "inputSchema", &tool.input_schema),
            output: output.map(|schema| compile(&tool.name, "outputSchema", schema)),
        }
    }

    /// Whether a tool may be called with these arguments, in a message of `received_bytes` at most.
    pub(in crate::server) fn check_arguments(
        &self,
        tool: &str,
        arguments: &mut Arguments,
        received_bytes: usize,
    ) -> Result<(), NotCalled> {
        let refused = |code, problem| Err(NotCalled::Refused(ErrorObject::new(code, problem)));
        // What was to be checked and is not, is not let in; what it would give neither.
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

    /// What is wrong with the structured content of a result. What cannot be found out is not wrong: the
    /// schema is the server's own, and so is the result.
    pub(in crate::server) fn check_result(
        &self,
        tool: &str,
        content: &Value,
    ) -> Result<(), String> {
        // One that cannot be used was refused before the tool was called.
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

/// Whether JSON takes more than so many bytes when it is decoded to a [`Value`], about.
fn is_larger_decoded(json: &[u8], most: usize) -> bool {
    if json.len().saturating_mul(MOST_DECODED) <= most {
        return false;
    }
    values_worth(json).saturating_mul(size_of::<Value>()) > most
}

/// How many values would take as much memory as well-formed JSON does when it is decoded: itself, one for
/// each name, and four for a list or an object with anything in it, which has room for as many at first.
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

/// What comes after a string whose opening quote has been read.
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
