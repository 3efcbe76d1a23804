//! The life of a request.
//!
//! One state machine. It takes inputs and queues outputs, and it does no I/O. It serves both roles,
//! both eras and every transport, because all of them end requests by the same rules.
//!
//! ```text
//!                      ┌──────────────────────────────────────┐
//!   handle_message ───►│  admission   accept or refuse        │───► poll_event
//!   handle_write_done ►│  calls       outgoing calls          │       what the application
//!   handle_exchange_* ►│  responses   answers and progress    │       should know
//!   handle_timeout ───►│  serving     incoming requests       │
//!                      │  cancels     cancels from the peer   │───► poll_transmit, queued
//!   request, cancel, …►│  handlers    can outlive requests    │       what the transport
//!   begin_write ──────►│  outbox      frames to be written    │       should do
//!   shutdown ─────────►│  exchanges   opened, lost, closed    │
//!                      │  closing     the orderly close       │
//!                      │                                      │───► poll_timeout
//!                      │  requests    WHERE THEY BEGIN & END  │       when to come back
//!                      └──────────────────────────────────────┘
//! ```
//!
//! - `handle_*`: an input from outside: a message, a moment in time, the end of a stream.
//! - plain verbs: the application asks for something.
//! - `poll_*`: the queued outputs. After every input, call each until it returns `None`.
//!
//! [`Outcome`] lists how a request can end; a request begins and ends in `requests.rs`. Transports
//! differ in who owns an engine and for how long: a connection (stdio), a session (legacy HTTP), a
//! single POST (modern HTTP), a client.
//!
//! # Invariants
//!
//! 1. A request is in a table of `requests.rs` from its beginning to its end, and not after it.
//!    Nothing else is kept for a request that has ended: no timer, no frame, no exchange except one
//!    that is about to be closed. A handler that is still being stopped is a handler, not a
//!    request.
//! 2. The first code to end a request decides its outcome. Later attempts find no request and do
//!    nothing.
//! 3. A cancel is written at most once, after its request, and only if the write of that request
//!    had begun; never for the handshake.
//! 4. The answer to a request can be withdrawn until its write begins, and then never.
//! 5. The engine uses no clock, no socket and no task: the same inputs give the same outputs.
//!
//! # Example
//!
//! ```
//! use belay_protocol::engine::{Ask, Config, Engine, Event, ExchangeId, Mode, Time, Wire};
//! use belay_protocol::jsonrpc::{self, RawJson};
//! use belay_protocol::types::{ClientCapabilities, Implementation};
//!
//! let me = Implementation::new("example", "1.0.0");
//! let mut engine = Engine::new(Config::client(me, ClientCapabilities::new(), Wire::Pipe));
//! let now = Time::START;
//! engine.connect(now, Mode::Legacy);
//!
//! // What the driver would write to the pipe:
//! let frame = engine.queued(ExchangeId::LINK).next().unwrap();
//! assert!(frame.starts_with(br#"{"jsonrpc":"2.0","id":1,"method":"initialize""#));
//! engine.begin_write(now, ExchangeId::LINK);
//! engine.handle_write_done(now, ExchangeId::LINK);
//!
//! // What it would read:
//! let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",
//!     "capabilities":{},"serverInfo":{"name":"server","version":"2"}}}"#;
//! let message = jsonrpc::decode(&answer.into(), 64).unwrap();
//! engine.handle_message(now, ExchangeId::LINK, message);
//! assert!(matches!(engine.poll_event(), Some(Event::Connected(_))));
//!
//! let call = engine.request(now, Ask::new("tools/list", RawJson::empty_object())).unwrap();
//! engine.cancel(now, call, None);
//! assert!(matches!(engine.poll_event(), Some(Event::Ended { .. })));
//! ```

mod admission;
mod calls;
mod cancels;
mod closing;
mod config;
mod deadline;
mod encode;
mod event;
mod exchange;
mod exchange_table;
mod exchanges;
mod handlers;
mod handshake;
mod ids;
mod ledger;
mod outbox;
mod outcome;
mod planted;
mod queue;
mod requests;
mod responses;
mod rules;
mod serving;
mod table;
#[cfg(test)]
mod tests;
mod time;

pub use closing::Shutdown;
pub use config::{Config, Deadlines, Identity, Limits, Role, Timeouts, Wait, Wire};
pub use event::{
    Ask, CallId, Closing, Connected, Event, ExchangeId, Incoming, RequestKey, StopCause, Transmit,
    Waiting,
};
pub use handshake::Mode;
pub use ledger::{Book, Ledger};
pub use outcome::{By, Clock, End, Loss, LossKind, Outcome, Rejection, Sent, Violation};
pub use time::Time;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::jsonrpc::{DecodeError, ErrorObject, Kind, Message, RawJson};
use crate::types::{CancelledParams, Notification as _, ProgressParams};

use cancels::EarlyCancels;
use closing::ClosingState;
use deadline::{Timer, Timers};
use encode::ClientMeta;
use exchange::{Exchange, Purpose};
use exchange_table::Exchanges;
use handlers::Handlers;
use handshake::Handshake;
use requests::{Delivery, Requests, Stage};

/// The life of every request on one link. See the [module](self) for how to drive it.
///
/// The engine's own tables store the application's data for each call, handler and exchange. The
/// data lives exactly as long as its entry, so no second table can disagree. `C` belongs to an
/// outgoing call ([`Engine::call_mut`]), `H` to a handler ([`Engine::handler_mut`]), `X` to an
/// exchange ([`Engine::exchange_mut`]). Each begins as its default, and is returned when its entry
/// ends.
#[derive(Clone, Debug)]
pub struct Engine<C = (), H = (), X = ()> {
    config: Arc<Config>,
    handshake: Handshake,
    client_meta: Option<ClientMeta>,
    introduction: Option<RawJson>,
    requests: Requests<C>,
    handlers: Handlers<H>,
    exchanges: Exchanges<X>,
    last_exchange: u64,
    early_cancels: EarlyCancels,
    /// The peer remembers a cancel that arrives before its request.
    peer_remembers_cancels: bool,
    closing: ClosingState,
    timers: Timers,
    events: VecDeque<Event<C>>,
    transmits: VecDeque<Transmit<X>>,
    /// Size limit of answers that the engine gives itself, see [`Engine::set_answer_room`].
    answer_room: usize,
}

impl Engine {
    /// Creates an engine that stores no data for the application.
    ///
    /// Many engines can share one configuration: an HTTP server has one engine for each POST.
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        Self::carrying(config)
    }

    /// Memory that a queued frame costs in addition to its bytes.
    pub const FRAME_OVERHEAD: usize = 128;
}

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// Creates an engine that stores the application's data for each call, handler and exchange.
    pub fn carrying(config: impl Into<Arc<Config>>) -> Self {
        let config = config.into();
        // Two: the link, and the one POST that most engines on HTTP have.
        let mut exchanges = Exchanges::with_capacity(2);
        let mut link = Exchange::new(Purpose::Link);
        link.broken = config.wire == Wire::Http;
        exchanges.insert(ExchangeId::LINK, link);
        let handshake = match (config.role(), config.opened_in) {
            (Role::Server, Some(version)) => Handshake::Legacy(version),
            _ => Handshake::Unopened,
        };
        Self {
            config,
            handshake,
            client_meta: None,
            introduction: None,
            requests: Requests::new(),
            handlers: Handlers::new(),
            exchanges,
            last_exchange: 0,
            early_cancels: EarlyCancels::default(),
            peer_remembers_cancels: false,
            closing: ClosingState::new(),
            timers: Timers::default(),
            // Room for one: most engines on HTTP never have more at a time.
            events: VecDeque::with_capacity(1),
            transmits: VecDeque::with_capacity(1),
            answer_room: usize::MAX,
        }
    }

    /// Limits the size in bytes of the answers that the engine gives itself, to `initialize` and
    /// `server/discover`. A longer answer is refused as an overload (**bounded**). A driver that
    /// bounds the bytes waiting to be read sets this before each message.
    pub fn set_answer_room(&mut self, bytes: usize) {
        self.answer_room = bytes;
    }

    /// A message has arrived on an exchange.
    pub fn handle_message(&mut self, now: Time, exchange: ExchangeId, message: Message) {
        if self.is_closed() || self.exchanges.get(exchange).is_none() {
            self.requests.ledger.strays_on_closed_exchanges += 1;
            return;
        }
        self.heard(exchange);
        match message {
            Message::Request(request) => self.handle_request(now, exchange, request),
            Message::Response(response) => self.handle_response(now, exchange, response),
            Message::Notification(notification) => match &*notification.method {
                CancelledParams::METHOD => self.handle_cancelled(now, exchange, &notification),
                ProgressParams::METHOD => self.handle_progress(now, &notification),
                _ => {
                    let listen = || self.listen_of(&notification);
                    let about = self.call_on(exchange).or_else(listen);
                    let call = about.and_then(|about| self.requests.call(about));
                    let event = Event::Notification {
                        about,
                        caller: call.map(|call| call.caller.clone()),
                        notification,
                    };
                    self.events.push_back(event);
                }
            },
            Message::Unaddressed(error) => self.handle_unaddressed(now, exchange, error),
        }
        self.settle(now);
    }

    /// Input that is not a valid message has arrived. A malformed answer ends its call, a malformed
    /// request is answered with an error, and nothing else happens (**smallest-scope**).
    pub fn handle_malformed(&mut self, now: Time, exchange: ExchangeId, error: &DecodeError) {
        self.requests.ledger.malformed += 1;
        if self.is_closed() {
            return;
        }
        match (error.looks_like, &error.id) {
            (Kind::Response, Some(id)) => {
                if let Some(call) = self.answered_call(exchange, id) {
                    self.violated(now, call, error);
                }
            }
            // On a stream that belongs to one call this can only be the answer to that call.
            (Kind::Response | Kind::Unknown, None) if self.written_call_on(exchange).is_some() => {
                if let Some(call) = self.written_call_on(exchange) {
                    self.violated(now, call, error);
                }
            }
            // No peer waits for an answer to these.
            (Kind::Response | Kind::Notification, _) => {}
            (Kind::Request, Some(_)) if self.must_not_answer() => {
                self.requests.ledger.ignored_requests += 1;
            }
            (Kind::Request, Some(_)) if self.is_flooded() => {
                self.lose_link(now, LossKind::Flooded.into());
            }
            // A client that answered a server's stray output would only add to the noise. What has
            // both a method and an id is a request, though, and the server waits for its answer.
            (Kind::Request, None) | (Kind::Unknown, _) if self.is_client() => {}
            (Kind::Request | Kind::Unknown, Some(id)) => {
                let error = error.to_error_object();
                let code = error.code;
                self.refuse(now, exchange, encode::answer(id, &Err(error)), code);
            }
            (Kind::Request | Kind::Unknown, None) => {
                let error = error.to_error_object();
                self.refuse(now, exchange, encode::unaddressed(&error), error.code);
            }
        }
        self.settle(now);
    }

    /// An error without an id. On a stream that belongs to one call it ends that call; elsewhere it
    /// is only counted.
    fn handle_unaddressed(&mut self, now: Time, exchange: ExchangeId, error: ErrorObject) {
        match self.written_call_on(exchange) {
            Some(call) => self.finish_call(now, call, Outcome::Refused(error)),
            None => self.requests.ledger.malformed += 1,
        }
    }

    /// Time has passed: fires the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(timer) = self.timers.first_due(now) {
            match timer {
                Timer::Call(call) => self.call_due(now, call),
                Timer::Request(request) => self.request_due(now, request),
                Timer::Handler(request) => self.abort(request),
                Timer::Exchange(exchange) => self.exchange_due(now, exchange),
                Timer::EarlyCancel => self.forget_early_cancel(),
                Timer::Closing => self.closing_due(now),
            }
        }
        self.settle(now);
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event<C>> {
        while let Some(event) = self.events.pop_front() {
            match &event {
                Event::Request(incoming) if !self.starts(incoming.key) => {}
                _ => return Some(event),
            }
        }
        None
    }

    /// Returns the next event if it is a request, for a driver that has just passed in that request
    /// and runs its handler itself.
    pub fn poll_request(&mut self) -> Option<Incoming> {
        while let Some(Event::Request(_)) = self.events.front() {
            if let Some(Event::Request(incoming)) = self.events.pop_front()
                && self.starts(incoming.key)
            {
                return Some(incoming);
            }
        }
        None
    }

    /// Returns the next event if it is the end of a call, for a driver that has just passed in the
    /// answer.
    pub fn poll_ended(&mut self) -> Option<(C, Outcome)> {
        match self.events.pop_front()? {
            Event::Ended {
                caller, outcome, ..
            } => Some((caller, outcome)),
            other => {
                self.events.push_front(other);
                None
            }
        }
    }

    /// A request that was cancelled before it started never starts (**cancel-overtakes**).
    fn starts(&mut self, key: RequestKey) -> bool {
        match self.requests.serving_mut(key) {
            Some(serving) if serving.stage == Stage::Admitted => {
                serving.stage = Stage::Running;
                true
            }
            _ => false,
        }
    }

    /// How many events wait for [`Engine::poll_event`]. A reader that is much faster than the
    /// application should pause.
    pub fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// Frees the spare memory of tables and queues. They keep it otherwise, so that a request in a
    /// steady state allocates little. Call this on an idle engine that is one of many.
    pub fn shrink(&mut self) {
        self.requests.shrink();
        self.handlers.shrink();
        self.exchanges.shrink();
        self.early_cancels.shrink();
        self.timers.shrink();
        self.events.shrink_to_fit();
        self.transmits.shrink_to_fit();
    }

    /// Returns the next instruction for the transport.
    pub fn poll_transmit(&mut self) -> Option<Transmit<X>> {
        loop {
            let transmit = self.transmits.pop_front()?;
            let Transmit::Write(exchange) = transmit else {
                return Some(transmit);
            };
            if let Some(known) = self.exchanges.get_mut(exchange) {
                known.noticed = false;
                if known.queue.waiting().next().is_some() {
                    return Some(Transmit::Write(exchange));
                }
            }
        }
    }

    /// The latest moment at which to call [`Engine::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// The counters of this engine.
    pub fn ledger(&self) -> &Ledger {
        &self.requests.ledger
    }

    /// How many handlers exist: those that run, and those that are being stopped.
    pub fn handlers(&self) -> usize {
        self.handlers.len()
    }

    /// Whether the engine is idle: no request in either direction, no exchange except the link, and
    /// no handler that has not been dropped.
    pub fn is_quiet(&self) -> bool {
        self.requests.calls().is_empty()
            && self.requests.all_serving().is_empty()
            && self.handlers.are_all_aborted()
            // The link itself.
            && self.exchanges.len() == 1
    }

    /// The application's data for an outgoing call that has not ended.
    pub fn call_mut(&mut self, call: CallId) -> Option<&mut C> {
        self.requests.call_mut(call).map(|call| &mut call.caller)
    }

    /// The application's data for a handler that exists.
    pub fn handler_mut(&mut self, request: RequestKey) -> Option<&mut H> {
        self.handlers
            .get_mut(request)
            .map(|handler| &mut handler.kept)
    }

    /// The application's data for an exchange that is open.
    pub fn exchange_mut(&mut self, exchange: ExchangeId) -> Option<&mut X> {
        self.exchanges.kept_mut(exchange)
    }

    /// How the other side introduced itself in the handshake. A server gets the parameters of
    /// `initialize`, a client the answer to its `initialize` or `server/discover`. A modern client
    /// introduces itself with every request instead.
    pub fn introduction(&self) -> Option<&RawJson> {
        self.introduction.as_ref()
    }

    /// The configuration that the engine was created with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn is_client(&self) -> bool {
        self.config.role() == Role::Client
    }

    /// The outgoing call that this exchange was opened for.
    fn call_on(&self, exchange: ExchangeId) -> Option<CallId> {
        match self.exchanges.get(exchange)?.purpose {
            Purpose::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The same, if the write of that call has begun, so that the peer may know of it.
    fn written_call_on(&self, exchange: ExchangeId) -> Option<CallId> {
        self.call_on(exchange).filter(|call| {
            let call = self.requests.call(*call);
            call.is_some_and(|call| call.sent != Sent::Never)
        })
    }

    fn violated(&mut self, now: Time, call: CallId, error: &DecodeError) {
        let violation = Violation::MalformedAnswer {
            fault: error.fault.clone(),
            excerpt: error.excerpt.clone(),
        };
        self.finish_call(now, call, Outcome::Violated(violation));
    }

    /// Anything that arrives on an exchange opened for a call shows that the peer has that call.
    fn heard(&mut self, exchange: ExchangeId) {
        if let Some(call) = self.call_on(exchange)
            && let Some(call) = self.requests.call_mut(call)
            && call.sent == Sent::Maybe
        {
            call.sent = Sent::Yes;
            call.delivery = Delivery::Known;
        }
    }

    /// Runs after every input: closes exchanges and stages of closing that have nothing left to do.
    fn settle(&mut self, now: Time) {
        self.settle_exchanges(now);
        self.settle_closing(now);
    }
}
