//! Classification of a POST, and the comparison of its headers with its body.

use belay_protocol::jsonrpc::{DecodeError, Message, RawJson};
use belay_protocol::types::legacy::Initialize;
use belay_protocol::types::{CallTool, Era, ProtocolVersion, Request as _, meta_key};
use http::StatusCode;
use http::header::HeaderMap;

use super::super::headers::{self, single};
use super::refusal::Refusal;
use crate::server::Tools;

/// What a message belongs to, which decides how it is served.
pub(super) enum PostKind {
    /// A modern request, by its body or by its header.
    Modern,
    /// A request that opens a session.
    Initialize,
    /// A message in a session.
    Session,
    /// A message that says neither.
    Alone,
}

impl PostKind {
    pub(super) fn of(
        headers: &HeaderMap,
        message: &Result<Message, DecodeError>,
        facts: &MessageFacts,
    ) -> Self {
        if facts.version.is_some() {
            return Self::Modern;
        }
        if headers.contains_key(headers::SESSION_ID) && !has_modern_version(headers) {
            return Self::Session;
        }
        if is_initialize(message) {
            return Self::Initialize;
        }
        match has_modern_version(headers) {
            true => Self::Modern,
            false => Self::Alone,
        }
    }
}

pub(super) fn is_initialize(message: &Result<Message, DecodeError>) -> bool {
    matches!(message, Ok(Message::Request(request)) if request.method == *Initialize::METHOD)
}

/// The parts of a request's body that headers repeat.
#[derive(Default)]
pub(super) struct MessageFacts {
    /// The protocol version in its `_meta`.
    version: Option<RawJson>,
    /// The name of the tool or prompt, or the URI of the resource.
    name: Option<RawJson>,
}

impl MessageFacts {
    pub(super) fn of(message: &Result<Message, DecodeError>) -> Self {
        let Ok(Message::Request(request)) = message else {
            return Self::default();
        };
        let Some(params) = &request.params else {
            return Self::default();
        };
        let (meta, name) = match headers::named_by(&request.method) {
            Some(field) => {
                let [meta, name] = params.fields(["_meta", field]);
                (meta, name)
            }
            None => (params.field("_meta"), None),
        };
        Self {
            version: meta.and_then(|meta| meta.field(meta_key::PROTOCOL_VERSION)),
            name,
        }
    }
}

/// Whether the version header names a version that is not a legacy one.
fn has_modern_version(headers: &HeaderMap) -> bool {
    let Ok(Some(version)) = single(headers, &headers::PROTOCOL_VERSION) else {
        return false;
    };
    let known: Option<ProtocolVersion> = version.parse().ok();
    known.is_none_or(|version| version.era() == Era::Modern)
}

/// The legacy version in the version header, if there is one.
pub(super) fn check_version(headers: &HeaderMap) -> Result<Option<ProtocolVersion>, Refusal> {
    let refused = |problem: &str| Refusal::new(StatusCode::BAD_REQUEST, problem);
    match single(headers, &headers::PROTOCOL_VERSION) {
        Ok(None) => Ok(None),
        Ok(Some(version)) => match version.parse() {
            Ok(version) if ProtocolVersion::era(version) == Era::Legacy => Ok(Some(version)),
            _ => Err(refused(
                "`MCP-Protocol-Version` names no revision that has sessions here",
            )),
        },
        Err(_) => Err(refused("`MCP-Protocol-Version` must be there once")),
    }
}

/// Checks that the headers of a modern request match its body (2026-07-28, Server Validation),
/// since intermediaries may have acted on the headers.
pub(super) fn check_modern(
    tools: &Tools,
    headers: &HeaderMap,
    message: &Result<Message, DecodeError>,
    facts: &MessageFacts,
) -> Result<(), Refusal> {
    let Ok(Message::Request(request)) = message else {
        return Ok(());
    };
    let check = |header: &http::HeaderName, name: &str, body: &str| {
        let problem = match single(headers, header) {
            Ok(Some(value)) if header == headers::NAME => match headers::decode(value) {
                Some(decoded) if decoded == body => return Ok(()),
                Some(decoded) => format!("`{name}` is {decoded:?}, and in the body it is {body:?}"),
                None => format!("`{name}` is not valid base64"),
            },
            Ok(Some(value)) if value == body => return Ok(()),
            Ok(Some(value)) => format!("`{name}` is {value:?}, and in the body it is {body:?}"),
            Ok(None) => format!("`{name}` is missing; it must be {body:?}, as in the body"),
            Err(_) => format!("`{name}` must be there once, as plain text"),
        };
        Err(Refusal::mismatch(&request.id, problem))
    };
    // Without a version in the body, the engine reports what is missing.
    let Some(version) = &facts.version else {
        return Ok(());
    };
    if let Some(version) = version.as_text() {
        check(&headers::PROTOCOL_VERSION, "MCP-Protocol-Version", &version)?;
    }
    check(&headers::METHOD, "Mcp-Method", &request.method)?;
    if let Some(name) = facts.name.as_ref().and_then(RawJson::as_text) {
        check(&headers::NAME, "Mcp-Name", &name)?;
    }
    if request.method == *CallTool::METHOD {
        let checked = tools.check_headers(headers, request.params.as_ref());
        checked.map_err(|problem| Refusal::mismatch(&request.id, problem))?;
    }
    Ok(())
}
