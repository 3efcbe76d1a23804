//! Every error code that Belay sends or understands, and what it means.
//!
//! A code is the *peer's* judgement of a request. Events on our own side (a timeout, a lost
//! connection, a cancellation) have no code: they are [`Outcome`](crate::engine::Outcome)s.

/// The message is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// The message is JSON, but no valid request; the request comes at the wrong moment; or its id is
/// in use.
pub const INVALID_REQUEST: i64 = -32600;
/// The method is unknown, or its capability was not advertised.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters are invalid, the tool or prompt is unknown, or a `_meta` field is missing.
pub const INVALID_PARAMS: i64 = -32602;
/// The answering side failed, for example because a handler panicked.
pub const INTERNAL_ERROR: i64 = -32603;

/// HTTP headers that do not match the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare (2026-07-28).
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The server does not support the protocol version (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// The resource does not exist. Up to 2025-11-25; later revisions use [`INVALID_PARAMS`].
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
/// The user has to visit a URL first. In 2025-11-25 only.
pub const LEGACY_URL_ELICITATION_REQUIRED: i64 = -32042;

/// Belay's own code, outside the ranges that JSON-RPC and MCP reserve: the server is overloaded and
/// refused the request before it began. Nothing was done, so it is safe to retry.
pub const OVERLOADED: i64 = -31001;
/// Belay's own code: the server is shutting down and takes no more requests.
pub const SHUTTING_DOWN: i64 = -31002;

/// Whether only a modern server sends this code. After such an answer the era probe does not fall
/// back to legacy.
pub fn is_modern(code: i64) -> bool {
    matches!(
        code,
        HEADER_MISMATCH | MISSING_REQUIRED_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION
    )
}
