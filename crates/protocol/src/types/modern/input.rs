//! Round trips within a request: a result that asks for input.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::types::{CallTool, Extra, GetPrompt, Named, ReadResource, Request, ResultType};

record! {
    /// A result that asks for input. The client answers the input requests and repeats the request.
    ///
    /// ```
    /// use belay_protocol::types::modern::{InputRequest, InputRequiredResult};
    /// use belay_protocol::types::{ListRoots, ListRootsParams};
    ///
    /// let mut result = InputRequiredResult::new();
    /// let roots = InputRequest::of::<ListRoots>(&ListRootsParams::new()).unwrap();
    /// result.input_requests.get_or_insert_default().insert("roots", roots);
    /// let json = serde_json::to_string(&result).unwrap();
    /// assert_eq!(json, r#"{"inputRequests":{"roots":{"method":"roots/list"}}}"#);
    /// ```
    pub struct InputRequiredResult {
        optional {
            /// Always `input_required`.
            result_type: ResultType = "resultType",
            /// The input requests, each under the name that its answer gets.
            input_requests: Named<InputRequest> = "inputRequests",
            /// Opaque state that the client sends back unchanged.
            request_state: String = "requestState",
        }
    }
}

impl InputRequiredResult {
    /// Whether a request of this method may be answered with an input request.
    ///
    /// ```
    /// use belay_protocol::types::modern::InputRequiredResult;
    /// assert!(InputRequiredResult::may_answer("tools/call"));
    /// assert!(!InputRequiredResult::may_answer("tools/list"));
    /// ```
    pub fn may_answer(method: &str) -> bool {
        matches!(
            method,
            CallTool::METHOD | GetPrompt::METHOD | ReadResource::METHOD
        )
    }
}

record! {
    /// One input request: what would be a request from the server in the legacy era.
    pub struct InputRequest {
        required {
            /// The method.
            method: String = "method",
        }
        optional {
            /// The parameters.
            params: Map<String, Value> = "params",
        }
    }
}

impl InputRequest {
    /// Creates an input request from a request type.
    pub fn of<R: Request>(params: &R::Params) -> Result<Self, serde_json::Error> {
        Self::by_name(R::METHOD, params)
    }

    /// Creates an input request from a method name.
    pub fn by_name(method: &str, params: &impl Serialize) -> Result<Self, serde_json::Error> {
        let mut request = Self::new(method);
        let params: Map<String, Value> = match serde_json::to_value(params)? {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        request.params = Some(params).filter(|params| !params.is_empty());
        Ok(request)
    }
}

/// The answers to input requests, by the names of those.
pub type InputResponses = Extra;
