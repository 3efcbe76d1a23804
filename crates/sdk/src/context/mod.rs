//! What a handler is given besides its arguments.

#[cfg(feature = "server")]
mod asked;
#[cfg(feature = "server")]
mod asking;
#[cfg(feature = "server")]
mod input_error;
#[cfg(feature = "server")]
mod questions;
mod telling;

use std::any::{Any, TypeId};
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
use crate::sync::{Mutex, MutexGuard};
use crate::{Call, Principal};

#[cfg(feature = "server")]
pub use asked::InputFuture;
#[cfg(feature = "server")]
pub(crate) use asked::{Read, agreed, filled_in};
#[cfg(feature = "server")]
pub use input_error::InputError;

/// A request that is being handled: who asks, whether they still wait, and how to speak to them.
///
/// It is cheap to clone. After the request is over, whatever is said through it goes nowhere
/// (**silence**), and whatever was asked or spawned through it has been stopped (**tree**).
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

struct Inner {
    link: Arc<Link>,
    incoming: Incoming,
    handling: Handling,
    /// Ends the tasks that were spawned through this context. Most spawn none.
    children: OnceLock<CancellationToken>,
    /// The handler is over, and so is whatever it would spawn now.
    over: AtomicBool,
    extensions: Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>,
    deadline: OnceLock<Instant>,
    /// The server that handles it, if a server does.
    #[cfg(feature = "server")]
    service: OnceLock<Arc<Service>>,
    /// It may ask its client something.
    #[cfg(feature = "server")]
    may_ask: AtomicBool,
    /// It has asked all that it will: its handler is done.
    #[cfg(feature = "server")]
    has_asked: AtomicBool,
    /// What it asks. Most ask nothing.
    #[cfg(feature = "server")]
    rounds: OnceLock<Box<Rounds>>,
}

impl Context {
    pub(crate) fn new(link: Arc<Link>, incoming: Incoming) -> Self {
        Self {
            inner: Arc::new(Inner::new(link, incoming)),
        }
    }

    /// It is a request to a server.
    #[cfg(feature = "server")]
    pub(crate) fn served_by(&self, service: &Arc<Service>) {
        let _ = self.inner.service.set(service.clone());
    }

    /// The handler, as the driver sees it.
    pub(crate) fn handling(&self) -> &Handling {
        &self.inner.handling
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.inner.link
    }

    /// What the engine calls the request.
    pub(crate) fn key(&self) -> RequestKey {
        self.inner.incoming.key
    }

    /// The token that fires when this handler should stop.
    ///
    /// Taking it is a promise to watch it: a handler that has taken its token is given a grace
    /// (1 s, unless it says otherwise) between the firing and the drop, to clean up in. One that
    /// never takes it is dropped at its next `await`.
    pub fn token(&self) -> CancellationToken {
        self.inner.link.grant_grace(self.inner.incoming.key, None);
        self.inner.handling.stop.token().child_token()
    }

    /// Waits until this handler should stop, and tells why. Counts as taking the token.
    ///
    /// # Cancel safety
    ///
    /// Dropping it changes nothing, but that the token was taken.
    pub async fn stopped(&self) -> StopCause {
        self.inner.link.grant_grace(self.inner.incoming.key, None);
        self.inner.handling.stop.fired().await
    }

    /// Sets how long this handler may clean up once its token has fired. Zero is none.
    pub fn set_grace(&self, grace: Duration) {
        let key = self.inner.incoming.key;
        self.inner.link.grant_grace(key, Some(grace));
    }

    /// Why this handler should stop, if it should.
    pub fn stop_cause(&self) -> Option<StopCause> {
        self.inner.handling.stop.cause().cloned()
    }

    /// Ends the stream that waits for the answer, without ending the request: the client asks again
    /// after a while. For what takes long, where open connections are dear. On Streamable HTTP of
    /// 2025-11-25 only; elsewhere nothing happens.
    #[cfg(feature = "server")]
    pub fn close_sse_stream(&self, again: Duration) {
        let incoming = &self.inner.incoming;
        if incoming.version.greets_streams() {
            self.inner.link.close_stream(incoming.exchange, again);
        }
    }

    /// Asks the other side something on behalf of this request. Legacy only: it goes with this
    /// request (**tree**), and is announced as cancelled if this request is.
    pub fn request<R: Typed>(&self, params: &R::Params) -> Call<R::Result> {
        let key = Some(self.inner.incoming.key);
        Call::new::<R>(Route::Direct(self.inner.link.clone()), params, key)
    }

    /// The same by name, for what has no type.
    pub fn request_raw<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Call<T> {
        let key = Some(self.inner.incoming.key);
        Call::raw(Route::Direct(self.inner.link.clone()), method, params, key)
    }

    /// Runs a task for as long as this request lives. It is dropped with it.
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

    /// How many requests began on this connection, and how each ended.
    pub fn ledger(&self) -> Ledger {
        self.inner.link.ledger()
    }

    /// What is asked, such as `tools/call`.
    pub fn method(&self) -> &str {
        &self.inner.incoming.method
    }

    /// With what it is asked, as it came.
    pub fn params(&self) -> Option<&Params> {
        self.inner.incoming.params.as_ref()
    }

    /// What the caller calls the request.
    pub fn id(&self) -> &RequestId {
        &self.inner.incoming.id
    }

    /// The revision of the protocol that the request is made in.
    pub fn version(&self) -> ProtocolVersion {
        self.inner.incoming.version
    }

    /// The era that the request is made in.
    pub fn era(&self) -> Era {
        self.inner.incoming.era()
    }

    /// Who asks, as far as they say. Nothing of it is verified.
    pub fn peer_info(&self) -> Option<Implementation> {
        use belay_protocol::types::meta_key::CLIENT_INFO;
        match self.era() {
            Era::Modern => self.meta().get(CLIENT_INFO).ok().flatten(),
            Era::Legacy => {
                let introduction = self.inner.link.introduction()?;
                let info = introduction.field("clientInfo");
                let info = info.or_else(|| introduction.field("serverInfo"));
                info?.decode().ok()
            }
        }
    }

    /// Which trace the request belongs to, if it says so.
    pub fn trace_context(&self) -> Option<crate::layers::TraceContext> {
        crate::layers::TraceContext::of(&self.meta())
    }

    /// Who asks, if somebody in front of this server has found out.
    pub fn principal(&self) -> Option<&Principal> {
        self.inner.link.principal()
    }

    /// How much time this handler has left, if that is known: its tool has a timeout.
    pub fn time_left(&self) -> Option<Duration> {
        let deadline = self.inner.deadline.get()?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// What came beside the parameters.
    pub fn meta(&self) -> Meta {
        let params = self.inner.incoming.params.as_ref();
        let meta = params.and_then(|params| params.field("_meta"));
        meta.and_then(|meta| meta.decode().ok()).unwrap_or_default()
    }

    /// Keeps a value for whoever handles this request next, by its type.
    pub fn insert<T: Send + Sync + 'static>(&self, value: T) {
        let (key, value) = (TypeId::of::<T>(), Arc::new(value));
        let mut extensions = self.extensions();
        let known = extensions.iter().position(|(known, _)| *known == key);
        let before = known.map(|at| extensions.swap_remove(at));
        extensions.push((key, value));
        drop(extensions);
        // Outside the lock: its destructor is not ours.
        drop(before);
    }

    /// A value that was kept.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let extensions = self.extensions();
        let known = extensions.iter().find(|(key, _)| *key == TypeId::of::<T>());
        known?.1.clone().downcast().ok()
    }

    fn extensions(&self) -> MutexGuard<'_, Vec<(TypeId, Arc<dyn Any + Send + Sync>)>> {
        self.inner.extensions.lock()
    }

    pub(crate) fn set_deadline(&self, after: Duration, answer: RawJson) {
        if let Some(until) = Instant::now().checked_add(after) {
            let _ = self.inner.deadline.set(until);
        }
        let key = self.inner.incoming.key;
        self.inner.link.set_deadline(key, after, answer);
    }

    /// What the client makes us keep is weighed against this.
    #[cfg(feature = "server")]
    pub(crate) fn peer(&self) -> &Arc<crate::driver::Peer> {
        self.inner.link.peer()
    }

    /// The parameters, decoded; the problem names what is wrong with them.
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

    /// The server that handles it.
    #[cfg(feature = "server")]
    pub(crate) fn service(&self) -> Option<&Arc<Service>> {
        self.inner.service.get()
    }

    /// What the client of this legacy link has said once and for all.
    #[cfg(feature = "server")]
    pub(crate) fn legacy_session(&self) -> Option<Arc<LegacySession>> {
        self.service()?.legacy_session(&self.inner.link)
    }

    /// What this request asks, where it may.
    #[cfg(feature = "server")]
    pub(crate) fn rounds(&self) -> Option<&Rounds> {
        if !self.inner.may_ask.load(Ordering::Acquire) {
            return None;
        }
        let rounds = self.inner.rounds.get_or_init(Box::default);
        // First made, then a look: whoever ends them in between looks, too, and the fence keeps it so.
        fence(Ordering::SeqCst);
        if self.inner.has_asked.load(Ordering::SeqCst) {
            rounds.end_all();
        }
        Some(rounds)
    }

    /// The handler is done: whoever still asks, elsewhere, gets no answer.
    #[cfg(feature = "server")]
    pub(crate) fn end_rounds(&self) {
        self.inner.has_asked.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if let Some(rounds) = self.rounds_so_far() {
            rounds.end_all();
        }
    }

    /// The same, if it has asked something, or brought answers along.
    #[cfg(feature = "server")]
    pub(crate) fn rounds_so_far(&self) -> Option<&Rounds> {
        self.inner.rounds.get().map(|rounds| &**rounds)
    }

    /// From now on it may ask, with what it has brought along.
    #[cfg(feature = "server")]
    pub(crate) fn begin_rounds(&self, brought: Option<Rounds>) {
        if let Some(rounds) = brought {
            let _ = self.inner.rounds.set(Box::new(rounds));
        }
        self.inner.may_ask.store(true, Ordering::Release);
    }

    /// Ends, when it is dropped, what was spawned through this context.
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
            extensions: Mutex::default(),
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

/// What was spawned through a context, and goes with this.
pub(crate) struct Children(Arc<Inner>);

impl Drop for Children {
    fn drop(&mut self) {
        // First this, then a look: whoever spawns in between looks, too, and the fence keeps it so.
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
