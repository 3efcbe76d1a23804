//! The life of a request.
//!
//! One machine, told things and asked things; it never does things. It serves both roles, both
//! eras and every transport, because all of them end requests by the same rules.
//!
//! ```text
//!                      ┌──────────────────────────────────────┐
//!   handle_message ───►│  admission   the door                │───► poll_event
//!   handle_write_done ►│  asking      calls of ours           │       what the application
//!   handle_exchange_* ►│  replies     what the peer says      │       should know
//!   handle_timeout ───►│  answering   requests of the peer    │
//!                      │  cancels     given up by the peer    │───► poll_transmit, queued
//!   request, cancel, …►│  handlers    which outlive requests  │       what the transport
//!   begin_write ──────►│  outbox      what waits to leave     │       should do
//!   shutdown ─────────►│  links       what carries it         │
//!                      │  closing     the end of it all       │
//!                      │                                      │───► poll_timeout
//!                      │  requests    WHERE THEY BEGIN & END  │       when to come back
//!                      └──────────────────────────────────────┘
//! ```
//!
//! - `handle_*`: something arrived: a message, a moment in time, the end of a stream.
//! - plain verbs: the application wants something.
//! - `poll_*`: what should now be done. Call them until they give `None`, after every input.
//!
//! How a request can end is in [`Outcome`]; where it begins and ends is `requests.rs`. Transports
//! differ in who owns an engine and for how long: a connection (stdio), a session (legacy HTTP), a
//! single POST (modern HTTP), a client.
//!
//! # Invariants
//!
//! 1. A request is in a table of `requests.rs` from its beginning to its end, and nowhere after.
//!    Nothing else is kept for a request that has ended: no timer, no frame, no exchange but one
//!    that is on its way to be closed. A handler that is still being stopped is a handler, not a
//!    request.
//! 2. Whoever ends a request first decides how; everyone later finds nothing and does nothing.
//! 3. A cancel is written at most once, after its request, and only if the write of that request
//!    had begun; never for the handshake.
//! 4. The answer to a request can be withdrawn until its write begins, and then never.
//! 5. The engine knows no clock, no socket and no task: the same inputs give the same outputs.
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
/// What the application keeps for a request or an exchange, it keeps in the engine's own tables: so it
/// is there for exactly as long as that is, and no second table can disagree. `C` belongs to a call of
/// ours ([`Engine::call_mut`]), `H` to a handler ([`Engine::handler_mut`]), `X` to an exchange
/// ([`Engine::exchange_mut`]). Each begins as its default, and is given back at the end.
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
    /// A cancel may overtake its request on the way to this peer.
    peer_remembers_cancels: bool,
    closing: ClosingState,
    timers: Timers,
    events: VecDeque<Event<C>>,
    transmits: VecDeque<Transmit<X>>,
    /// How long an answer may be that the engine gives by itself.
    answer_room: usize,
}

impl Engine {
    /// A new one that keeps nothing for the application.
    ///
    /// Many engines can share what they were told: a server on HTTP has one for each POST.
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        Self::carrying(config)
    }

    /// What keeping a frame takes besides its bytes.
    pub const FRAME_OVERHEAD: usize = 128;
}

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// A new one that keeps something of the application's for each call, handler and exchange.
    pub fn carrying(config: impl Into<Arc<Config>>) -> Self {
        let config = config.into();
        // The link, and what most engines on HTTP have besides: one POST.
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
            // Room for one, which is all that most engines on HTTP ever have at a time.
            events: VecDeque::with_capacity(1),
            transmits: VecDeque::with_capacity(1),
            answer_room: usize::MAX,
        }
    }

    /// How many bytes an answer may have now that the engine gives by itself, to `initialize` and
    /// `server/discover`. A longer one is refused as an overload (**bounded**). To be said before each
    /// message by whoever weighs what waits to be read.
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

    /// Something has arrived that is no message. A bad answer spoils its call, a bad request is
    /// answered with an error, and nothing else happens (**smallest-scope**).
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
            // On a stream that a call has to itself it can only mean that call.
            (Kind::Response | Kind::Unknown, None) if self.written_call_on(exchange).is_some() => {
                if let Some(call) = self.written_call_on(exchange) {
                    self.violated(now, call, error);
                }
            }
            // Nobody waits for an answer to these.
            (Kind::Response | Kind::Notification, _) => {}
            (Kind::Request, Some(_)) if self.must_not_answer() => {
                self.requests.ledger.ignored_requests += 1;
            }
            (Kind::Request, Some(_)) if self.is_flooded() => {
                self.lose_link(now, LossKind::Flooded.into());
            }
            // A client that answered a server's stray output would only add to the noise; but what
            // has a method and an id is waited for.
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

    /// An error without an id. On a stream that a call has to itself it can only mean that call;
    /// elsewhere it means nothing.
    fn handle_unaddressed(&mut self, now: Time, exchange: ExchangeId, error: ErrorObject) {
        match self.written_call_on(exchange) {
            Some(call) => self.finish_call(now, call, Outcome::Refused(error)),
            None => self.requests.ledger.malformed += 1,
        }
    }

    /// Time has passed.
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

    /// What the application should know next.
    pub fn poll_event(&mut self) -> Option<Event<C>> {
        while let Some(event) = self.events.pop_front() {
            match &event {
                Event::Request(incoming) if !self.starts(incoming.key) => {}
                _ => return Some(event),
            }
        }
        None
    }

    /// The next event, if that is a request: for whoever has just handed it in, and runs its handler.
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

    /// The next event, if that is the end of a call: for whoever has just handed in its answer.
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

    /// How many events wait to be taken with [`Engine::poll_event`]. Whoever reads much faster than
    /// they are taken should wait.
    pub fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// Gives back the memory of tables and queues that is not needed now. They keep it otherwise, so
    /// that a request in a steady state allocates little; but an engine that is idle, one of many, is
    /// better kept small.
    pub fn shrink(&mut self) {
        self.requests.shrink();
        self.handlers.shrink();
        self.exchanges.shrink();
        self.early_cancels.shrink();
        self.timers.shrink();
        self.events.shrink_to_fit();
        self.transmits.shrink_to_fit();
    }

    /// What the transport should do next.
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

    /// When to call [`Engine::handle_timeout`], at the latest.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.timers.next()
    }

    /// The books.
    pub fn ledger(&self) -> &Ledger {
        &self.requests.ledger
    }

    /// How many handlers exist: those that run, and those that are being stopped.
    pub fn handlers(&self) -> usize {
        self.handlers.len()
    }

    /// Whether nothing goes on: no request in either direction, no exchange but the one that is always
    /// there, no handler that was not dropped.
    pub fn is_quiet(&self) -> bool {
        self.requests.calls().is_empty()
            && self.requests.all_serving().is_empty()
            && self.handlers.are_all_aborted()
            // The one that is always there.
            && self.exchanges.len() == 1
    }

    /// What the application keeps for a call of ours that has not ended.
    pub fn call_mut(&mut self, call: CallId) -> Option<&mut C> {
        self.requests.call_mut(call).map(|call| &mut call.caller)
    }

    /// What the application keeps for a handler that exists.
    pub fn handler_mut(&mut self, request: RequestKey) -> Option<&mut H> {
        self.handlers
            .get_mut(request)
            .map(|handler| &mut handler.kept)
    }

    /// What the application keeps for an exchange that is open.
    pub fn exchange_mut(&mut self, exchange: ExchangeId) -> Option<&mut X> {
        self.exchanges.kept_mut(exchange)
    }

    /// How the other side introduced itself in the handshake: to a server the parameters of
    /// `initialize`, to a client the answer to its own. A modern client introduces itself with every
    /// request instead.
    pub fn introduction(&self) -> Option<&RawJson> {
        self.introduction.as_ref()
    }

    /// What it was told before it began.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn is_client(&self) -> bool {
        self.config.role() == Role::Client
    }

    /// The call of ours that has this exchange to itself.
    fn call_on(&self, exchange: ExchangeId) -> Option<CallId> {
        match self.exchanges.get(exchange)?.purpose {
            Purpose::Call(call) => Some(call),
            _ => None,
        }
    }

    /// The same, if the peer may know of it.
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

    /// Where a call has an exchange to itself, whatever arrives on it speaks of that call.
    fn heard(&mut self, exchange: ExchangeId) {
        if let Some(call) = self.call_on(exchange)
            && let Some(call) = self.requests.call_mut(call)
            && call.sent == Sent::Maybe
        {
            call.sent = Sent::Yes;
            call.delivery = Delivery::Known;
        }
    }

    /// After every input: closes what has nothing left to do.
    fn settle(&mut self, now: Time) {
        self.settle_exchanges(now);
        self.settle_closing(now);
    }
}
