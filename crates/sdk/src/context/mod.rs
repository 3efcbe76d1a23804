//! `Context`: what a handler gets besides its arguments.

mod eras;
mod extensions;
#[cfg(feature = "server")]
mod input;
mod telling;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use belay_protocol::engine::{Incoming, Ledger, RequestKey, StopCause};
use belay_protocol::jsonrpc::{Params, RawJson, RequestId};
use belay_protocol::types::{Era, Implementation, Meta, ProtocolVersion, Request as Typed};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::Route;
use crate::driver::{Handling, Link};
#[cfg(feature = "server")]
use crate::server::{LegacySession, Rounds, Service};
use crate::{Call, Principal};

#[cfg(feature = "server")]
pub(crate) use eras::rules;
pub use extensions::Extensions;
#[cfg(feature = "server")]
pub use input::{InputError, InputFuture};
#[cfg(feature = "server")]
pub(crate) use input::{Read, agreed, filled_in};

/// A request that is being handled: its caller, its cancellation, and messages to the caller.
///
/// It is cheap to clone. After the request has ended, messages sent through it are discarded
/// (**silence**), and its requests and spawned tasks have been stopped (**tree**).
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    link: Arc<Link>,
    incoming: Incoming,
    handling: Handling,
    /// Cancels the tasks spawned through this context. Created on first use, as most spawn none.
    children: OnceLock<CancellationToken>,
    /// The handler has ended, so that tasks spawned from now on are cancelled at once.
    over: AtomicBool,
    extensions: Extensions,
    deadline: OnceLock<Instant>,
    /// The server that handles the request; empty in a client.
    #[cfg(feature = "server")]
    service: OnceLock<Arc<Service>>,
    /// Whether the handler may ask its client questions.
    #[cfg(feature = "server")]
    may_ask: AtomicBool,
    /// Whether the handler is done, so that further questions get no answer.
    #[cfg(feature = "server")]
    has_asked: AtomicBool,
    /// The handler's questions. Created on first use, as most ask none.
    #[cfg(feature = "server")]
    rounds: OnceLock<Box<Rounds>>,
}

impl Context {
    pub(crate) fn new(link: Arc<Link>, incoming: Incoming) -> Self {
        Self {
            inner: Arc::new(Inner::new(link, incoming)),
        }
    }

    /// Sets the server that handles the request.
    #[cfg(feature = "server")]
    pub(crate) fn served_by(&self, service: &Arc<Service>) {
        let _ = self.inner.service.set(service.clone());
    }

    /// The state of the handler that the driver sees.
    pub(crate) fn handling(&self) -> &Handling {
        &self.inner.handling
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.inner.link
    }

    /// The engine's key of the request.
    pub(crate) fn key(&self) -> RequestKey {
        self.inner.incoming.key
    }

    /// The cancellation token of this handler.
    ///
    /// A handler that takes its token is expected to watch it: once the token is cancelled, the
    /// handler has a grace period for clean-up (1 s, unless [`Context::set_grace`] changes it)
    /// before it is dropped. A handler that never takes its token is dropped at its next `await`.
    pub fn token(&self) -> CancellationToken {
        self.inner.link.grant_grace(self.inner.incoming.key, None);
        self.inner.handling.stop.token().child_token()
    }

    /// Waits until this handler should stop, and returns why. Counts as taking the token.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing, except that the token counts as taken.
    pub async fn stopped(&self) -> StopCause {
        self.inner.link.grant_grace(self.inner.incoming.key, None);
        self.inner.handling.stop.fired().await
    }

    /// Sets the grace period for clean-up after the token is cancelled. Zero means none.
    pub fn set_grace(&self, grace: Duration) {
        let key = self.inner.incoming.key;
        self.inner.link.grant_grace(key, Some(grace));
    }

    /// Why this handler should stop, or `None` while it should go on.
    pub fn stop_cause(&self) -> Option<StopCause> {
        self.inner.handling.stop.cause().cloned()
    }

    /// Closes the stream that waits for the answer, without ending the request: the client
    /// reconnects after the delay `again`. Use it for long requests, where open connections are
    /// expensive. It works on Streamable HTTP of 2025-11-25 only; elsewhere it does nothing.
    #[cfg(feature = "server")]
    pub fn close_sse_stream(&self, again: Duration) {
        let incoming = &self.inner.incoming;
        if incoming.version.greets_streams() {
            self.inner.link.close_stream(incoming.exchange, again);
        }
    }

    /// Sends a request to the peer on behalf of this request. Legacy only. It ends with this
    /// request (**tree**), and the peer is notified of its cancellation.
    pub fn request<R: Typed>(&self, params: &R::Params) -> Call<R::Result> {
        let key = Some(self.inner.incoming.key);
        Call::new::<R>(Route::Direct(self.inner.link.clone()), params, key)
    }

    /// Like [`Context::request`], by method name, for methods without a type.
    pub fn request_raw<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Call<T> {
        let key = Some(self.inner.incoming.key);
        Call::raw(Route::Direct(self.inner.link.clone()), method, params, key)
    }

    /// Spawns a task that is dropped when this handler ends.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let children = self.inner.children();
        self.inner.link.spawn(async move {
            tokio::select! {
                biased;
                () = children.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Counts of requests that began on this connection, and of how each ended.
    pub fn ledger(&self) -> Ledger {
        self.inner.link.ledger()
    }

    /// The method name, such as `tools/call`.
    pub fn method(&self) -> &str {
        &self.inner.incoming.method
    }

    /// The parameters as they arrived.
    pub fn params(&self) -> Option<&Params> {
        self.inner.incoming.params.as_ref()
    }

    /// The request id, as the caller chose it.
    pub fn id(&self) -> &RequestId {
        &self.inner.incoming.id
    }

    /// The protocol version of this request.
    pub fn version(&self) -> ProtocolVersion {
        self.inner.incoming.version
    }

    /// The protocol era of this request.
    pub fn era(&self) -> Era {
        self.inner.incoming.era()
    }

    /// The caller's name and version, as it states them. They are not verified.
    pub fn peer_info(&self) -> Option<Implementation> {
        self.rules().caller_info(self)
    }

    /// What the era of this request prescribes.
    pub(crate) fn rules(&self) -> &'static dyn eras::EraRules {
        eras::rules(self.era())
    }

    /// The trace context of the request, if it carries one.
    pub fn trace_context(&self) -> Option<crate::layers::TraceContext> {
        crate::layers::TraceContext::of(&self.meta())
    }

    /// The authenticated caller, if middleware in front of this server has set one.
    pub fn principal(&self) -> Option<&Principal> {
        self.inner.link.principal()
    }

    /// The time left until the tool's timeout, if it has one.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.inner.deadline.get()?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// The request's `_meta`.
    pub fn meta(&self) -> Meta {
        let params = self.inner.incoming.params.as_ref();
        let meta = params.and_then(|params| params.field("_meta"));
        meta.and_then(|meta| meta.decode().ok()).unwrap_or_default()
    }

    /// Values that layers keep with this request, by type: a user, a span, a budget.
    pub fn extensions(&self) -> &Extensions {
        &self.inner.extensions
    }

    pub(crate) fn set_deadline(&self, after: Duration, answer: RawJson) {
        if let Some(until) = Instant::now().checked_add(after) {
            let _ = self.inner.deadline.set(until);
        }
        let key = self.inner.incoming.key;
        self.inner.link.set_deadline(key, after, answer);
    }

    /// The connection's peer, whose memory budget covers what is stored for the client.
    #[cfg(feature = "server")]
    pub(crate) fn peer(&self) -> &Arc<crate::driver::Peer> {
        self.inner.link.peer()
    }

    /// Decodes the parameters. The error names the method and the problem.
    #[cfg(feature = "server")]
    pub(crate) fn decode_params<P: DeserializeOwned>(
        &self,
    ) -> Result<P, belay_protocol::jsonrpc::ErrorObject> {
        use belay_protocol::types::error_code::INVALID_PARAMS;
        let empty = RawJson::empty_object();
        let params = self.params().map_or(&empty, |params| &**params);
        params.decode().map_err(|error| {
            let problem = format!("{}: {error}", self.method());
            belay_protocol::jsonrpc::ErrorObject::new(INVALID_PARAMS, problem)
        })
    }

    /// The server that handles the request.
    #[cfg(feature = "server")]
    pub(crate) fn service(&self) -> Option<&Arc<Service>> {
        self.inner.service.get()
    }

    /// What the client of this legacy connection has set for all of its requests.
    #[cfg(feature = "server")]
    pub(crate) fn legacy_session(&self) -> Option<Arc<LegacySession>> {
        self.service()?.legacy_session(&self.inner.link)
    }

    /// The questions of this request, if it may ask any.
    #[cfg(feature = "server")]
    pub(crate) fn rounds(&self) -> Option<&Rounds> {
        if !self.inner.may_ask.load(Ordering::Acquire) {
            return None;
        }
        let rounds = self.inner.rounds.get_or_init(Box::default);
        // Created first, checked second, while `end_rounds` stores first and looks second. The
        // fence ensures that at least one of the two sees the other.
        fence(Ordering::SeqCst);
        if self.inner.has_asked.load(Ordering::SeqCst) {
            rounds.end_all();
        }
        Some(rounds)
    }

    /// The handler is done: questions that are still open in other tasks get no answer.
    #[cfg(feature = "server")]
    pub(crate) fn end_rounds(&self) {
        self.inner.has_asked.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if let Some(rounds) = self.rounds_so_far() {
            rounds.end_all();
        }
    }

    /// The questions of this request, if it has asked any or has brought answers.
    #[cfg(feature = "server")]
    pub(crate) fn rounds_so_far(&self) -> Option<&Rounds> {
        self.inner.rounds.get().map(|rounds| &**rounds)
    }

    /// Allows questions from now on, with the answers that the request has brought.
    #[cfg(feature = "server")]
    pub(crate) fn begin_rounds(&self, brought: Option<Rounds>) {
        if let Some(rounds) = brought {
            let _ = self.inner.rounds.set(Box::new(rounds));
        }
        self.inner.may_ask.store(true, Ordering::Release);
    }

    /// A guard that cancels the spawned tasks when it is dropped.
    pub(crate) fn children(&self) -> Children {
        Children(self.inner.clone())
    }
}

impl Inner {
    fn new(link: Arc<Link>, incoming: Incoming) -> Self {
        Self {
            children: OnceLock::new(),
            over: AtomicBool::new(false),
            link,
            incoming,
            handling: Handling::default(),
            extensions: Extensions::default(),
            deadline: OnceLock::new(),
            #[cfg(feature = "server")]
            service: OnceLock::new(),
            #[cfg(feature = "server")]
            may_ask: AtomicBool::new(false),
            #[cfg(feature = "server")]
            has_asked: AtomicBool::new(false),
            #[cfg(feature = "server")]
            rounds: OnceLock::new(),
        }
    }

    fn children(&self) -> CancellationToken {
        let make = || self.handling.stop.token().child_token();
        let children = self.children.get_or_init(make).clone();
        fence(Ordering::SeqCst);
        if self.over.load(Ordering::SeqCst) {
            children.cancel();
        }
        children
    }
}

/// Cancels the tasks that were spawned through a context, when dropped.
pub(crate) struct Children(Arc<Inner>);

impl Drop for Children {
    fn drop(&mut self) {
        // Stored first, checked second, while `Inner::children` creates first and looks second. The
        // fence ensures that at least one of the two sees the other.
        self.0.over.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if let Some(children) = self.0.children.get() {
            children.cancel();
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("id", self.id()).finish()
    }
}
