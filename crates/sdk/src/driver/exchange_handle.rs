//! An exchange, as the transport task that carries it sees it.

use std::sync::Arc;
use std::task::{Context, Poll};

use belay_protocol::engine::{Closing, ExchangeId, Loss, LossKind, Time};
#[cfg(all(feature = "http", feature = "server"))]
use belay_protocol::engine::{Ledger, Waiting};
use belay_protocol::jsonrpc::{DecodeError, Message};
#[cfg(all(feature = "http", feature = "client"))]
use belay_protocol::{engine::CallId, types::ProtocolVersion};
use bytes::Bytes;

#[cfg(all(feature = "http", feature = "client"))]
use super::Waiter;
use super::ports::{ExchangeStep, Over};
use super::{Engine, Link, Pool};

/// An exchange that a transport carries. Dropping it reports the stream as lost, unless the
/// exchange is over; the engine decides what that means.
pub(crate) struct ExchangeHandle {
    link: Arc<Link>,
    exchange: ExchangeId,
    over: Over,
    begun: bool,
}

/// All messages of an exchange that has been answered.
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) struct Last {
    /// The messages before the answer, such as progress.
    pub(crate) before: Vec<Bytes>,
    pub(crate) waiting: Waiting,
    pub(crate) frame: Bytes,
    /// The counts of the link, if it is that of a POST and nothing goes on there any more.
    pub(crate) ledger: Option<Ledger>,
}

/// A call that waits to be posted.
#[cfg(all(feature = "http", feature = "client"))]
pub(crate) struct WaitingCall {
    pub(crate) frame: Bytes,
    /// The caller's end of the call, or `None` for a request of the engine's own.
    pub(crate) waiter: Option<Arc<Waiter>>,
    /// The protocol version for the header of the POST.
    pub(crate) version: Option<ProtocolVersion>,
}

impl ExchangeHandle {
    pub(super) fn new(link: &Arc<Link>, exchange: ExchangeId, over: Over) -> Self {
        Self {
            link: link.clone(),
            exchange,
            over,
            begun: false,
        }
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    pub(crate) fn exchange(&self) -> ExchangeId {
        self.exchange
    }

    /// Delivers a message that arrived on the exchange, or the error of a malformed one.
    pub(crate) fn deliver(&self, message: Result<Message, DecodeError>) {
        self.link.deliver_on(self.exchange, message, false);
    }

    /// Delivers the last message of the exchange, or the error of a malformed one.
    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) fn deliver_last(&self, message: Result<Message, DecodeError>) {
        self.link.deliver_on(self.exchange, message, true);
    }

    /// Reports that no more messages will arrive on it.
    pub(crate) fn input_ended(&self) {
        let exchange = self.exchange;
        self.link
            .tell(|engine, now| engine.handle_input_ended(now, exchange));
    }

    /// Reports that a broken stream was resumed, or that a GET stream was opened.
    pub(crate) fn resumed(&self) {
        let exchange = self.exchange;
        self.link
            .tell(|engine, now| engine.handle_exchange_resumed(now, exchange));
    }

    /// What there is to do next. Only the waker of the last poll is kept.
    pub(crate) fn poll_step(&self, cx: &mut Context<'_>) -> Poll<ExchangeStep> {
        self.poll(cx, |engine, exchange| {
            if let Some(waiting) = engine.first_waiting(exchange) {
                return Some(ExchangeStep::Write(waiting));
            }
            engine
                .exchange_mut(exchange)?
                .close_stream
                .map(ExchangeStep::CloseStream)
        })
    }

    /// Ready when the exchange is over, even if frames are waiting. Returns how it ended.
    pub(crate) fn poll_over(&self, cx: &mut Context<'_>) -> Poll<Closing> {
        self.poll(cx, |_, _| None).map(|over| match over {
            ExchangeStep::Over(how) => how,
            _ => Closing::Abandoned,
        })
    }

    fn poll(
        &self,
        cx: &mut Context<'_>,
        next: impl FnOnce(&mut Engine, ExchangeId) -> Option<ExchangeStep>,
    ) -> Poll<ExchangeStep> {
        if let Some(over) = self.over.get() {
            return Poll::Ready(*over);
        }
        let mut state = self.link.lock();
        // It is set under the lock, so this check is final.
        if let Some(over) = self.over.get() {
            return Poll::Ready(*over);
        }
        if let Some(next) = next(&mut state.engine, self.exchange) {
            return Poll::Ready(next);
        }
        match state.engine.exchange_mut(self.exchange) {
            Some(port) => port.wake_later(cx),
            // It is over, and `over` is about to be set.
            None => return Poll::Ready(ExchangeStep::Over(Closing::Abandoned)),
        }
        Poll::Pending
    }

    /// Ignores the request to end the stream for now.
    pub(crate) fn keep_stream(&self) {
        let mut state = self.link.lock();
        if let Some(port) = state.engine.exchange_mut(self.exchange) {
            port.close_stream = None;
        }
    }

    /// Whether the exchange is over for this carrier.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get().is_some()
    }

    /// The frame that `take` would return.
    pub(crate) fn peek(&self) -> Option<Bytes> {
        let state = self.link.lock();
        state.engine.queued(self.exchange).next().cloned()
    }

    /// The call that waits to be posted, without taking it.
    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) fn peek_call(&self, call: CallId) -> Option<WaitingCall> {
        let mut state = self.link.lock();
        let frame = state.engine.queued(self.exchange).next()?.clone();
        Some(WaitingCall {
            frame,
            waiter: state
                .engine
                .call_mut(call)
                .and_then(|waiter| waiter.clone()),
            version: state.engine.agreed_version(),
        })
    }

    /// Takes the first waiting frame, which counts as written from now on. The one
    /// before it is done.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        let (exchange, begun) = (self.exchange, std::mem::take(&mut self.begun));
        let frame = self.while_carried(|engine, now| {
            if begun {
                engine.handle_write_done(now, exchange);
            }
            engine.begin_write(now, exchange)
        });
        if begun {
            self.link.room.notify_waiters();
        }
        let frame = frame.flatten();
        self.begun = frame.is_some();
        frame
    }

    /// Takes all waiting frames, if the last of them is the answer. Then the exchange is over.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn take_last(&mut self) -> Option<Last> {
        let mut locked = self.link.lock();
        let (state, now) = (&mut *locked, self.link.now());
        if self.is_over() {
            return None;
        }
        let waiting = state.engine.last_waiting(self.exchange)?;
        let is_last = matches!(waiting, Waiting::Answer { .. } | Waiting::Refusal { .. });
        if !is_last {
            return None;
        }
        // A session stores and numbers what comes before an answer, which its stream does.
        if !state.is_post && state.engine.queued(self.exchange).nth(1).is_some() {
            return None;
        }
        let mut take = || {
            let frame = state.engine.begin_write(now, self.exchange)?;
            state.engine.handle_write_done(now, self.exchange);
            Some(frame)
        };
        let (mut before, mut frame) = (Vec::new(), take()?);
        while let Some(next) = take() {
            before.push(std::mem::replace(&mut frame, next));
        }
        let routed = state.route();
        let engine = &state.engine;
        let is_over = state.is_post && engine.is_quiet() && engine.handlers() == 0;
        let ledger = is_over.then(|| engine.ledger().clone());
        drop(locked);
        // A link on which nothing goes on needs no driver.
        if ledger.is_none() {
            self.link.wake(routed);
        }
        Some(Last {
            before,
            waiting,
            frame,
            ledger,
        })
    }

    /// Acts on the engine, unless the exchange has another carrier. The lock makes
    /// that check final.
    fn while_carried<T>(&self, act: impl FnOnce(&mut Engine, Time) -> T) -> Option<T> {
        self.link
            .tell(|engine, now| (!self.is_over()).then(|| act(engine, now)))
    }

    /// Counts a frame against the peer's share until the peer has read it.
    #[cfg(feature = "server")]
    pub(crate) fn weighed(&self, frame: Bytes) -> Bytes {
        let mut permit = self.link.peer.begin(Pool::Bytes);
        permit.weigh(frame.len());
        permit.attach(frame)
    }

    /// Reports that the last frame was written.
    pub(crate) fn written(&mut self) {
        if std::mem::take(&mut self.begun) {
            let exchange = self.exchange;
            self.while_carried(|engine, now| engine.handle_write_done(now, exchange));
            self.link.room.notify_waiters();
        }
    }

    /// Reports that the head of the response to the POST has arrived.
    pub(crate) fn acknowledged(&self) {
        let exchange = self.exchange;
        self.link
            .tell(|engine, now| engine.handle_acknowledged(now, exchange));
    }

    /// Reports that the stream was lost. If it is `resumable`, the exchange is still carried, and
    /// the stream is requested again.
    pub(crate) fn lost(&self, cause: Loss, resumable: bool) {
        let exchange = self.exchange;
        self.link
            .tell(|engine, now| engine.handle_exchange_lost(now, exchange, cause, resumable));
    }
}

impl Drop for ExchangeHandle {
    fn drop(&mut self) {
        if self.is_over() {
            return;
        }
        let routed = {
            let mut state = self.link.lock();
            let port = state.engine.exchange_mut(self.exchange);
            let Some(port) = port.filter(|port| port.is_carried_by(&self.over)) else {
                return;
            };
            port.detach();
            let (now, cause) = (self.link.now(), LossKind::EndOfStream.into());
            let engine = &mut state.engine;
            engine.handle_exchange_lost(now, self.exchange, cause, false);
            let mut routed = state.route();
            // The task that drives the link of a POST ends when nothing goes on,
            // which may be so now.
            routed.driver |= state.is_post;
            routed
        };
        self.link.wake(routed);
    }
}
