//! Validation of tool results against the output schemas that the server has listed.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use belay_protocol::jsonrpc::RawJson;
use serde_json::Value;

use crate::Error;
use crate::schema::{Schema, SchemaError};
use crate::sync::Mutex;

/// The most tools whose schemas are remembered.
const MOST: usize = 1000;
/// The most bytes of schemas that are remembered.
const BYTES: usize = 8 << 20;

/// The output schemas of tools, as a server has listed them.
#[derive(Clone, Default)]
pub(crate) struct Outputs(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    tools: HashMap<String, Arc<Output>>,
    bytes: usize,
    /// Some schema was not remembered, because a limit was reached.
    overflowed: bool,
}

struct Output {
    schema: RawJson,
    /// Compiled on first use.
    compiled: OnceLock<Result<Schema, SchemaError>>,
}

impl Outputs {
    /// Remembers the output schemas in a page of `tools/list`.
    pub(super) fn learn(&self, page: &RawJson) {
        let Some(Ok(tools)) = page
            .field("tools")
            .map(|tools| tools.decode::<Vec<RawJson>>())
        else {
            return;
        };
        let mut known = self.0.lock();
        for tool in tools {
            let [name, schema] = tool.fields(["name", "outputSchema"]);
            let name = name.as_ref().and_then(RawJson::as_text);
            let Some(name) = name.map(std::borrow::Cow::into_owned) else {
                continue;
            };
            let schema = schema.filter(|schema| schema.as_bytes() != b"null");
            known.take_in(name, schema);
        }
    }

    /// Validates a tool's result against its output schema. A result with `isError`
    /// is not validated.
    pub(super) fn check(&self, params: &RawJson, result: &RawJson) -> Result<(), Error> {
        let name = params.field("name");
        let name = name.as_ref().and_then(RawJson::as_text).unwrap_or_default();
        let output = {
            let known = self.0.lock();
            match known.tools.get(&*name).cloned() {
                Some(output) => output,
                None if known.overflowed => {
                    let problem = "the server has too many tools for their results to be checked";
                    return Err(unfit(problem));
                }
                None => return Ok(()),
            }
        };
        let [failed, content] = result.fields(["isError", "structuredContent"]);
        if failed.is_some_and(|failed| failed.as_bytes() == b"true") {
            return Ok(());
        }
        // A result that cannot be checked because its schema is invalid is not passed on.
        let schema = output.compiled.get_or_init(|| output.compile(&name));
        let schema = schema.as_ref();
        let schema = schema.map_err(|error| unfit(&format!("`outputSchema`: {error}")))?;
        let Some(content) = content else {
            return Err(unfit(
                "`structuredContent` is missing, though the tool has an output schema",
            ));
        };
        let problem = |what: &dyn std::fmt::Display| unfit(&format!("`structuredContent`: {what}"));
        let content: Value = content.decode().map_err(|error| problem(&error))?;
        match schema.check(&content) {
            // The result is passed on, because the server wrote the schema: it gains nothing from
            // one that takes too much work, since a schema that accepts everything does the same.
            // It has not broken the protocol either.
            Err(why) if why.is_undecided() => {
                let tool = &*name;
                tracing::warn!(tool, %why, "a result is not checked against its output schema");
                Ok(())
            }
            checked => checked.map_err(|error| problem(&error)),
        }
    }
}

impl Output {
    fn compile(&self, tool: &str) -> Result<Schema, SchemaError> {
        let schema = self.schema.decode();
        let schema = schema.map_err(|error| SchemaError::new(error.to_string()))?;
        let schema = Schema::compile(&schema)?;
        if let Some(patterns) = schema.unsupported_in_words() {
            tracing::warn!(
                tool,
                patterns,
                "patterns of an output schema are not checked: they cannot be matched in linear time"
            );
        }
        Ok(schema)
    }
}

impl Known {
    fn take_in(&mut self, name: String, schema: Option<RawJson>) {
        if let Some(before) = self.tools.remove(&name) {
            self.bytes -= before.schema.as_bytes().len();
        }
        let Some(schema) = schema else {
            return;
        };
        let bytes = self.bytes + schema.as_bytes().len();
        if self.tools.len() == MOST || bytes > BYTES {
            self.overflowed = true;
            return;
        }
        self.bytes = bytes;
        let compiled = OnceLock::new();
        self.tools
            .insert(name, Arc::new(Output { schema, compiled }));
    }
}

fn unfit(problem: &str) -> Error {
    Error::bad_result(serde::de::Error::custom(problem))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(value: Value) -> RawJson {
        RawJson::encode(&value).expect("it is JSON")
    }

    fn tools(tools: Value) -> RawJson {
        raw(json!({ "tools": tools }))
    }

    /// A forgotten schema must not make a result pass unchecked.
    #[test]
    fn too_many_schemas_are_not_forgotten_silently() {
        let called = |name: &str| raw(json!({ "name": name }));
        let result = raw(json!({ "content": [], "structuredContent": { "a": 1 } }));
        let outputs = Outputs::default();
        outputs.learn(&tools(json!([
            { "name": "good", "outputSchema": { "type": "object" } },
            { "name": "none", "outputSchema": null },
            { "name": "bad", "outputSchema": { "type": "string" } },
        ])));
        assert!(outputs.check(&called("good"), &result).is_ok());
        assert!(outputs.check(&called("none"), &result).is_ok());
        assert!(outputs.check(&called("bad"), &result).is_err());
        // A tool that is listed again, with another schema.
        outputs.learn(&tools(
            json!([{ "name": "bad", "outputSchema": { "type": "object" } }]),
        ));
        assert!(outputs.check(&called("bad"), &result).is_ok());
        assert!(outputs.check(&called("unknown"), &result).is_ok());
        let large = json!({ "description": "x".repeat(BYTES) });
        outputs.learn(&tools(json!([{ "name": "large", "outputSchema": large }])));
        assert!(outputs.check(&called("large"), &result).is_err());
        assert!(outputs.check(&called("good"), &result).is_ok());
    }

    /// A number that is too large for `serde_json::Value`.
    #[test]
    fn what_cannot_be_read_does_not_fit() {
        let outputs = Outputs::default();
        outputs.learn(&tools(json!([{ "name": "a", "outputSchema": {} }])));
        let text = r#"{"structuredContent":{"x":1e999}}"#;
        let result = RawJson::parse(text.as_bytes()).expect("it is JSON");
        let error = outputs.check(&raw(json!({ "name": "a" })), &result);
        assert_eq!(error.unwrap_err().kind(), crate::ErrorKind::Violated);
    }
}
