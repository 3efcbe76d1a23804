//! What a tool takes and gives, held against its schemas.

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::{Tool as Description, error_code};
use serde_json::{Map, Value};

use crate::{BadSchema, Schema};

/// The schemas of one tool.
pub(super) struct ToolSchemas {
    input: Result<Schema, BadSchema>,
    output: Option<Result<Schema, BadSchema>>,
}

/// Why arguments are not passed on.
pub(super) enum NotCalled {
    /// The request is refused.
    Refused(ErrorObject),
    /// The tool answers what is wrong with them, so that the model gets to see it.
    Told(String),
}

impl ToolSchemas {
    pub(super) fn of(tool: &Description) -> Self {
        let output = tool.output_schema.as_ref();
        Self {
            input: compile(&tool.name, "inputSchema", &tool.input_schema),
            output: output.map(|schema| compile(&tool.name, "outputSchema", schema)),
        }
    }

    /// Whether a tool may be called with these arguments.
    pub(super) fn check_arguments(&self, tool: &str, arguments: &RawJson) -> Result<(), NotCalled> {
        // What was to be checked and is not, is not let in; what it would give neither.
        let schema = match (&self.input, &self.output) {
            (Ok(input), None | Some(Ok(_))) => input,
            (Err(error), _) | (_, Some(Err(error))) => {
                let problem = format!("{tool:?}: {error}");
                let error = ErrorObject::new(error_code::INTERNAL_ERROR, problem);
                return Err(NotCalled::Refused(error));
            }
        };
        let problem = match arguments.decode() {
            Err(error) => format!("invalid arguments: {error}"),
            Ok(arguments) => match schema.check(&arguments) {
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
    pub(super) fn check_result(&self, tool: &str, content: &Value) -> Result<(), String> {
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

fn compile(tool: &str, keyword: &str, schema: &Map<String, Value>) -> Result<Schema, BadSchema> {
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
