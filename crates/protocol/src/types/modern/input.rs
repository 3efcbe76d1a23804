//! Rounds: a result that asks for something first.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::types::{CallTool, Extra, GetPrompt, Named, ReadResource, Request, ResultType};

record! {
    /// A result that is none yet: the request is made again once the client has what is asked for.
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
            /// `input_required`.
            result_type: ResultType = "resultType",
            /// What is asked for, each under a name that its answer will have.
            input_requests: Named<InputRequest> = "inputRequests",
            /// What the server wants back, as it is.
            request_state: String = "requestState",
        }
    }
}

impl InputRequiredResult {
    /// Whether a request of this method may be answered so.
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
    /// One thing that is asked for: what would be a request in the legacy era.
    pub struct InputRequest {
        required {
            /// What is asked.
            method: String = "method",
        }
        optional {
            /// With what.
            params: Map<String, Value> = "params",
        }
    }
}

impl InputRequest {
    /// A request, as a question of a round.
    pub fn of<R: Request>(params: &R::Params) -> Result<Self, serde_json::Error> {
        Self::by_name(R::METHOD, params)
    }

    /// The same by name.
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

/// The answers of a round, by the names of what was asked for.
pub type InputResponses = Extra;
