//! What tools say that they give, and whether they do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use belay_protocol::jsonrpc::RawJson;
use serde_json::{Map, Value};

use crate::{BadSchema, Error, Schema};

/// So many tools are remembered.
const MOST: usize = 1000;

/// The schemas of the results of tools, as a server has listed them.
#[derive(Clone, Default)]
pub(crate) struct Outputs(Arc<Mutex<HashMap<String, Arc<Output>>>>);

struct Output {
    schema: Value,
    /// Compiled when it is first needed.
    compiled: OnceLock<Result<Schema, BadSchema>>,
}

impl Outputs {
    /// Takes in a page of tools.
    pub(super) fn learn(&self, page: &RawJson) {
        let Some(Ok(tools)) = page
            .field("tools")
            .map(|tools| tools.decode::<Vec<Value>>())
        else {
            return;
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else {
                continue;
            };
            match tool.get("outputSchema") {
                Some(schema) if known.len() < MOST || known.contains_key(name) => {
                    let output = Output {
                        schema: schema.clone(),
                        compiled: OnceLock::new(),
                    };
                    known.insert(name.to_owned(), Arc::new(output));
                }
                _ => _ = known.remove(name),
            }
        }
    }

    /// Whether the result of a tool is what it says. One that failed has nothing to say.
    pub(super) fn check(&self, params: &RawJson, result: &RawJson) -> Result<(), Error> {
        let name = params.field("name");
        let name = name.as_ref().and_then(RawJson::as_text).unwrap_or_default();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(output) = known.get(&*name).cloned() else {
            return Ok(());
        };
        drop(known);
        let result: Map<String, Value> = result.decode().unwrap_or_default();
        if result.get("isError") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        // What was to be checked and is not, is not passed on.
        let compiled = || Schema::compile(&output.schema);
        let schema = output.compiled.get_or_init(compiled).as_ref();
        let schema = schema.map_err(|error| unfit(&format!("`outputSchema`: {error}")))?;
        let Some(content) = result.get("structuredContent") else {
            return Err(unfit(
                "`structuredContent` is missing, though the tool has an output schema",
            ));
        };
        schema
            .check(content)
            .map_err(|error| unfit(&format!("`structuredContent`: {error}")))
    }
}

fn unfit(problem: &str) -> Error {
    Error::bad_result(serde::de::Error::custom(problem))
}
