//! The handshake: how a connection is opened.
//!
//! ```text
//!  client            ┌───────────── a modern answer ──────────────► Modern
//!  Unopened ──► Probing ── any other error, or silence ──┐
//!      └──────────────────── legacy asked for ───────────┴► Initializing ──► Legacy
//!
//!  server
//!  Unopened ── initialize ──► Legacy        (a request with modern `_meta` is served in either)
//! ```
//!
//! A client settles the era once. A server settles it for each request: the request's own `_meta`
//! decides, and `initialize` opens the legacy era for requests without one.

use crate::jsonrpc::{ErrorObject, RawJson, Text};
use crate::types::legacy::{Initialize, InitializeParams, InitializeResult, InitializedParams};
use crate::types::modern::{Discover, DiscoverResult, UnsupportedVersionData};
use crate::types::{
    Era, Extra, Meta, Notification as _, ProtocolVersion, Request as _, ResultType, error_code,
    meta_key,
};

use super::encode::{self, ClientMeta};
use super::queue::{Frame, Owner};
use super::requests::Kind;
use super::rules::{self, names};
use super::{
    Ask, CallId, Connected, Engine, Event, ExchangeId, Identity, Outcome, Rejection, Sent, Time,
    Violation, Wait, Wire,
};

/// The experimental capability with which a legacy server announces that it remembers a cancel
/// which overtakes its request. A client of such a server need not wait before it cancels.
const REMEMBERS_EARLY_CANCELS: &str = "belay/rememberEarlyCancels";

/// Which era a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Modern if the server supports it, otherwise legacy.
    Auto,
    /// Modern only.
    Modern,
    /// Legacy, without a probe.
    Legacy,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Handshake {
    Unopened,
    Probing {
        call: CallId,
        mode: Mode,
        /// The server has refused a revision and named this one instead. It may do so once.
        named: bool,
    },
    Initializing {
        call: CallId,
    },
    /// `initialize` was answered, and this exchange carries `notifications/initialized`. Only where
    /// that is a POST, which a call could overtake.
    Confirming {
        lane: ExchangeId,
        version: ProtocolVersion,
        introduction: RawJson,
    },
    Legacy(ProtocolVersion),
    Modern(ProtocolVersion),
    Failed,
}

impl Handshake {
    pub(super) fn is_modern(&self) -> bool {
        matches!(self, Self::Modern(_))
    }

    pub(super) fn is_legacy(&self) -> bool {
        matches!(self, Self::Legacy(_))
    }

    pub(super) fn legacy_version(&self) -> Option<ProtocolVersion> {
        match self {
            Self::Legacy(version) => Some(*version),
            _ => None,
        }
    }

    fn is_opening(&self, id: CallId) -> bool {
        match self {
            Self::Probing { call, .. } | Self::Initializing { call } => *call == id,
            _ => false,
        }
    }
}

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// Starts the handshake. Clients only; [`Event::Connected`] or [`Event::ConnectFailed`]
    /// follows. Until then no other call can be made.
    ///
    /// Does nothing if it was called before, or on a server.
    pub fn connect(&mut self, now: Time, mode: Mode) {
        if self.handshake != Handshake::Unopened || !self.is_client() {
            return;
        }
        if let Some(cause) = self.unreachable() {
            let sent = Sent::Never;
            return self.connect_failed(Outcome::Lost { cause, sent });
        }
        match mode {
            Mode::Auto | Mode::Modern => self.probe(now, mode, None),
            Mode::Legacy => self.initialize(now, None),
        }
        self.settle(now);
    }

    /// The revision that a client has negotiated with its server, once the handshake is complete.
    pub fn version(&self) -> Option<ProtocolVersion> {
        match self.handshake {
            Handshake::Legacy(version) | Handshake::Modern(version) => Some(version),
            _ => None,
        }
    }

    /// The same, but available as soon as `initialize` is answered. The transport sends it in a
    /// header beside `notifications/initialized`.
    pub fn agreed_version(&self) -> Option<ProtocolVersion> {
        match self.handshake {
            Handshake::Confirming { version, .. } => Some(version),
            _ => self.version(),
        }
    }

    fn probe(&mut self, now: Time, mode: Mode, named: Option<ProtocolVersion>) {
        let Some(version) = named.or_else(|| self.spoken(Era::Modern, |_| true)) else {
            return self.initialize(now, None);
        };
        let named = named.is_some();
        self.client_meta = Some(ClientMeta::new(&self.config.identity, version));
        let ask = Ask {
            idle: Wait::Forever,
            total: Wait::AtMost(self.config.timeouts.probe),
            ..Ask::new(Text::from_static(Discover::METHOD), RawJson::empty_object())
        };
        match self.open(now, &ask, Kind::Probe, Era::Modern) {
            Ok(call) => self.handshake = Handshake::Probing { call, mode, named },
            Err(outcome) => self.connect_failed(outcome),
        }
    }

    fn initialize(&mut self, now: Time, version: Option<ProtocolVersion>) {
        let version = version.or_else(|| self.spoken(Era::Legacy, |_| true));
        let (Some(version), Identity::Client { info, capabilities }) =
            (version, &self.config.identity)
        else {
            return self.connect_failed(Outcome::Rejected(Rejection::NotAllowed));
        };
        let params = InitializeParams::new(version.as_str(), capabilities.clone(), info.clone());
        let params = RawJson::encode(&params).expect("our own types are always valid JSON");
        let ask = Ask {
            idle: Wait::Forever,
            total: Wait::AtMost(self.config.timeouts.initialize),
            ..Ask::new(Text::from_static(Initialize::METHOD), params)
        };
        self.client_meta = None;
        match self.open(now, &ask, Kind::Initialize, Era::Legacy) {
            Ok(call) => self.handshake = Handshake::Initializing { call },
            Err(outcome) => self.connect_failed(outcome),
        }
    }

    /// Continues the handshake if the call that ended was part of it.
    pub(super) fn opening_ended(&mut self, now: Time, call: CallId, outcome: Outcome) {
        if !self.handshake.is_opening(call) {
            return;
        }
        match (self.handshake.clone(), outcome) {
            (Handshake::Probing { mode, named, .. }, outcome) => {
                self.probe_ended(now, mode, named, outcome);
            }
            (_, Outcome::Answered(introduction)) => self.initialized(now, introduction),
            (_, outcome) => self.connect_failed(outcome),
        }
    }

    fn probe_ended(&mut self, now: Time, mode: Mode, named: bool, outcome: Outcome) {
        let supported = match &outcome {
            // Whatever else the answer contains, this list decides.
            Outcome::Answered(introduction) => introduction
                .field("supportedVersions")
                .and_then(|versions| versions.decode().ok()),
            Outcome::Refused(error) => supported_versions(error),
            _ => None,
        };
        // An answer that is no introduction comes from a server that does not know the method but
        // answers it anyway.
        let Some(supported) = supported else {
            let falls_back = matches!(outcome, Outcome::Answered(_))
                || rules::falls_back(self.config.wire, &outcome);
            return match falls_back && mode == Mode::Auto {
                true => self.initialize(now, None),
                false => self.connect_failed(outcome),
            };
        };
        let offers =
            |version: ProtocolVersion| supported.iter().any(|name| name == version.as_str());
        let modern = self.spoken(Era::Modern, offers);
        let legacy = self.spoken(Era::Legacy, offers);
        match (outcome, modern, legacy) {
            (Outcome::Answered(introduction), Some(version), _) => {
                self.client_meta = Some(ClientMeta::new(&self.config.identity, version));
                self.connected(Handshake::Modern(version), version, introduction);
            }
            (Outcome::Refused(_), Some(version), _) if !named => {
                self.probe(now, mode, Some(version));
            }
            (_, _, Some(version)) if mode == Mode::Auto => self.initialize(now, Some(version)),
            (Outcome::Answered(_), ..) => {
                let offered = supported.join(", ");
                let violation = Violation::VersionNotOffered(offered);
                self.connect_failed(Outcome::Violated(violation));
            }
            (outcome, ..) => self.connect_failed(outcome),
        }
    }

    fn initialized(&mut self, now: Time, introduction: RawJson) {
        let result: InitializeResult = match introduction.decode() {
            Ok(result) => result,
            Err(error) => {
                let violation = Violation::MalformedIntroduction(error.to_string());
                return self.connect_failed(Outcome::Violated(violation));
            }
        };
        let chosen = |version: ProtocolVersion| version.as_str() == result.protocol_version;
        let Some(version) = self.spoken(Era::Legacy, chosen) else {
            let violation = Violation::VersionNotOffered(result.protocol_version);
            return self.connect_failed(Outcome::Violated(violation));
        };
        let bytes = encode::notification(InitializedParams::METHOD, None);
        let owner = Owner::Nobody;
        let lane = self.send_notice(now, Frame::new(owner, bytes));
        let experimental = result.capabilities.experimental.as_ref();
        self.peer_remembers_cancels =
            experimental.is_some_and(|known| known.contains_key(REMEMBERS_EARLY_CANCELS));
        match self.config.wire {
            Wire::Pipe => self.connected(Handshake::Legacy(version), version, introduction),
            Wire::Http | Wire::EventStream => {
                self.handshake = Handshake::Confirming {
                    lane,
                    version,
                    introduction,
                }
            }
        }
    }

    /// The POSTs of a lane have arrived, or never will. If the lane carried
    /// `notifications/initialized`, the handshake is complete: a server that did not get it will
    /// answer calls with an error.
    pub(super) fn lane_confirmed(&mut self, over: ExchangeId) {
        if let Handshake::Confirming {
            lane,
            version,
            introduction,
        } = self.handshake.clone()
            && lane == over
        {
            self.connected(Handshake::Legacy(version), version, introduction);
        }
    }

    fn connected(&mut self, handshake: Handshake, version: ProtocolVersion, introduction: RawJson) {
        self.handshake = handshake;
        self.introduction = Some(introduction.clone());
        self.events.push_back(Event::Connected(Connected {
            version,
            introduction,
        }));
    }

    fn connect_failed(&mut self, outcome: Outcome) {
        self.handshake = Handshake::Failed;
        self.events.push_back(Event::ConnectFailed(outcome));
    }

    /// The most preferred version of an era among those that match.
    fn spoken(
        &self,
        era: Era,
        matches: impl Fn(ProtocolVersion) -> bool,
    ) -> Option<ProtocolVersion> {
        let versions = self.config.versions.iter().copied();
        versions
            .filter(|version| version.era() == era)
            .find(|version| matches(*version))
    }

    /// A server's answer to `initialize`.
    pub(super) fn introduce_legacy(
        &mut self,
        params: Option<&RawJson>,
    ) -> Result<RawJson, ErrorObject> {
        if self.handshake.is_legacy() {
            return Err(rules::invalid_request("`initialize` was sent twice"));
        }
        let introduction = params.cloned().unwrap_or(RawJson::empty_object());
        let params: InitializeParams = introduction
            .decode()
            .map_err(|error| rules::invalid_params(format!("initialize: {error}")))?;
        let introduction = kept_introduction(&params)?;
        let requested = params.protocol_version;
        let version = self
            .spoken(Era::Legacy, |version| version.as_str() == requested)
            .or_else(|| self.spoken(Era::Legacy, |_| true))
            .ok_or_else(|| rules::unsupported_version(&self.config.versions, &requested))?;
        let Identity::Server {
            info,
            capabilities,
            instructions,
            ..
        } = &self.config.identity
        else {
            return Err(rules::invalid_request("a client cannot be initialized"));
        };
        let mut capabilities = capabilities.clone();
        if rules::remembers_early_cancels(self.config.role(), self.config.wire) {
            let experimental = capabilities.experimental.get_or_insert_default();
            experimental.insert(REMEMBERS_EARLY_CANCELS.to_owned(), Extra::new().into());
        }
        let mut result = InitializeResult::new(version.as_str(), capabilities, info.clone());
        result.instructions.clone_from(instructions);
        let answer = self.encode_own_answer(&result)?;
        self.handshake = Handshake::Legacy(version);
        self.introduction = Some(introduction);
        Ok(answer)
    }

    /// Encodes an answer that the engine gives itself, if there is room for it.
    fn encode_own_answer(&self, result: &impl serde::Serialize) -> Result<RawJson, ErrorObject> {
        let answer = RawJson::encode(result).expect("our own types are always valid JSON");
        match answer.as_bytes().len() <= self.answer_room {
            true => Ok(answer),
            false => {
                let problem = "overloaded: too much waits to be read; send it again later";
                Err(ErrorObject::new(error_code::OVERLOADED, problem))
            }
        }
    }

    /// A server's answer to `server/discover`.
    pub(super) fn introduce_modern(&self) -> Result<RawJson, ErrorObject> {
        let Identity::Server {
            info,
            capabilities,
            instructions,
            ttl_ms,
            cache_scope,
        } = &self.config.identity
        else {
            return Err(rules::invalid_request("a client cannot be discovered"));
        };
        let mut result = DiscoverResult::new(names(&self.config.versions), capabilities.clone());
        result.result_type = Some(ResultType::Complete);
        result.instructions.clone_from(instructions);
        result.ttl_ms = Some((*ttl_ms).into());
        result.cache_scope = Some(cache_scope.clone());
        let mut meta = Meta::default();
        meta.set(meta_key::SERVER_INFO, info)
            .expect("our own types are always valid JSON");
        result.meta = Some(meta);
        self.encode_own_answer(&result)
    }
}

/// Size limit in bytes of what a client says about itself.
const INTRODUCTION: usize = 64 << 10;

/// The part of a client's introduction that is kept while the client is connected. The whole
/// message is not kept, since it may be as large as messages can be.
fn kept_introduction(params: &InitializeParams) -> Result<RawJson, ErrorObject> {
    let kept = InitializeParams::new(
        params.protocol_version.clone(),
        params.capabilities.clone(),
        params.client_info.clone(),
    );
    let kept = RawJson::encode(&kept).expect("our own types are always valid JSON");
    match kept.as_bytes().len() <= INTRODUCTION {
        true => Ok(kept),
        false => Err(rules::invalid_params(format!(
            "initialize: a client says at most {INTRODUCTION} bytes about itself"
        ))),
    }
}

/// The versions that a modern server lists when it refuses ours.
fn supported_versions(error: &ErrorObject) -> Option<Vec<String>> {
    if error.code != error_code::UNSUPPORTED_PROTOCOL_VERSION {
        return None;
    }
    let data: UnsupportedVersionData = error.data.as_ref()?.decode().ok()?;
    Some(data.supported)
}
