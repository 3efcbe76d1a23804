//! Forms that were filled in.

use belay_protocol::types::{ElicitAction, ElicitResult};
use serde_json::Value;

use crate::Schema;

/// Whether what was filled in is what a form asks for. What is wrong is told.
pub(crate) fn check(form: &Value, answer: &ElicitResult) -> Result<(), String> {
    if answer.action != ElicitAction::Accept {
        return Ok(());
    }
    let schema = Schema::compile(form).map_err(|error| error.to_string())?;
    let content = Value::Object(answer.content.clone().unwrap_or_default());
    schema.check(&content).map_err(|unfit| unfit.to_string())
}
