//! Questions to the client: the capabilities they need, and how each protocol version writes them.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use belay_protocol::types::modern::InputRequest;
use belay_protocol::types::{
    ClientCapabilities, CreateMessage, Elicit, ElicitationCapability, Extra, ListCapability,
    ProtocolVersion, Request as _, SamplingCapability,
};
use serde_json::Value;

use super::InputError;

/// The capabilities that a client needs to be asked this.
pub(super) fn needs(method: &str) -> fn(&Value) -> ClientCapabilities {
    match method {
        Elicit::METHOD => |params| {
            let mut elicitation = ElicitationCapability::new();
            match params.get("mode").and_then(Value::as_str) {
                Some("url") => elicitation.url = Some(Extra::new()),
                _ => elicitation.form = Some(Extra::new()),
            }
            let mut needed = ClientCapabilities::new();
            needed.elicitation = Some(elicitation);
            needed
        },
        CreateMessage::METHOD => |params| {
            let mut sampling = SamplingCapability::new();
            if params.get("tools").is_some() || params.get("toolChoice").is_some() {
                sampling.tools = Some(Extra::new());
            }
            let context = params.get("includeContext").and_then(Value::as_str);
            if context.is_some_and(|context| context != "none") {
                sampling.context = Some(Extra::new());
            }
            let mut needed = ClientCapabilities::new();
            needed.sampling = Some(sampling);
            needed
        },
        _ => |_| {
            let mut needed = ClientCapabilities::new();
            needed.roots = Some(ListCapability::new());
            needed
        },
    }
}

/// The needed capabilities that a client has not declared.
pub(super) fn missing(
    needed: &ClientCapabilities,
    declared: &ClientCapabilities,
) -> Option<ClientCapabilities> {
    let mut missing = ClientCapabilities::new();
    if needed.roots.is_some() && declared.roots.is_none() {
        missing.roots.clone_from(&needed.roots);
    }
    if let Some(sampling) = &needed.sampling {
        let declared = declared.sampling.as_ref();
        let tools = sampling.tools.is_none() || declared.is_some_and(|it| it.tools.is_some());
        let has_context = declared.is_some_and(|it| it.context.is_some());
        let context = sampling.context.is_none() || has_context;
        if declared.is_none() || !tools || !context {
            missing.sampling = Some(sampling.clone());
        }
    }
    if let Some(elicitation) = &needed.elicitation {
        let can = declared.elicitation.as_ref().is_some_and(|declared| {
            match elicitation.url.is_some() {
                true => declared.url.is_some(),
                // An elicitation capability without modes means forms.
                false => declared.form.is_some() || declared.url.is_none(),
            }
        });
        if !can {
            let mut elicitation = elicitation.clone();
            // An empty capability is how versions without modes declare forms.
            elicitation.form = None;
            missing.elicitation = Some(elicitation);
        }
    }
    (missing != ClientCapabilities::new()).then_some(missing)
}

pub(super) fn names(missing: &ClientCapabilities) -> Vec<String> {
    let named = [
        ("`roots`", missing.roots.is_some()),
        ("`sampling`", missing.sampling.is_some()),
        ("`elicitation`", missing.elicitation.is_some()),
    ];
    let missing = named.into_iter().filter(|(_, missing)| *missing);
    missing.map(|(name, _)| name.to_owned()).collect()
}

/// Adapts a question to a protocol version: older ones have no modes, and one has
/// ids for URL visits.
pub(super) fn suit(
    question: &mut InputRequest,
    version: ProtocolVersion,
) -> Result<(), InputError> {
    let Some(params) = question.params.as_mut() else {
        return Ok(());
    };
    match params.get("mode").and_then(Value::as_str) {
        Some("form") if !version.has_elicitation_modes() => {
            params.shift_remove("mode");
            let fields = params.get_mut("requestedSchema");
            let fields = fields.and_then(|schema| schema.get_mut("properties"));
            for field in fields.and_then(Value::as_object_mut).into_iter().flatten() {
                if let Some(field) = field.1.as_object_mut() {
                    plain_field(field)?;
                }
            }
        }
        Some("url") if !version.names_visits() => _ = params.shift_remove("elicitationId"),
        Some("url") if !params.contains_key("elicitationId") => {
            params.insert("elicitationId".into(), new_id().into());
        }
        _ => {}
    }
    Ok(())
}

/// An unpredictable, unique id: a counter hashed with random keys, which the
/// operating system seeds.
fn new_id() -> String {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let half = || RandomState::new().hash_one(number);
    format!("{:016x}{:016x}", half(), half())
}

/// Rewrites a field for 2025-06-18: the titles of choices are a list of their own, and only
/// a boolean can have a default.
fn plain_field(field: &mut serde_json::Map<String, Value>) -> Result<(), InputError> {
    if field.get("type").and_then(Value::as_str) == Some("array") {
        let problem = "this client's revision of the protocol has no field for several choices";
        return Err(InputError::bad_question(problem.into()));
    }
    if let Some(Value::Array(options)) = field.shift_remove("oneOf") {
        let member = |name: &str| -> Value {
            let members = options.iter().filter_map(|option| option.get(name));
            members.cloned().collect()
        };
        let (values, titles) = (member("const"), member("title"));
        field.insert("enum".into(), values);
        field.insert("enumNames".into(), titles);
    }
    if field.get("type").and_then(Value::as_str) != Some("boolean") {
        field.shift_remove("default");
    }
    Ok(())
}
