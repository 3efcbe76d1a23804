//! Exchanges on HTTP. The engine keeps a port for each open exchange. There the task that carries
//! the exchange waits for frames to write, and learns that the exchange is over.
//!
//! A port knows nothing about requests, only its carrier and how to wake it.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use belay_protocol::engine::{Closing, ExchangeId, Time, Transmit, Waiting, Wire};
use belay_protocol::jsonrpc::{DecodeError, Message};
use bytes::Bytes;

#[cfg(all(feature = "http", feature = "server"))]
use super::App;
use super::shares::FREE;
use super::{Engine, ExchangeHandle, Link, Pool, State, fenced};

/// The port of an open exchange.
#[derive(Default)]
pub(super) struct Port {
    /// The carrier, if there is one. A stream that is resumed gets a new carrier,
    /// which replaces the one before.
    carrier: Option<Over>,
    waker: Option<Waker>,
    /// The carrier should end the stream for now, and tell the client to reconnect
    /// after this delay.
    pub(super) close_stream: Option<Duration>,
    /// This side has to open the exchange, and has not done so yet.
    unopened: bool,
}

/// How an exchange has ended for its carrier, which shares it. Set once, under the link's lock.
pub(super) type Over = Arc<OnceLock<ExchangeStep>>;

/// What there is to do on an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExchangeStep {
    /// There is a frame to write.
    Write(Waiting),
    /// The exchange is over.
    Over(Closing),
    /// The exchange has another carrier now.
    Replaced,
    /// The stream should end for now, and be resumed after this delay.
    CloseStream(Duration),
}

impl Port {
    /// Whether this is its carrier.
    pub(super) fn is_carried_by(&self, over: &Over) -> bool {
        let carrier = self.carrier.as_ref();
        carrier.is_some_and(|carrier| Arc::ptr_eq(carrier, over))
    }

    /// Removes the carrier.
    pub(super) fn detach(&mut self) {
        (self.carrier, self.waker) = (None, None);
    }

    /// Ends the exchange for its carrier. The returned waker must be woken outside of the lock.
    fn end(&mut self, how: ExchangeStep) -> Option<Waker> {
        if let Some(carrier) = self.carrier.take() {
            let _ = carrier.set(how);
        }
        self.waker.take()
    }

    pub(super) fn wake_later(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }
}

impl Drop for Port {
    /// The engine has removed the exchange, because its carrier reported the end of it.
    fn drop(&mut self) {
        self.end(ExchangeStep::Over(Closing::Abandoned));
    }
}

/// The tasks to wake after a change of the engine. To be woken outside of the lock.
#[must_use]
pub(super) struct Routed {
    /// A task that carries an exchange.
    pub(super) carrier: Option<Waker>,
    /// The driver.
    pub(super) driver: bool,
}

impl State {
    /// Carries out the engine's instructions to the transport.
    pub(super) fn route(&mut self) -> Routed {
        let mut first = None;
        let mut woken = |waker: Option<Waker>| match (waker, &first) {
            (waker, None) => first = waker,
            (Some(waker), Some(_)) => waker.wake(),
            (None, _) => {}
        };
        let mut any_left = false;
        while let Some(transmit) = self.engine.poll_transmit() {
            woken(match transmit {
                Transmit::Write(exchange) => self.notice(exchange),
                Transmit::Close { mut kept, how, .. } => {
                    any_left |= self.is_post || kept.carrier.is_none();
                    kept.end(ExchangeStep::Over(how))
                }
            });
        }
        let is_closed = self.engine.is_closed();
        // The engine closes no exchange of the link's own (the GET stream, or a
        // pipe), so it ends here.
        if is_closed && let Some(port) = self.engine.exchange_mut(ExchangeId::LINK) {
            woken(port.end(ExchangeStep::Over(Closing::Finished)));
        }
        self.weigh_output();
        Routed {
            carrier: first,
            driver: is_closed || any_left || self.is_driver_needed(),
        }
    }

    /// Whether there is something for the driver to do. On a pipe there always may be,
    /// because it reads and writes.
    pub(super) fn is_driver_needed(&self) -> bool {
        let is_earlier = |due: Time| self.awaited.is_none_or(|awaited| due < awaited);
        self.engine.config().wire == Wire::Pipe
            || self.engine.events_waiting() > 0
            || !self.unopened.is_empty()
            || self.engine.poll_timeout().is_some_and(is_earlier)
    }

    /// Wakes the carrier of an exchange with a frame to write, or marks the exchange to be opened.
    fn notice(&mut self, exchange: ExchangeId) -> Option<Waker> {
        let opens_exchanges = self.engine.opens_exchanges();
        let port = self.engine.exchange_mut(exchange)?;
        let is_ours = opens_exchanges && port.carrier.is_none();
        if is_ours && !std::mem::replace(&mut port.unopened, true) {
            self.unopened.push(exchange);
        }
        port.waker.take()
    }

    /// Opens the exchange that was added last, unless it has ended.
    pub(super) fn open_last(&mut self, link: &Arc<Link>) -> Option<ExchangeHandle> {
        let exchange = self.unopened.pop()?;
        let port = self.engine.exchange_mut(exchange)?;
        std::mem::take(&mut port.unopened).then(|| {
            let (over, _) = self.carry(exchange);
            ExchangeHandle::new(link, exchange, over)
        })
    }

    /// Sets a new carrier for an exchange. The one before is told to go.
    pub(super) fn carry(&mut self, exchange: ExchangeId) -> (Over, Option<Waker>) {
        let over = Over::default();
        let closed = exchange == ExchangeId::LINK && self.engine.is_closed();
        let before = match self.engine.exchange_mut(exchange) {
            Some(port) if !closed => {
                let before = port.end(ExchangeStep::Replaced);
                (port.carrier, port.close_stream) = (Some(over.clone()), None);
                before
            }
            known => {
                let how = match known.is_some() {
                    true => Closing::Finished,
                    false => Closing::Abandoned,
                };
                let _ = over.set(ExchangeStep::Over(how));
                None
            }
        };
        (over, before)
    }
}

impl Link {
    /// Registers an exchange that the peer has opened.
    pub(crate) fn exchange_opened(self: &Arc<Self>) -> ExchangeHandle {
        let (exchange, over) = {
            let mut state = self.lock();
            let exchange = state.engine.handle_exchange_opened();
            (exchange, state.carry(exchange).0)
        };
        ExchangeHandle::new(self, exchange, over)
    }

    /// Registers an exchange that the peer has opened with a single message. If that is a request,
    /// its handler is polled here, once.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn posted(
        self: &Arc<Self>,
        app: &Arc<dyn App>,
        message: Result<Message, DecodeError>,
    ) -> ExchangeHandle {
        let _ = self.app.get_or_init(|| Arc::downgrade(app));
        log_malformed(&message);
        let (handle, started, routed) = {
            let mut state = self.lock();
            let (state, now) = (&mut *state, self.now());
            let exchange = state.engine.handle_exchange_opened();
            let (over, _) = state.carry(exchange);
            // Earlier events are left to the driver, and come first.
            let is_first = state.engine.events_waiting() == 0 && !state.is_acting;
            self.take_message(&mut state.engine, now, exchange, message);
            state.engine.handle_input_ended(now, exchange);
            let request = match is_first {
                true => state.engine.poll_request(),
                false => None,
            };
            let started = request.and_then(|request| state.admit(self, now, request));
            (
                ExchangeHandle::new(self, exchange, over),
                started,
                state.route(),
            )
        };
        self.wake(routed);
        if let Some(context) = started {
            self.run_here(app, context);
        }
        handle
    }

    /// Carries the link's own exchange: its GET stream, or all of a pipe.
    pub(crate) fn carry_link(self: &Arc<Self>) -> ExchangeHandle {
        let (over, before) = self.lock().carry(ExchangeId::LINK);
        if let Some(before) = before {
            before.wake();
        }
        ExchangeHandle::new(self, ExchangeId::LINK, over)
    }

    /// Takes over an exchange that is broken, or that has another carrier. `None` if it is over.
    /// The carrier before is told to go, and takes no more frames.
    pub(crate) fn resume(self: &Arc<Self>, exchange: ExchangeId) -> Option<ExchangeHandle> {
        let (over, before) = {
            let mut state = self.lock();
            if !state.engine.is_open(exchange) || state.engine.is_closed() {
                return None;
            }
            state.carry(exchange)
        };
        if let Some(before) = before {
            before.wake();
        }
        Some(ExchangeHandle::new(self, exchange, over))
    }

    /// Sets how exchanges are opened: those of calls at once, and all others at
    /// [`Link::open_exchanges`].
    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) fn set_opener(&self, open: impl Fn(ExchangeHandle) + Send + Sync + 'static) {
        let _ = self.opener.set(Box::new(open));
    }

    /// Opens the exchanges that wait for that. Called at every turn.
    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) fn open_exchanges(self: &Arc<Self>) {
        let Some(open) = self.opener.get() else {
            return;
        };
        let mut handle = Vec::new();
        {
            let mut state = self.lock();
            while !state.unopened.is_empty() {
                handle.extend(state.open_last(self));
            }
        }
        handle.into_iter().rev().for_each(open);
    }

    /// Delivers a message that arrived on the link's own exchange, or the error of a malformed one.
    pub(crate) fn deliver(&self, message: Result<Message, DecodeError>) {
        self.deliver_on(ExchangeId::LINK, message, false);
    }

    /// Delivers a message that arrived on an exchange, or the error of a malformed one.
    ///
    /// If it ends a call, the caller is notified here, without a turn of the driver. If earlier
    /// events wait, they are left to the driver and come first.
    pub(super) fn deliver_on(
        &self,
        exchange: ExchangeId,
        message: Result<Message, DecodeError>,
        is_last: bool,
    ) {
        log_malformed(&message);
        let (ended, routed) = {
            let mut state = self.lock();
            let (state, now) = (&mut *state, self.now());
            let is_first = state.engine.events_waiting() == 0 && !state.is_acting;
            self.take_message(&mut state.engine, now, exchange, message);
            if is_last {
                state.engine.handle_input_ended(now, exchange);
            }
            let ended = match is_first {
                true => state.engine.poll_ended(),
                false => None,
            };
            (ended, state.route())
        };
        self.wake(routed);
        if let Some((Some(waiter), outcome)) = ended {
            fenced("a waker", move || waiter.ended(outcome));
        }
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
            Err(error) => engine.handle_malformed(now, exchange, &error),
        }
    }

    /// Takes the first waiting frame of an exchange, if it is this one. It counts
    /// as written from now on.
    pub(crate) fn begin_write_of(&self, exchange: ExchangeId, frame: &Bytes) -> Option<Bytes> {
        self.tell(|engine, now| engine.begin_write_of(now, exchange, frame))
    }

    /// Reports that the frame that was taken first is written.
    pub(crate) fn write_done(&self, exchange: ExchangeId) {
        self.tell(|engine, now| engine.handle_write_done(now, exchange));
        self.room.notify_waiters();
    }

    /// Whether more should be read from the peer.
    pub(crate) fn wants_input(&self) -> bool {
        self.lock().engine.wants_input()
    }

    /// Ends the stream of an exchange for now, if it has a carrier.
    #[cfg(feature = "server")]
    pub(crate) fn close_stream(&self, exchange: ExchangeId, again: Duration) {
        let waker = {
            let mut state = self.lock();
            let wire = state.engine.config().wire;
            let port = state.engine.exchange_mut(exchange);
            let Some(port) = port.filter(|port| port.carrier.is_some() && wire == Wire::Http)
            else {
                return;
            };
            port.close_stream = Some(again);
            port.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the exchange is open, or broken and resumable.
    pub(crate) fn is_open(&self, exchange: ExchangeId) -> bool {
        self.lock().engine.is_open(exchange)
    }

    /// Whether the peer receives notifications of the link. On HTTP that takes a GET stream.
    #[cfg(feature = "server")]
    pub(crate) fn is_heard(&self) -> bool {
        let mut state = self.lock();
        state.engine.config().wire != Wire::Http || state.is_carried(ExchangeId::LINK)
    }

    /// Whether the exchange has a carrier.
    pub(crate) fn is_carried(&self, exchange: ExchangeId) -> bool {
        self.lock().is_carried(exchange)
    }
}

impl State {
    fn is_carried(&mut self, exchange: ExchangeId) -> bool {
        let port = self.engine.exchange_mut(exchange);
        port.is_some_and(|port| port.carrier.is_some())
    }
}

/// Outside the link's lock: the subscriber of a program's logs is user code.
fn log_malformed(message: &Result<Message, DecodeError>) {
    if let Err(error) = message {
        tracing::debug!(%error, "a message was malformed (smallest-scope)");
    }
}
