//! An exchange, for whoever carries it.

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

/// An exchange that somebody carries. Dropping it tells the engine that the stream is gone, unless the
/// exchange is over: what that means, the engine knows.
pub(crate) struct ExchangeHandle {
    link: Arc<Link>,
    exchange: ExchangeId,
    over: Over,
    begun: bool,
}

/// All that was said on an exchange.
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) struct Last {
    /// What was said before the answer: progress, and the like.
    pub(crate) before: Vec<Bytes>,
    pub(crate) waiting: Waiting,
    pub(crate) frame: Bytes,
    /// What the link did, if it is that of a POST, and nothing goes on there any more.
    pub(crate) ledger: Option<Ledger>,
}

/// A call that waits to be posted.
#[cfg(all(feature = "http", feature = "client"))]
pub(crate) struct WaitingCall {
    pub(crate) frame: Bytes,
    /// Who waits for it, if that is a caller, and not the engine itself.
    pub(crate) waiter: Option<Arc<Waiter>>,
    /// The revision that a client names beside what it posts.
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

    /// A message has arrived on it, or something that is none.
    pub(crate) fn deliver(&self, message: Result<Message, DecodeError>) {
        self.link.deliver_on(self.exchange, message, false);
    }

    /// The last message has arrived on it, or something that is none.
    #[cfg(all(feature = "http", feature = "client"))]
    pub(crate) fn deliver_last(&self, message: Result<Message, DecodeError>) {
        self.link.deliver_on(self.exchange, message, true);
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

    /// Ready when it is over, whatever waits on it; tells how.
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
        // It is set under the lock.
        if let Some(over) = self.over.get() {
            return Poll::Ready(*over);
        }
        if let Some(next) = next(&mut state.engine, self.exchange) {
            return Poll::Ready(next);
        }
        match state.engine.exchange_mut(self.exchange) {
            Some(port) => port.wake_later(cx),
            // It is over, and whoever ended it is about to say so.
            None => return Poll::Ready(ExchangeStep::Over(Closing::Abandoned)),
        }
        Poll::Pending
    }

    /// The stream goes on after all.
    pub(crate) fn keep_stream(&self) {
        let mut state = self.link.lock();
        if let Some(port) = state.engine.exchange_mut(self.exchange) {
            port.close_stream = None;
        }
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get().is_some()
    }

    /// What would be taken, to look at.
    pub(crate) fn peek(&self) -> Option<Bytes> {
        let state = self.link.lock();
        state.engine.queued(self.exchange).next().cloned()
    }

    /// A call that waits to be posted, to look at.
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

    /// Takes the first frame that waits: from now on it counts as written. The one before it is
    /// done.
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

    /// Takes what waits, if that is all that will be said: then it is over.
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
        // A session keeps what is said before an answer, and numbers it: that is for its stream.
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
        // Nobody turns what is over.
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

    /// Does something, unless somebody else carries it now. That is settled under the lock.
    fn while_carried<T>(&self, act: impl FnOnce(&mut Engine, Time) -> T) -> Option<T> {
        self.link
            .tell(|engine, now| (!self.is_over()).then(|| act(engine, now)))
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
            let exchange = self.exchange;
            self.while_carried(|engine, now| engine.handle_write_done(now, exchange));
            self.link.room.notify_waiters();
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
            // The task that turns the link of a POST ends when nothing goes on, which may be so now.
            routed.driver |= state.is_post;
            routed
        };
        self.link.wake(routed);
    }
}
