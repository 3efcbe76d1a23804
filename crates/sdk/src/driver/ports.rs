//! Exchanges on HTTP. Each that is open has a port: the place where whoever carries it waits for
//! something to write, and learns that it is over.
//!
//! The port says nothing about requests. It knows a waker, and how its exchange was closed.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[cfg(all(feature = "http", feature = "server"))]
use belay_protocol::engine::Ledger;
use belay_protocol::engine::{
    Closing, Engine, ExchangeId, Loss, LossKind, Time, Transmit, Waiting, Wire,
};
use belay_protocol::jsonrpc::{DecodeError, Message};
use bytes::Bytes;

use super::shares::FREE;
use super::{Link, Pool, State};

/// One open exchange.
#[derive(Default)]
pub(super) struct Port {
    /// Who carries it: a stream that is resumed has a new carrier, and the old one is told to go.
    carrier: u64,
    /// Whether the carrier is there.
    carried: bool,
    waker: Option<Waker>,
    closed: Option<Closing>,
    /// Its carrier is to end the stream for now, and say when to ask for it again.
    let_go: Option<Duration>,
}

/// What there is to do on an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// There is something to write.
    Write(Waiting),
    /// It is over.
    Over(Closing),
    /// Somebody else carries it now.
    Replaced,
    /// The stream ends for now, to be asked for again after a while.
    LetGo(Duration),
}

impl State {
    /// Carries out what the engine wants of the transport. Gives back a waker for whoever has
    /// something to do; it is to be woken outside the lock.
    pub(super) fn route(&mut self) -> Option<Waker> {
        let mut first = None;
        let opens_exchanges = self.engine.opens_exchanges();
        while let Some(transmit) = self.engine.poll_transmit() {
            let exchange = match transmit {
                Transmit::Write(exchange) => exchange,
                Transmit::Close { exchange, how } => {
                    self.close_port(exchange, how);
                    exchange
                }
            };
            match self.ports.get_mut(&exchange) {
                Some(port) => match (port.waker.take(), &first) {
                    (waker, None) => first = waker,
                    (Some(waker), Some(_)) => waker.wake(),
                    (None, _) => {}
                },
                None if transmit == Transmit::Write(exchange) && opens_exchanges => {
                    if !self.unopened.contains(&exchange) {
                        self.unopened.push(exchange);
                    }
                }
                None => self.unopened.retain(|unopened| *unopened != exchange),
            }
        }
        self.tell_all_ports();
        self.weigh_output();
        first
    }

    /// When all is over, those who wait on an exchange that has no end of its own are told, too.
    fn tell_all_ports(&mut self) {
        if self.engine.is_closed() && !std::mem::replace(&mut self.ports_told, true) {
            for port in self.ports.values_mut() {
                if let Some(waker) = port.waker.take() {
                    waker.wake();
                }
            }
        }
    }

    /// A new carrier for an exchange. Whoever carried it before is told to go.
    fn carry(&mut self, exchange: ExchangeId) -> (u64, Option<Waker>) {
        self.last_carrier += 1;
        let port = self.ports.entry(exchange).or_default();
        port.carrier = self.last_carrier;
        port.carried = true;
        port.let_go = None;
        (self.last_carrier, port.waker.take())
    }

    fn is_carried_by(&self, carried: &Carried) -> bool {
        let port = self.ports.get(&carried.exchange);
        port.is_some_and(|port| port.carrier == carried.carrier)
    }

    /// How an exchange is over, for whoever carries it. Nothing waits on one that is closed.
    fn is_over(&self, carried: &Carried) -> Option<Turn> {
        let port = self.ports.get(&carried.exchange);
        let Some(port) = port.filter(|port| port.carrier == carried.carrier) else {
            return Some(Turn::Replaced);
        };
        if let Some(how) = port.closed {
            return Some(Turn::Over(how));
        }
        if !self.engine.is_open(carried.exchange) {
            return Some(Turn::Over(Closing::Abandoned));
        }
        // The GET stream and a pipe have no end of their own.
        let closed = self.engine.is_closed();
        closed.then_some(Turn::Over(Closing::Finished))
    }

    fn wake_later(&mut self, exchange: ExchangeId, cx: &Context<'_>) {
        if let Some(port) = self.ports.get_mut(&exchange) {
            match &mut port.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => port.waker = Some(cx.waker().clone()),
            }
        }
    }

    fn close_port(&mut self, exchange: ExchangeId, how: Closing) {
        if let Some(port) = self.ports.get_mut(&exchange) {
            port.closed = Some(how);
            if !port.carried {
                self.ports.remove(&exchange);
            }
        }
    }
}

impl Link {
    /// The peer has opened an exchange.
    pub(crate) fn exchange_opened(self: &Arc<Self>) -> Carried {
        let (exchange, carrier) = {
            let mut state = self.lock();
            let exchange = state.engine.handle_exchange_opened();
            (exchange, state.carry(exchange).0)
        };
        self.carried(exchange, carrier)
    }

    /// The peer has opened an exchange, and said all that it will on it: this message.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn posted(self: &Arc<Self>, message: Result<Message, DecodeError>) -> Carried {
        let (exchange, carrier) = {
            let mut state = self.lock();
            let now = self.now();
            let exchange = state.engine.handle_exchange_opened();
            let (carrier, _) = state.carry(exchange);
            self.take_message(&mut state.engine, now, exchange, message);
            state.engine.handle_input_ended(now, exchange);
            state.route();
            (exchange, carrier)
        };
        self.carried(exchange, carrier)
    }

    /// Carries the link's own exchange from now on: its GET stream, or all of a pipe.
    pub(crate) fn carry_link(self: &Arc<Self>) -> Carried {
        let (carrier, before) = self.lock().carry(ExchangeId::LINK);
        if let Some(before) = before {
            before.wake();
        }
        self.carried(ExchangeId::LINK, carrier)
    }

    /// Carries an exchange from now on that broke, or that somebody else carries; `None` if it is
    /// over. Whoever carried it before is told to go, and takes nothing from it any more.
    pub(crate) fn resume(self: &Arc<Self>, exchange: ExchangeId) -> Option<Carried> {
        let (carrier, before) = {
            let mut state = self.lock();
            if !state.engine.is_open(exchange) || state.engine.is_closed() {
                return None;
            }
            state.carry(exchange)
        };
        if let Some(before) = before {
            before.wake();
        }
        Some(self.carried(exchange, carrier))
    }

    /// The exchanges that the engine wants opened.
    pub(crate) fn unopened(self: &Arc<Self>) -> Vec<Carried> {
        let mut state = self.lock();
        let unopened = std::mem::take(&mut state.unopened);
        let carried = unopened.into_iter().map(|exchange| {
            let (carrier, _) = state.carry(exchange);
            self.carried(exchange, carrier)
        });
        carried.collect()
    }

    fn carried(self: &Arc<Self>, exchange: ExchangeId, carrier: u64) -> Carried {
        Carried {
            link: self.clone(),
            exchange,
            carrier,
            begun: false,
            done: false,
        }
    }

    /// A message has arrived on the link's own exchange, or something that is none.
    pub(crate) fn deliver(&self, message: Result<Message, DecodeError>) {
        self.deliver_on(ExchangeId::LINK, message);
    }

    fn deliver_on(&self, exchange: ExchangeId, message: Result<Message, DecodeError>) {
        self.tell(|engine, now| self.take_message(engine, now, exchange, message));
    }

    fn take_message(
        &self,
        engine: &mut Engine,
        now: Time,
        exchange: ExchangeId,
        message: Result<Message, DecodeError>,
    ) {
        match message {
            Ok(message) => {
                if self.weighs_output {
                    engine.set_answer_room(FREE + self.peer.room(Pool::Bytes));
                }
                engine.handle_message(now, exchange, message);
            }
            Err(error) => {
                tracing::debug!(%error, "a message was malformed (smallest-scope)");
                engine.handle_malformed(now, exchange, &error);
            }
        }
    }

    /// Takes the first frame that waits on an exchange: from now on it counts as written.
    pub(crate) fn begin_write(&self, exchange: ExchangeId) -> Option<Bytes> {
        self.tell(|engine, now| engine.begin_write(now, exchange))
    }

    /// The same, if that is this frame.
    pub(crate) fn begin_write_of(&self, exchange: ExchangeId, frame: &Bytes) -> Option<Bytes> {
        self.tell(|engine, now| engine.begin_write_of(now, exchange, frame))
    }

    /// What was taken first has left.
    pub(crate) fn write_done(&self, exchange: ExchangeId) {
        self.tell(|engine, now| engine.handle_write_done(now, exchange));
        self.room.notify_waiters();
    }

    /// Whether more should be read from the peer.
    pub(crate) fn wants_input(&self) -> bool {
        self.lock().engine.wants_input()
    }

    /// Ends the stream of an exchange for now, if somebody carries it.
    #[cfg(feature = "server")]
    pub(crate) fn let_go(&self, exchange: ExchangeId, again: Duration) {
        let waker = {
            let mut state = self.lock();
            let wire = state.engine.config().wire;
            let port = state.ports.get_mut(&exchange);
            let Some(port) = port.filter(|port| port.carried && wire == Wire::Http) else {
                return;
            };
            port.let_go = Some(again);
            port.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether this exchange is open, or broken and able to come back.
    pub(crate) fn is_open(&self, exchange: ExchangeId) -> bool {
        self.lock().engine.is_open(exchange)
    }

    /// Whether somebody hears what is said on the link by itself: on HTTP that takes a GET stream.
    #[cfg(feature = "server")]
    pub(crate) fn is_heard(&self) -> bool {
        let http = self.lock().engine.config().wire == Wire::Http;
        !http || self.is_carried(ExchangeId::LINK)
    }

    /// Whether somebody carries this exchange.
    pub(crate) fn is_carried(&self, exchange: ExchangeId) -> bool {
        let state = self.lock();
        state.ports.get(&exchange).is_some_and(|port| port.carried)
    }
}

/// An exchange, for whoever carries it. Dropping it tells the engine that the stream is gone, unless
/// the exchange is over: what that means, the engine knows.
pub(crate) struct Carried {
    link: Arc<Link>,
    exchange: ExchangeId,
    carrier: u64,
    begun: bool,
    /// All of it is over, and nothing is kept of it.
    done: bool,
}

/// The only thing that was said on an exchange.
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) struct Last {
    pub(crate) waiting: Waiting,
    pub(crate) frame: Bytes,
    /// What the link did, if nothing goes on there any more.
    pub(crate) ledger: Option<Ledger>,
}

impl Carried {
    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) fn exchange(&self) -> ExchangeId {
        self.exchange
    }

    /// A message has arrived on it, or something that is none.
    pub(crate) fn deliver(&self, message: Result<Message, DecodeError>) {
        self.link.deliver_on(self.exchange, message);
    }

    /// No more messages will arrive on it.
    pub(crate) fn input_ended(&self) {
        let exchange = self.exchange;
        self.link
            .tell(|engine, now| engine.handle_input_ended(now, exchange));
    }

    /// A broken stream is whole again, or a GET stream is open.
    pub(crate) fn resumed(&self) {
        let exchange = self.exchange;
        self.link
            .tell(|engine, now| engine.handle_exchange_resumed(now, exchange));
    }

    /// What is next. Whoever is polled last is woken.
    pub(crate) fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<Turn> {
        let mut state = self.link.lock();
        if let Some(over) = state.is_over(self) {
            return Poll::Ready(over);
        }
        if let Some(waiting) = state.engine.first_waiting(self.exchange) {
            return Poll::Ready(Turn::Write(waiting));
        }
        let port = state.ports.get(&self.exchange);
        if let Some(again) = port.and_then(|port| port.let_go) {
            return Poll::Ready(Turn::LetGo(again));
        }
        state.wake_later(self.exchange, cx);
        Poll::Pending
    }

    /// Ready when it is over, whatever waits on it; tells how.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Closing> {
        let mut state = self.link.lock();
        match state.is_over(self) {
            Some(Turn::Over(how)) => Poll::Ready(how),
            Some(_) => Poll::Ready(Closing::Abandoned),
            None => {
                state.wake_later(self.exchange, cx);
                Poll::Pending
            }
        }
    }

    /// The stream goes on after all.
    pub(crate) fn hold_on(&self) {
        let mut state = self.link.lock();
        if let Some(port) = state.ports.get_mut(&self.exchange) {
            port.let_go = None;
        }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.link.lock().is_over(self).is_some()
    }

    /// What would be taken, to look at.
    pub(crate) fn peek(&self) -> Option<Bytes> {
        let state = self.link.lock();
        state.engine.queued(self.exchange).next().cloned()
    }

    /// Takes the first frame that waits: from now on it counts as written. The one before it is
    /// done.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        self.written();
        let frame = self.while_carried(|link| link.begin_write(self.exchange))?;
        self.begun = frame.is_some();
        frame
    }

    /// Takes what waits, if that is all that will be said: then it is over.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn take_last(&mut self) -> Option<Last> {
        let mut state = self.link.lock();
        let state = &mut *state;
        if state.is_over(self).is_some() {
            return None;
        }
        let waiting = state.engine.first_waiting(self.exchange)?;
        if !matches!(waiting, Waiting::Answer { .. } | Waiting::Refusal { .. }) {
            return None;
        }
        let now = self.link.now();
        let frame = state.engine.begin_write(now, self.exchange)?;
        state.engine.handle_write_done(now, self.exchange);
        state.route();
        if !state.engine.is_open(self.exchange) {
            state.ports.remove(&self.exchange);
            self.done = true;
        }
        let quiet = state.engine.is_quiet() && state.running.is_empty();
        Some(Last {
            waiting,
            frame,
            ledger: quiet.then(|| state.engine.ledger().clone()),
        })
    }

    /// Does something, unless somebody else carries it now.
    fn while_carried<T>(&self, act: impl FnOnce(&Link) -> T) -> Option<T> {
        // Whoever takes over does so before they look, so that a look is enough.
        let carried = self.link.lock().is_carried_by(self);
        carried.then(|| act(&self.link))
    }

    /// A frame that was taken, weighed for as long as the peer does not read it.
    #[cfg(feature = "server")]
    pub(crate) fn weighed(&self, frame: Bytes) -> Bytes {
        let mut permit = self.link.peer.begin(Pool::Bytes);
        permit.weigh(frame.len());
        permit.attach(frame)
    }

    /// What was taken last has left.
    pub(crate) fn written(&mut self) {
        if std::mem::take(&mut self.begun) {
            self.while_carried(|link| link.write_done(self.exchange));
        }
    }

    /// The head of the response to what was posted has come.
    pub(crate) fn acknowledged(&self) {
        let exchange = self.exchange;
        self.link
            .tell(|engine, now| engine.handle_acknowledged(now, exchange));
    }

    /// The stream is gone, and that is why. If it is `resumable`, it is still carried: it is being
    /// asked for again.
    pub(crate) fn lost(&self, cause: Loss, resumable: bool) {
        let exchange = self.exchange;
        self.link
            .tell(|engine, now| engine.handle_exchange_lost(now, exchange, cause, resumable));
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let waker = {
            let mut state = self.link.lock();
            let state = &mut *state;
            let Some(port) = state.ports.get_mut(&self.exchange) else {
                return;
            };
            if port.carrier != self.carrier {
                return;
            }
            port.carried = false;
            port.waker = None;
            let over = port.closed.is_some();
            if !over {
                let now = self.link.now();
                let cause = LossKind::EndOfStream.into();
                state
                    .engine
                    .handle_exchange_lost(now, self.exchange, cause, false);
            }
            // One that waits to be resumed keeps its port; the GET stream gets a new one.
            if over || self.exchange == ExchangeId::LINK || !state.engine.is_open(self.exchange) {
                state.ports.remove(&self.exchange);
            }
            state.route()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        self.link.wake_driver();
    }
}
