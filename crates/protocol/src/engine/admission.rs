//! Admission: an incoming request begins here, is answered at once, or is refused.

use bytes::Bytes;

use crate::jsonrpc::{ErrorObject, RawJson, Request};
use crate::types::legacy::{Initialize, Ping};
use crate::types::modern::Discover;
use crate::types::{Era, ProgressToken, ProtocolVersion, Request as _, error_code};

use super::exchange::Purpose;
use super::queue::{Frame, Owner};
use super::requests::{Kind, Serving, Stage};
use super::rules::{self, RequestMeta};
use super::{
    Closing, End, Engine, Event, ExchangeId, Incoming, LossKind, RequestKey, Role, Time, Wire,
    encode,
};

/// What happens to a request that is not refused.
enum Admission {
    /// A handler will answer it.
    ToHandler {
        kind: Kind,
        version: ProtocolVersion,
        token: Option<ProgressToken>,
    },
    /// The engine answers it itself.
    AtOnce(Kind, ProtocolVersion, Result<RawJson, ErrorObject>),
    /// Its cancel arrived before it.
    CancelledEarly,
}

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// A request from the peer, which begins or is refused here.
    pub(super) fn handle_request(&mut self, now: Time, exchange: ExchangeId, request: Request) {
        if self.must_not_answer() {
            self.requests.ledger.ignored_requests += 1;
            return self.requests.refuse_serving(End::Rejected);
        }
        if self.is_flooded() {
            return self.lose_link(now, LossKind::Flooded.into());
        }
        match self.admit(exchange, &request) {
            Ok(Admission::ToHandler {
                kind,
                version,
                token,
            }) => {
                let serving = Serving::new(request.id.clone(), kind, exchange, version, token);
                let key = self.begin_serving(now, serving);
                self.handlers.start(key, kind == Kind::Listen);
                self.events.push_back(Event::Request(Incoming {
                    key,
                    id: request.id,
                    exchange,
                    version,
                    method: request.method,
                    params: request.params,
                }));
            }
            Ok(Admission::AtOnce(kind, version, answer)) => {
                let bytes = encode::answer(&request.id, &answer);
                let serving = Serving {
                    stage: Stage::Answering(Stage::end_of(&answer)),
                    ..Serving::new(request.id, kind, exchange, version, None)
                };
                let key = self.begin_serving(now, serving);
                let error = answer.as_ref().err().map(|error| error.code);
                self.push_answer(now, key, bytes, error);
            }
            Ok(Admission::CancelledEarly) => {
                self.requests.refuse_serving(End::Cancelled);
                self.mark_closing(exchange, Closing::Silent);
            }
            Err(error) => self.refuse_request(now, exchange, &request, error),
        }
    }

    /// A request from the peer for which there is no memory: it is refused at once (**bounded**).
    pub fn handle_request_without_room(
        &mut self,
        now: Time,
        exchange: ExchangeId,
        request: &Request,
    ) {
        if self.is_closed() || self.exchanges.get(exchange).is_none() {
            self.requests.ledger.strays_on_closed_exchanges += 1;
            return;
        }
        self.heard(exchange);
        if self.must_not_answer() {
            self.requests.ledger.ignored_requests += 1;
            self.requests.refuse_serving(End::Rejected);
        } else if self.is_flooded() {
            self.lose_link(now, LossKind::Flooded.into());
        } else {
            let error = match self.closing.refuses_requests() {
                true => ErrorObject::new(error_code::SHUTTING_DOWN, "shutting down"),
                false => {
                    let problem = "overloaded: too much is being worked on; send it again later";
                    ErrorObject::new(error_code::OVERLOADED, problem)
                }
            };
            self.refuse_request(now, exchange, request, error);
        }
        self.settle(now);
    }

    fn refuse_request(
        &mut self,
        now: Time,
        exchange: ExchangeId,
        request: &Request,
        error: ErrorObject,
    ) {
        self.requests.refuse_serving(End::Rejected);
        let code = error.code;
        let bytes = encode::answer(&request.id, &Err(error));
        self.refuse(now, exchange, bytes, code);
    }

    /// 2026-07-28, basic/transports: a server must not send requests, a client must not answer
    /// them.
    pub(super) fn must_not_answer(&self) -> bool {
        self.config.role() == Role::Client && self.handshake.is_modern()
    }

    fn admit(&mut self, exchange: ExchangeId, request: &Request) -> Result<Admission, ErrorObject> {
        if self.is_duplicate(exchange, request) {
            let problem = "this id is in use by a request in flight";
            return Err(rules::invalid_request(problem));
        }
        if self.closing.refuses_requests() {
            return Err(ErrorObject::new(error_code::SHUTTING_DOWN, "shutting down"));
        }
        if self.config.wire == Wire::Http && self.answers_pile_up() {
            let problem = "overloaded: too many answers wait to be read; send it again later";
            return Err(ErrorObject::new(error_code::OVERLOADED, problem));
        }
        let meta = RequestMeta::read(request.params.as_ref())?;
        if request.method == *Initialize::METHOD {
            if meta.is_modern() {
                let problem = "this revision has no `initialize`: each request speaks for itself";
                return Err(ErrorObject::new(error_code::METHOD_NOT_FOUND, problem));
            }
            let answer = self.introduce_legacy(request.params.as_deref());
            let version = ProtocolVersion::LATEST_LEGACY;
            return Ok(Admission::AtOnce(Kind::Initialize, version, answer));
        }
        let version = self.request_version(&meta, request)?;
        if request.method == *Ping::METHOD && version.era() == Era::Legacy {
            let answer = Ok(RawJson::empty_object());
            return Ok(Admission::AtOnce(Kind::Ordinary, version, answer));
        }
        if request.method == *Discover::METHOD && !self.is_client() {
            let answer = self.introduce_modern();
            return Ok(Admission::AtOnce(Kind::Ordinary, version, answer));
        }
        if self.was_cancelled_early(&request.id) {
            return Ok(Admission::CancelledEarly);
        }
        let kind = rules::kind(&request.method);
        self.check_handlers(kind)?;
        Ok(Admission::ToHandler {
            kind,
            version,
            token: meta.token,
        })
    }

    /// Whether the id is in use on this exchange. On a pipe the id is the key of a request, so it
    /// must be unique among those in flight; on HTTP the exchange is the key (**id-is-scoped**).
    fn is_duplicate(&self, exchange: ExchangeId, request: &Request) -> bool {
        let mut same = self.requests.serving_with_id(&request.id);
        same.any(|(_, serving)| serving.exchange == exchange)
    }

    fn request_version(
        &self,
        meta: &RequestMeta<'_>,
        request: &Request,
    ) -> Result<ProtocolVersion, ErrorObject> {
        match self.config.role() {
            Role::Server => meta.version(&request.method, &self.handshake, &self.config.versions),
            Role::Client => {
                let version = self.handshake.legacy_version();
                Ok(version.unwrap_or(ProtocolVersion::LATEST_LEGACY))
            }
        }
    }

    /// Refuses a request above the limit at once, so that cancels are always read (**bounded**).
    fn check_handlers(&self, kind: Kind) -> Result<(), ErrorObject> {
        let limits = &self.config.limits;
        let (running, limit, what) = match kind {
            Kind::Listen => (self.handlers.listens(), limits.listens, "listens are open"),
            _ => (
                self.handlers.running(),
                limits.handlers,
                "requests are running",
            ),
        };
        match running < limit {
            true => Ok(()),
            false => Err(ErrorObject::new(
                error_code::OVERLOADED,
                format!("overloaded: {limit} {what}; send it again later"),
            )),
        }
    }

    fn begin_serving(&mut self, now: Time, serving: Serving) -> RequestKey {
        let (on, works) = (serving.exchange, serving.stage == Stage::Admitted);
        let key = self.requests.begin_serving(serving);
        if let Some(exchange) = self.exchanges.get_mut(on) {
            exchange.unanswered += 1;
        }
        if works {
            self.work_began(now, on);
        }
        key
    }

    /// Writes an error for a message that never became a request. It is never dropped
    /// (**answered-or-gone**). Refusals cannot pile up, because reading pauses: see
    /// [`Engine::wants_input`].
    pub(super) fn refuse(&mut self, now: Time, exchange: ExchangeId, bytes: Bytes, code: i64) {
        let exchange = match self.is_client() {
            true => self.outlet(now, None, Purpose::Lane),
            false => exchange,
        };
        self.mark_closing(exchange, Closing::Finished);
        let frame = Frame {
            bytes,
            owner: Owner::Refusal,
            error: Some(code),
        };
        self.push(exchange, frame);
    }
}
