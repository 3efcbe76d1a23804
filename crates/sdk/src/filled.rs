//! Validation of forms that were filled in.

use belay_protocol::types::{ElicitAction, ElicitResult};
use serde_json::Value;

/// Validates the content of an accepted form, and returns the problem. Without the feature
/// `validate` everything is accepted.
pub(crate) fn check(form: &Value, answer: &ElicitResult) -> Result<(), String> {
    if answer.action != ElicitAction::Accept {
        return Ok(());
    }
    let content = answer.content.clone().unwrap_or_default();
    fits(form, &Value::Object(content))
}

#[cfg(feature = "validate")]
fn fits(form: &Value, content: &Value) -> Result<(), String> {
    let schema = crate::schema::Schema::compile(form).map_err(|error| error.to_string())?;
    schema.check(content).map_err(|unfit| unfit.to_string())
}

#[cfg(not(feature = "validate"))]
fn fits(_: &Value, _: &Value) -> Result<(), String> {
    Ok(())
}
