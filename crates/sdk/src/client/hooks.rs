//! What a client does by itself around every request: it uses again what it may, it answers what it
//! is asked, and it knows which headers a tool wants.

use std::sync::Arc;

use belay_protocol::jsonrpc::{RawJson, Text};
#[cfg(any(feature = "validate", test))]
use belay_protocol::types::CallTool;
use belay_protocol::types::meta_key::{BAGGAGE, LOG_LEVEL, TRACEPARENT, TRACESTATE};
use belay_protocol::types::{ListTools, Request as _, error_code};
#[cfg(feature = "http")]
use serde_json::{Map, Value};

use super::cache::Shelf;
use super::input_handlers::InputHandlers;
#[cfg(feature = "validate")]
use super::outputs::Outputs;
use crate::Error;
use crate::call::CallRequest;
#[cfg(feature = "http")]
use crate::transport::http::param_headers::KnownTools;

/// What a client does by itself.
#[derive(Clone, Default)]
pub(crate) struct CallHooks {
    /// Who answers when a server asks.
    pub(crate) input_handlers: Option<Arc<InputHandlers>>,
    /// What may be used again.
    pub(crate) shelf: Option<Shelf>,
    /// What tools want to see in headers. Modern HTTP only.
    #[cfg(feature = "http")]
    pub(crate) known_tools: Option<KnownTools>,
    /// What tools say that they give, if that is checked.
    #[cfg(feature = "validate")]
    pub(crate) outputs: Option<Outputs>,
}

impl CallHooks {
    /// Whether there is nothing to do for any request but those that can take rounds, or whose results may
    /// be used again.
    pub(crate) fn is_idle(&self) -> bool {
        #[cfg(feature = "http")]
        if self.known_tools.is_some() {
            return false;
        }
        #[cfg(feature = "validate")]
        if self.outputs.is_some() {
            return false;
        }
        self.input_handlers
            .as_ref()
            .is_none_or(|input_handlers| input_handlers.is_empty())
    }

    /// Where the result of a request may be kept. What travels beside the parameters may say who
    /// asks, or anything else, so a request with something beside them is always made.
    fn shelf(&self, request: &CallRequest) -> Option<&Shelf> {
        let says_nothing = |key: &String| {
            let known = [LOG_LEVEL, TRACEPARENT, TRACESTATE, BAGGAGE];
            known.contains(&key.as_str())
        };
        let plain = request.meta.as_map().keys().all(says_nothing);
        self.shelf.as_ref().filter(|_| plain)
    }

    /// A result that may be used again.
    pub(crate) fn recall(&self, request: &CallRequest, fresh: bool) -> Option<RawJson> {
        let shelf = self.shelf(request).filter(|_| !fresh)?;
        let known = shelf.get(&request.method, &request.params)?;
        // Somebody else may have put it there.
        Some(self.take_in(request, known))
    }

    /// What tells whether something changes while a request is under way.
    pub(crate) fn stamp(&self) -> u64 {
        self.shelf.as_ref().map_or(0, Shelf::stamp)
    }

    /// A request was refused. If it named a page that is not there any more, neither are the others.
    pub(crate) fn refused(&self, request: &CallRequest, error: &Error) {
        let code = error.refusal().map(|refusal| refusal.code);
        if let Some(shelf) = &self.shelf
            && code == Some(error_code::INVALID_PARAMS)
            && request.params.field("cursor").is_some()
        {
            shelf.forget(&request.method);
        }
    }

    /// Keeps a result if it may be used again, and gives what of it may be used.
    pub(crate) fn learn(&self, request: &CallRequest, result: RawJson, stamp: u64) -> RawJson {
        let result = self.take_in(request, result);
        if let Some(shelf) = self.shelf(request) {
            shelf.put(&request.method, &request.params, &result, stamp);
        }
        result
    }

    /// Looks at a list of tools, and gives what of it may be used.
    fn take_in(&self, request: &CallRequest, result: RawJson) -> RawJson {
        if request.method != *ListTools::METHOD {
            return result;
        }
        #[cfg(feature = "validate")]
        if let Some(outputs) = &self.outputs {
            outputs.learn(&result);
        }
        #[cfg(feature = "http")]
        if let Some(known) = &self.known_tools {
            return usable_tools(known, result);
        }
        result
    }

    /// Whether the result of a tool is what the tool says that it gives.
    pub(crate) fn check(
        &self,
        method: &Text,
        params: &RawJson,
        result: &RawJson,
    ) -> Result<(), Error> {
        #[cfg(feature = "validate")]
        if let Some(outputs) = &self.outputs
            && *method == *CallTool::METHOD
        {
            return outputs.check(params, result);
        }
        let _ = (method, params, result);
        Ok(())
    }

    /// What is known of tools is not true any more.
    pub(crate) fn forget_tools(&self) {
        if let Some(shelf) = &self.shelf {
            shelf.forget(ListTools::METHOD);
        }
    }
}

/// The tools that can be called: one whose headers are wrong is left out.
#[cfg(feature = "http")]
fn usable_tools(known: &KnownTools, result: RawJson) -> RawJson {
    let Ok(mut page) = result.decode::<Map<String, Value>>() else {
        return result;
    };
    let Some(Value::Array(tools)) = page.get_mut("tools") else {
        return result;
    };
    let before = tools.len();
    tools.retain(|tool| {
        let name = tool.get("name").and_then(Value::as_str);
        let schema = tool.get("inputSchema").and_then(Value::as_object);
        match (name, schema) {
            (Some(name), Some(schema)) => known.learn(name, schema),
            _ => true,
        }
    });
    match tools.len() == before {
        true => result,
        false => RawJson::encode(&page).unwrap_or(result),
    }
}

#[cfg(all(test, feature = "validate"))]
mod tests {
    use belay_protocol::types::Meta;
    use serde_json::json;

    use super::*;
    use crate::client::Cache;

    fn raw(value: &serde_json::Value) -> RawJson {
        RawJson::encode(value).expect("it is JSON")
    }

    fn asked(method: &str, params: serde_json::Value) -> CallRequest {
        CallRequest {
            method: method.to_owned().into(),
            params: raw(&params),
            meta: Meta::default(),
        }
    }

    /// Nothing passes unchecked because somebody else has filled the cache.
    #[tokio::test]
    async fn a_list_from_the_cache_is_learnt_from() {
        let cache = Cache::default();
        let hooks = || CallHooks {
            shelf: Some(Shelf::new(cache.clone(), "a".into(), [].into())),
            outputs: Some(Outputs::default()),
            ..CallHooks::default()
        };
        let (one, other) = (hooks(), hooks());
        let list = asked(ListTools::METHOD, json!({}));
        let tool = json!({ "name": "add", "outputSchema": { "required": ["sum"] } });
        let page = json!({ "tools": [tool], "ttlMs": 60000, "cacheScope": "private" });
        one.learn(&list, raw(&page), one.stamp());
        let call = asked(CallTool::METHOD, json!({ "name": "add" }));
        let wrong = raw(&json!({ "structuredContent": {} }));
        let check = |hooks: &CallHooks| hooks.check(&call.method, &call.params, &wrong);
        assert!(check(&other).is_ok(), "it knows nothing yet");
        assert!(other.recall(&list, false).is_some());
        assert!(check(&other).is_err());
    }
}
