//! What each role may do, by era and wire. Shared code asks here instead of comparing versions.

use crate::jsonrpc::{ErrorObject, Params, RawJson, Text, fields_of, text_of};
use crate::types::legacy::{Initialize, Ping};
use crate::types::modern::{Discover, Listen, UnsupportedVersionData};
use crate::types::{
    Elicit, Era, LoggingLevel, ProgressToken, ProtocolVersion, Request, error_code, meta_key,
};

use super::handshake::Handshake;
use super::requests::Kind;
use super::{Deadlines, Loss, LossKind, Outcome, Role, Wire};

/// How the peer learns that a call was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Announcement {
    /// `notifications/cancelled`, on a pipe or on the stream that the request was sent on.
    Notification,
    /// `notifications/cancelled` as a POST of its own.
    Post,
    /// The response stream is closed, which is the cancellation.
    CloseExchange,
    /// The peer is not told.
    None,
}

/// 2026-07-28, basic/patterns/cancellation: closing the stream is the cancellation on HTTP, the
/// notification on stdio. 2025-11-25, basic/transports: a disconnect is *not* a cancellation.
pub(super) fn announcement(role: Role, wire: Wire, era: Era, kind: Kind) -> Announcement {
    match (kind, wire, era, role) {
        (Kind::Initialize | Kind::Probe, ..) => Announcement::None,
        (_, Wire::Pipe, ..) => Announcement::Notification,
        (_, Wire::Http, Era::Modern, _) => Announcement::CloseExchange,
        (_, Wire::Http | Wire::EventStream, _, Role::Client) => Announcement::Post,
        (_, Wire::Http | Wire::EventStream, _, Role::Server) => Announcement::Notification,
    }
}

/// What a closed stream means for the request that waits on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Disconnect {
    /// It cancels the request.
    Cancels,
    /// The stream may be resumed within the resume window.
    StartsResumeWindow,
}

pub(super) fn disconnect(era: Era) -> Disconnect {
    match era {
        Era::Modern => Disconnect::Cancels,
        Era::Legacy => Disconnect::StartsResumeWindow,
    }
}

/// What a cancel from the peer can name. Each sender numbers its own requests and the ids collide,
/// so the direction has to be known before the id is looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CancelNames {
    /// Requests that the peer made.
    TheirRequests,
    /// Our own listens: a modern server ends them with a cancel.
    OurListens,
    /// Nothing: on modern HTTP, closing the stream is the cancellation.
    Nothing,
}

pub(super) fn cancel_names(role: Role, wire: Wire, handshake: &Handshake) -> CancelNames {
    match (role, wire, handshake.is_modern()) {
        (Role::Client, _, true) => CancelNames::OurListens,
        (Role::Server, Wire::Http, _) if !handshake.is_legacy() => CancelNames::Nothing,
        _ => CancelNames::TheirRequests,
    }
}

/// Whether a cancel can arrive before the request that it names, because they are two POSTs.
pub(super) fn remembers_early_cancels(role: Role, wire: Wire) -> bool {
    role == Role::Server && wire != Wire::Pipe
}

/// Whether this side opens an exchange for each call, and lanes for notifications and answers.
pub(super) fn opens_exchanges(role: Role, wire: Wire) -> bool {
    role == Role::Client && wire != Wire::Pipe
}

/// Whether only the stream of a call can answer it, since each call has one.
pub(super) fn answers_on_own_exchange(role: Role, wire: Wire) -> bool {
    role == Role::Client && wire == Wire::Http
}

/// The kind of a method. Only the `server/discover` of the handshake is a probe; later ones are
/// ordinary calls.
pub(super) fn kind(method: &Text) -> Kind {
    if *method == *Initialize::METHOD {
        Kind::Initialize
    } else if *method == *Listen::METHOD {
        Kind::Listen
    } else {
        Kind::Ordinary
    }
}

/// The timeouts of a call that does not set its own. A listen has none. A form has no idle timeout,
/// since a person who fills it in shows no progress.
pub(super) fn deadlines(method: &str, configured: Deadlines) -> Deadlines {
    match method {
        Listen::METHOD => Deadlines::NONE,
        Elicit::METHOD => Deadlines {
            idle: None,
            ..configured
        },
        _ => configured,
    }
}

/// Whether a failed probe shows a legacy server, so that `initialize` is worth a try.
///
/// On every wire, any error except those of the modern era does. On a pipe and on an event stream
/// silence and a malformed answer do as well. On HTTP so do the statuses with which servers refuse
/// what they do not know; a login page, a broken gateway or a slow network shows nothing.
pub(super) fn falls_back(wire: Wire, outcome: &Outcome) -> bool {
    match (wire, outcome) {
        (_, Outcome::Refused(error)) => !error_code::is_modern(error.code),
        (Wire::Pipe | Wire::EventStream, Outcome::TimedOut { .. } | Outcome::Violated(_)) => true,
        (
            Wire::Http,
            Outcome::Lost {
                cause:
                    Loss {
                        kind: LossKind::HttpStatus(400 | 404 | 405),
                        ..
                    },
                ..
            },
        ) => true,
        _ => false,
    }
}

/// The parts of a request's parameters that the engine reads.
#[derive(Default)]
pub(super) struct RequestMeta<'a> {
    version: Option<&'a [u8]>,
    has_capabilities: bool,
    pub(super) token: Option<ProgressToken>,
}

impl<'a> RequestMeta<'a> {
    pub(super) fn read(params: Option<&'a Params>) -> Result<Self, ErrorObject> {
        // Parsers disagree on which of two members with the same name counts, so both are refused.
        if let Some(name) = params.and_then(Params::repeated_member) {
            return Err(invalid_params(format!("duplicate field `{name}`")));
        }
        let Some(meta) = params.and_then(|params| params.field_bytes("_meta")) else {
            return Ok(Self::default());
        };
        if !meta.starts_with(b"{") {
            return Err(invalid_params("`_meta` must be an object"));
        }
        let known = [
            meta_key::PROTOCOL_VERSION,
            meta_key::CLIENT_CAPABILITIES,
            meta_key::PROGRESS_TOKEN,
            meta_key::LOG_LEVEL,
        ];
        let [version, capabilities, token, level] = fields_of(meta, known);
        if let Some(Err(error)) = level.map(serde_json::from_slice::<LoggingLevel>) {
            let key = meta_key::LOG_LEVEL;
            return Err(invalid_params(format!("`_meta`: `{key}`: {error}")));
        }
        let token = match token.map(serde_json::from_slice) {
            None => None,
            Some(Ok(token)) => Some(token),
            Some(Err(error)) => {
                let problem = format!("`_meta`: `progressToken`: {error}");
                return Err(invalid_params(problem));
            }
        };
        Ok(Self {
            version,
            has_capabilities: capabilities.is_some_and(|it| it.starts_with(b"{")),
            token,
        })
    }

    /// Whether the request names its own revision, as modern ones do.
    pub(super) fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    /// The revision of a request. Its own `_meta` decides; without one, the handshake does.
    pub(super) fn version(
        &self,
        method: &Text,
        handshake: &Handshake,
        spoken: &[ProtocolVersion],
    ) -> Result<ProtocolVersion, ErrorObject> {
        let Some(version) = self.version else {
            return match handshake.legacy_version() {
                Some(version) if *method != *Discover::METHOD => Ok(version),
                None if *method == *Ping::METHOD => Ok(ProtocolVersion::LATEST_LEGACY),
                _ => Err(invalid_params(format!(
                    "`_meta` must name `{}`, or the conversation must begin with `initialize`; \
                     versions spoken here: {}",
                    meta_key::PROTOCOL_VERSION,
                    names(spoken).join(", "),
                ))),
            };
        };
        let Some(requested) = text_of(version) else {
            let key = meta_key::PROTOCOL_VERSION;
            return Err(invalid_params(format!("`_meta`: `{key}` must be a string")));
        };
        let known = requested
            .parse()
            .ok()
            .filter(|version: &ProtocolVersion| version.era() == Era::Modern)
            .filter(|version| spoken.contains(version));
        let Some(version) = known else {
            return Err(unsupported_version(spoken, &requested));
        };
        if !self.has_capabilities {
            let key = meta_key::CLIENT_CAPABILITIES;
            return Err(invalid_params(format!("`_meta` must have `{key}`")));
        }
        Ok(version)
    }
}

pub(super) fn names(versions: &[ProtocolVersion]) -> Vec<String> {
    versions.iter().map(ToString::to_string).collect()
}

pub(super) fn unsupported_version(spoken: &[ProtocolVersion], requested: &str) -> ErrorObject {
    let data = UnsupportedVersionData::new(names(spoken), requested);
    ErrorObject::new(
        error_code::UNSUPPORTED_PROTOCOL_VERSION,
        format!(
            "protocol version {requested:?} is not spoken here; use one of {}",
            data.supported.join(", ")
        ),
    )
    .with_data(RawJson::encode(&data).expect("our own types are always valid JSON"))
}

pub(super) fn invalid_params(message: impl Into<String>) -> ErrorObject {
    ErrorObject::new(error_code::INVALID_PARAMS, message)
}

pub(super) fn invalid_request(message: impl Into<String>) -> ErrorObject {
    ErrorObject::new(error_code::INVALID_REQUEST, message)
}
