//! Every error code that can stand on the wire, and what it means.
//!
//! A code says what the *peer* thought of a request. What happened on our own side (a deadline, a
//! lost connection, a cancellation) never wears one: that is an
//! [`Outcome`](crate::engine::Outcome).

/// Not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON, but not a request; or a request at the wrong moment; or an id that is in use.
pub const INVALID_REQUEST: i64 = -32600;
/// A method nobody here knows, or one whose capability was not advertised.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Parameters that do not fit, an unknown tool or prompt, missing `_meta` fields.
pub const INVALID_PARAMS: i64 = -32602;
/// Something broke on the answering side, a panicking handler among it.
pub const INTERNAL_ERROR: i64 = -32603;

/// HTTP headers that do not match the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a capability that the client did not declare (2026-07-28).
pub const MISSING_REQUIRED_CLIENT_CAPABILITY: i64 = -32021;
/// The protocol version is not one the server speaks (2026-07-28).
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

/// No such resource, until 2025-11-25; later revisions say [`INVALID_PARAMS`].
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
/// The user has to visit a URL first, in 2025-11-25 only.
pub const LEGACY_URL_ELICITATION_REQUIRED: i64 = -32042;

/// Belay's own, outside the ranges that JSON-RPC and MCP reserve: so many requests are running
/// that this one was refused before it began. Nothing was done; it is safe to send it again.
pub const OVERLOADED: i64 = -31001;
/// Belay's own: the server is shutting down and takes no more requests.
pub const SHUTTING_DOWN: i64 = -31002;

/// Whether only a modern server would send this code, so that it must not be taken for a legacy
/// one when the era is probed.
pub fn is_modern(code: i64) -> bool {
    matches!(
        code,
        HEADER_MISMATCH | MISSING_REQUIRED_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION
    )
}
