//! What a client does around every request besides sending it: caching, answering input requests,
//! adding headers that repeat tool arguments, and validating outputs.

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

/// The per-request features of a client.
#[derive(Clone, Default)]
pub(crate) struct CallHooks {
    /// The handlers that answer a server's input requests.
    pub(crate) input_handlers: Option<Arc<InputHandlers>>,
    /// This client's view of the cache.
    pub(crate) shelf: Option<Shelf>,
    /// The tools whose arguments are repeated in headers. Modern HTTP only.
    #[cfg(feature = "http")]
    pub(crate) known_tools: Option<KnownTools>,
    /// The output schemas of tools, if results are validated.
    #[cfg(feature = "validate")]
    pub(crate) outputs: Option<Outputs>,
}

impl CallHooks {
    /// Whether requests need no work here, except those whose answer may ask for input or
    /// whose results may be cached.
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

    /// The cache for a request's result. Other `_meta` keys may identify the user or change the
    /// answer, so a request that has any is always sent.
    fn shelf(&self, request: &CallRequest) -> Option<&Shelf> {
        let says_nothing = |key: &String| {
            let known = [LOG_LEVEL, TRACEPARENT, TRACESTATE, BAGGAGE];
            known.contains(&key.as_str())
        };
        let plain = request.meta.as_map().keys().all(says_nothing);
        self.shelf.as_ref().filter(|_| plain)
    }

    /// A cached result of the request, unless a fresh one is wanted.
    pub(crate) fn recall(&self, request: &CallRequest, fresh: bool) -> Option<RawJson> {
        let shelf = self.shelf(request).filter(|_| !fresh)?;
        let known = shelf.get(&request.method, &request.params)?;
        // Another client may have stored it, so this one has not learned from it yet.
        Some(self.take_in(request, known))
    }

    /// The cache's count of invalidations, to be taken before a request is sent.
    pub(crate) fn stamp(&self) -> u64 {
        self.shelf.as_ref().map_or(0, Shelf::stamp)
    }

    /// Handles a refusal. If the cursor of a page was refused, the cached pages of
    /// that list are stale, too.
    pub(crate) fn refused(&self, request: &CallRequest, error: &Error) {
        let code = error.refusal().map(|refusal| refusal.code);
        if let Some(shelf) = &self.shelf
            && code == Some(error_code::INVALID_PARAMS)
            && request.params.field("cursor").is_some()
        {
            shelf.forget(&request.method);
        }
    }

    /// Caches a result if that is allowed, and returns the part of it that is usable.
    pub(crate) fn learn(&self, request: &CallRequest, result: RawJson, stamp: u64) -> RawJson {
        let result = self.take_in(request, result);
        if let Some(shelf) = self.shelf(request) {
            shelf.put(&request.method, &request.params, &result, stamp);
        }
        result
    }

    /// Learns from a list of tools, and returns the tools that are usable.
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

    /// Validates the result of a tool call, if that is turned on.
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

    /// Removes the cached list of tools.
    pub(crate) fn forget_tools(&self) {
        if let Some(shelf) = &self.shelf {
            shelf.forget(ListTools::METHOD);
        }
    }
}

/// The tools that can be called: those with an invalid header declaration are left out.
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

    /// A result must not pass unchecked because another client has filled the cache.
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
