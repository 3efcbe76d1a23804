//! Legacy sessions: one engine for many POSTs, a GET stream for notifications, and
//! streams that can be resumed.
//!
//! ```text
//!   initialize ──► open ── DELETE, or nobody for a while ──► over (404 from now on)
//! ```
//!
//! A stream that breaks off is not a cancellation: its request goes on for the resume window, and
//! is cancelled after that. The end of the session cancels all its requests.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay_protocol::engine::{ExchangeId, LossKind};
use belay_protocol::jsonrpc::{DecodeError, Message};
use belay_protocol::types::{Era, ProtocolVersion};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio::time::Instant;

use super::super::headers;
use super::body::{Body, Events};
use super::events::{Numbering, SessionEvents, parse_event_id};
use super::exchange::{answer, ended, is_last, stream};
use super::refusal::{self, Refusal};
use super::sessions::SessionId;
use super::shared::{Caller, Shared};
use crate::Principal;
use crate::driver::{
    Driven, ExchangeHandle, ExchangeStep, Link, Peer, Pool, Until, drive_exchanges_with,
};
use crate::server::Entry;
use crate::sync::{Mutex, MutexGuard};

/// A legacy session.
pub(super) struct Session {
    id: SessionId,
    link: Arc<Link>,
    /// The principal that opened it. Requests of others are refused.
    principal: Option<Principal>,
    events: Arc<SessionEvents>,
    /// The number of open HTTP requests in it.
    open: AtomicUsize,
    used: Mutex<Instant>,
    /// The number of POSTs and GET streams it has served.
    served: AtomicUsize,
}

/// A session that was opened and never used is closed after this time.
const HELLO_ONLY: Duration = Duration::from_secs(30);

/// A session that is not used releases its spare memory after this time.
const IDLE: Duration = Duration::from_secs(15);

/// Opens a session with an `initialize` request, and answers it.
pub(super) async fn open(
    shared: &Arc<Shared>,
    caller: &Caller,
    message: Result<Message, DecodeError>,
) -> Result<Response<Body>, Refusal> {
    let session = {
        let place = shared.sessions.place(shared, caller)?;
        let id = SessionId::random()?;
        let link = shared.session_link(caller);
        let session = Arc::new(Session {
            events: SessionEvents::new(shared.events.clone(), id.clone(), link.clone()),
            id,
            link,
            principal: caller.principal.clone(),
            open: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
            served: AtomicUsize::new(0),
        });
        let introduction = caller.peer.begin(Pool::Bytes);
        shared.sessions.add(&session, place, introduction);
        session
    };
    let living = Living {
        _entry: shared.connections.enter(&session.link),
        shared: shared.clone(),
        session: session.clone(),
        driven: Driven(session.link.clone()),
    };
    shared.tasks.spawn(async move { living.live().await });
    let mut response = session.serve(shared, vec![message]).await;
    match session.link.version() {
        Some(_) => {
            session.weigh_introduction(shared)?;
            let id = HeaderValue::from_str(session.id.as_str()).expect("hexadecimal digits");
            response.headers_mut().insert(headers::SESSION_ID, id);
        }
        // The handshake was refused, so the session is closed.
        None => session.link.lose(LossKind::SessionGone.into()),
    }
    Ok(response)
}

impl Session {
    pub(super) fn version(&self) -> Option<ProtocolVersion> {
        self.link.version()
    }

    /// Handles posted messages, and responds.
    pub(super) async fn serve(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        messages: Vec<Result<Message, DecodeError>>,
    ) -> Response<Body> {
        let in_use = InUse::new(self);
        self.served.fetch_add(1, Ordering::Relaxed);
        let one = messages.len() == 1;
        let mut handle = self.posted(shared, messages).await;
        // Most requests are answered by now.
        if one && let Some(last) = handle.take_last() {
            return last.respond(shared, &handle, Era::Legacy);
        }
        let first = tokio::select! {
            biased;
            turn = poll_fn(|cx| handle.poll_step(cx)) => Some(turn),
            () = shared.head_timer.wait() => None,
        };
        let first = match first {
            Some(ExchangeStep::Write(waiting)) if one && is_last(waiting) => {
                match answer(&mut handle, refusal::status(Era::Legacy, waiting)) {
                    Some(answer) => return answer,
                    // It was withdrawn in between, because its request was cancelled.
                    None => Some(poll_fn(|cx| handle.poll_step(cx)).await),
                }
            }
            first => first,
        };
        match first {
            Some(ExchangeStep::Over(how)) => ended(how),
            Some(
                ExchangeStep::Write(_) | ExchangeStep::Replaced | ExchangeStep::CloseStream(_),
            )
            | None => {
                let greets = self.version().is_some_and(ProtocolVersion::greets_streams);
                let numbering = self.numbering(handle.exchange());
                let first = greets.then(|| numbering.greeting());
                let events = self.events(shared, handle, numbering, in_use);
                stream(events.after(first.into_iter().collect()))
            }
        }
    }

    /// Opens an exchange for the posted messages.
    async fn posted(
        &self,
        shared: &Shared,
        mut messages: Vec<Result<Message, DecodeError>>,
    ) -> ExchangeHandle {
        let is_request = matches!(messages[..], [Ok(Message::Request(_))]);
        if is_request && let Some(message) = messages.pop() {
            return self.link.posted(&shared.app, message);
        }
        let handle = self.link.exchange_opened();
        for message in messages {
            self.link.until_heard_before(&message).await;
            handle.deliver(message);
        }
        handle.input_ended();
        handle
    }

    /// Handles a GET: the stream of notifications, or the rest of a stream that broke off.
    pub(super) fn listen(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, Refusal> {
        let last = headers::single(headers, &headers::LAST_EVENT_ID);
        let Ok(last) = last else {
            let problem = "`Last-Event-ID` is no id of an event";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, problem));
        };
        match last {
            Some(last) => self.resume(shared, caller, last),
            None if self.link.is_carried(ExchangeId::LINK) => {
                let problem = "this session has its GET stream already";
                Err(Refusal::new(StatusCode::CONFLICT, problem))
            }
            None => Ok(self.listen_anew(shared)),
        }
    }

    fn resume(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        caller: &Caller,
        last: &str,
    ) -> Result<Response<Body>, Refusal> {
        let gone = || {
            let problem = "there is nothing to resume after this event, or not any more";
            Refusal::new(StatusCode::BAD_REQUEST, problem)
        };
        let (exchange, number) = parse_event_id(last).ok_or_else(gone)?;
        let numbering = self.numbering(exchange);
        // Checked before the current carrier is replaced.
        let missed = numbering.missed(number).ok_or_else(gone)?;
        if missed.is_empty() && !self.link.is_open(exchange) {
            return Err(gone());
        }
        // They are shared with the store, which may drop its copies before these are sent.
        let mut weight = caller.peer.begin(Pool::Bytes);
        if !weight.resize(0, missed.iter().map(|event| event.data.len()).sum()) {
            let problem = "overloaded: too much waits to be read; come back later";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem));
        }
        let in_use = InUse::new(self);
        // No message is taken between the change of carriers and the second look at
        // the stored events.
        let (handle, missed) = {
            let _still = numbering.still();
            let handle = self.link.resume(exchange);
            (handle, numbering.missed(number).ok_or_else(gone)?)
        };
        let Some(handle) = handle else {
            let kept = (in_use, shared.stream_opened());
            let replay = Events::replay(missed).weighed(weight);
            return Ok(stream(replay.keeping(kept)));
        };
        handle.resumed();
        shared.connections.is_heard(&self.link);
        let events = self.events(shared, handle, numbering, in_use);
        Ok(stream(events.after(missed).weighed(weight)))
    }

    /// A new stream for the server's notifications.
    fn listen_anew(self: &Arc<Self>, shared: &Arc<Shared>) -> Response<Body> {
        let in_use = InUse::new(self);
        self.served.fetch_add(1, Ordering::Relaxed);
        let handle = self.link.carry_link();
        handle.resumed();
        shared.connections.is_heard(&self.link);
        let numbering = self.numbering(ExchangeId::LINK);
        stream(self.events(shared, handle, numbering, in_use))
    }

    /// The stream of an exchange, with numbered events.
    fn events(
        &self,
        shared: &Arc<Shared>,
        handle: ExchangeHandle,
        numbering: Numbering,
        in_use: InUse,
    ) -> Events {
        Events::new(handle, shared.options.keep_alive)
            .numbered(numbering)
            .keeping((in_use, shared.stream_opened()))
    }

    fn numbering(&self, exchange: ExchangeId) -> Numbering {
        Numbering::new(self.events.clone(), exchange)
    }

    /// Counts the client's introduction against its share while the session is open.
    fn weigh_introduction(&self, shared: &Shared) -> Result<(), Refusal> {
        let introduction = self.link.introduction();
        let bytes = introduction.map_or(0, |introduction| introduction.as_bytes().len());
        if !shared.sessions.weigh_introduction(&self.id, bytes) {
            self.end(shared);
            let problem = "overloaded: too much is kept for others; come back later";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem));
        }
        Ok(())
    }

    /// The peer whose share it uses.
    pub(super) fn peer(&self) -> &Arc<Peer> {
        self.link.peer()
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    /// Whether this principal opened it.
    pub(super) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.principal.as_ref() == principal
    }

    /// Handles a DELETE: the handlers stop at once (**stops-with-its-caller**).
    pub(super) fn end(&self, shared: &Shared) {
        shared.sessions.remove(&self.id);
        self.link.lose(LossKind::SessionGone.into());
    }

    pub(super) fn used(&self) -> MutexGuard<'_, Instant> {
        self.used.lock()
    }

    /// Whether it was opened and never used.
    pub(super) fn is_unused(&self) -> bool {
        self.served.load(Ordering::Relaxed) <= 1
    }

    /// Whether it has an open HTTP request, or a running handler.
    fn is_busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0 || !self.link.is_idle()
    }

    /// Waits until it was unused for this long. A session with a running handler is in use.
    async fn forgotten(&self, span: Duration) {
        loop {
            // A session that was only opened is closed sooner.
            let span = match self.is_unused() {
                true => span.min(HELLO_ONLY),
                false => span,
            };
            let used = *self.used();
            tokio::time::sleep_until(used + IDLE.min(span)).await;
            if *self.used() != used {
                continue;
            }
            if !self.is_busy() {
                self.link.shrink();
            }
            let until = *self.used() + span;
            tokio::time::sleep_until(until).await;
            if self.is_busy() {
                *self.used() = Instant::now();
            } else if *self.used() + span <= Instant::now() {
                return;
            }
        }
    }
}

/// Drives the link of a session, and closes the session at the end.
struct Living {
    shared: Arc<Shared>,
    session: Arc<Session>,
    driven: Driven,
    _entry: Entry,
}

impl Living {
    async fn live(self) {
        let settle = || self.session.events.settle();
        let turning = drive_exchanges_with(&self.driven.0, &self.shared.app, Until::Closed, settle);
        let mut turning = pin!(turning);
        tokio::select! {
            biased;
            () = &mut turning => return,
            () = self.session.forgotten(self.shared.options.session_idle) => {}
        }
        tracing::debug!("a session was forgotten");
        self.session.end(&self.shared);
        turning.await;
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.shared.sessions.remove(&self.session.id);
        self.session.events.forget();
    }
}

/// An open HTTP request in a session.
struct InUse(Arc<Session>);

impl InUse {
    fn new(session: &Arc<Session>) -> Self {
        session.open.fetch_add(1, Ordering::Relaxed);
        Self(session.clone())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.used() = Instant::now();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
