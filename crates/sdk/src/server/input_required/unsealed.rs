//! Replaces `seal.rs` and `digest.rs` without the feature `sealed`: there is no encryption, so no
//! handler can ask questions in the modern era.

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::error_code;
use serde_json::Value;

use crate::Principal;

/// There is no key, so there are no settings.
#[derive(Clone, Default, Debug)]
pub(in crate::server) struct RequestState;

impl RequestState {
    /// No key is needed, so any process can continue a request.
    pub(crate) fn is_chosen(&self) -> bool {
        true
    }

    pub(super) fn seal(&self, _: &Bound<'_>, _: &[u8]) -> Result<String, ErrorObject> {
        let problem = "this server cannot ask in this revision of the protocol: it was built without \
                       the feature `sealed` of belay-mcp";
        Err(ErrorObject::new(error_code::INTERNAL_ERROR, problem))
    }

    pub(super) fn open(&self, _: &Bound<'_>, _: &str) -> Result<Vec<u8>, ErrorObject> {
        let problem = "`requestState` was not given out by this server; begin without it";
        Err(ErrorObject::new(error_code::INVALID_PARAMS, problem))
    }
}

/// What state would be bound to.
#[expect(dead_code, reason = "nothing is sealed")]
pub(super) struct Bound<'a> {
    pub(super) principal: Option<&'a Principal>,
    pub(super) method: &'a str,
    pub(super) params: Digested,
}

/// All digests are equal, since no question is remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Digested;

impl Digested {
    pub(super) fn of(_: &Value) -> Self {
        Self
    }

    pub(super) fn short(&self) -> String {
        String::new()
    }
}
