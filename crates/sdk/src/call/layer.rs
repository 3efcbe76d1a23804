//! Client layers around a call, and the choice of the connection it is made on.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{Ask, Clock, Deadlines, Outcome, RequestKey, Wait};
use belay_protocol::jsonrpc::{RawJson, Text};
#[cfg(feature = "client")]
use belay_protocol::types::modern::InputRequiredResult;
use belay_protocol::types::{Meta, ProgressParams, ProtocolVersion};
use tokio::time::Instant;

#[cfg(all(feature = "client", feature = "http"))]
use super::headers::Said;
#[cfg(feature = "client")]
use super::rounds;
use super::{Attempt, Canceller};
use crate::Error;
#[cfg(feature = "client")]
use crate::client::CallHooks;
use crate::driver::{BoxFuture, LayerFuture, Link, OnNotice, OnProgress, Told};
#[cfg(any(feature = "client", feature = "server"))]
use crate::layers::names;
use crate::sync::Mutex;

/// Something around every call that a client makes: for retries, tracing, credentials.
///
/// A layer may change the request, answer in its stead, or make it again by running `next` more than
/// once. It is dropped when the caller drops the call, and so is whatever it waits for; the call's
/// total deadline covers all its layers do.
///
/// ```
/// use belay::jsonrpc::RawJson;
/// use belay::layers::{CallRequest, ClientLayer, LayerFuture, NextCall};
/// use belay::Error;
///
/// struct Stamp;
///
/// impl ClientLayer for Stamp {
///     fn call<'a>(
///         &'a self,
///         mut request: CallRequest,
///         next: NextCall<'a>,
///     ) -> LayerFuture<'a, Result<RawJson, Error>> {
///         Box::pin(async move {
///             let _ = request.meta.set("example.com/stamp", "me");
///             next.run(request).await
///         })
///     }
/// }
///
/// let builder = belay::Client::builder("editor", "1.0.0").layer(Stamp);
/// ```
pub trait ClientLayer: Send + Sync + 'static {
    /// Handles the call, through `next` or instead of it.
    fn call<'a>(
        &'a self,
        request: CallRequest,
        next: NextCall<'a>,
    ) -> LayerFuture<'a, Result<RawJson, Error>>;
}

/// An outgoing request, as layers see it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallRequest {
    /// The method name.
    pub method: Text,
    /// The parameters: an object, without `_meta`.
    pub params: RawJson,
    /// The `_meta` object that is sent with the parameters.
    pub meta: Meta,
}

/// The rest of a call: the inner layers, and the connection.
#[derive(Clone, Copy)]
pub struct NextCall<'a> {
    layers: &'a [Arc<dyn ClientLayer>],
    trip: &'a Trip,
}

impl<'a> NextCall<'a> {
    /// Runs the inner layers and sends the request. It can be run more than once; each run is a
    /// request with an id of its own.
    pub fn run(&self, request: CallRequest) -> LayerFuture<'a, Result<RawJson, Error>> {
        match self.layers.split_first() {
            Some((layer, layers)) => {
                let trip = self.trip;
                layer.call(request, NextCall { layers, trip })
            }
            None => Box::pin(self.trip.attempt(request)),
        }
    }
}

impl fmt::Debug for NextCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NextCall").field(&self.layers.len()).finish()
    }
}

/// How a client's calls are sent.
#[derive(Clone)]
pub(crate) enum Route {
    /// On this link, without layers.
    Direct(Arc<Link>),
    /// Through layers, or on the link that is current at the time.
    Layered(Arc<Outlet>),
}

pub(crate) struct Outlet {
    pub(crate) layers: Vec<Arc<dyn ClientLayer>>,
    pub(crate) lines: Arc<dyn Lines>,
    pub(crate) deadlines: Deadlines,
    /// The client's per-request features.
    #[cfg(feature = "client")]
    pub(crate) hooks: CallHooks,
}

/// The source of links.
pub(crate) trait Lines: Send + Sync {
    /// The current link, alive a moment ago. Waits while it is being replaced.
    fn link(&self) -> BoxFuture<Result<Arc<Link>, Outcome>>;

    /// Waits until the connection is closed and will not be replaced.
    fn over(&self) -> BoxFuture<Outcome>;

    /// The current link, without waiting, if it is alive.
    #[cfg(feature = "client")]
    fn now(&self) -> Option<Arc<Link>>;

    /// Whether to ask for another link when this one was closed before a request began.
    fn replaces(&self) -> bool;

    /// Records that a call was answered.
    fn succeeded(&self);
}

/// A single link that is never replaced.
impl Lines for Arc<Link> {
    fn link(&self) -> BoxFuture<Result<Arc<Link>, Outcome>> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }

    fn over(&self) -> BoxFuture<Outcome> {
        let link = self.clone();
        Box::pin(async move {
            link.closed().await;
            link.lost()
        })
    }

    #[cfg(feature = "client")]
    fn now(&self) -> Option<Arc<Link>> {
        Some(self.clone())
    }

    fn replaces(&self) -> bool {
        false
    }

    fn succeeded(&self) {}
}

/// One call through its layers: the state that all its attempts share.
pub(crate) struct Trip {
    pub(super) outlet: Arc<Outlet>,
    canceller: Canceller,
    serves: Option<RequestKey>,
    idle: Wait,
    total: Option<(Duration, Instant)>,
    on_progress: Option<Arc<Mutex<OnProgress>>>,
    on_notice: Option<OnNotice>,
    /// Bypass the cache.
    fresh: bool,
    #[cfg(all(feature = "client", feature = "http"))]
    pub(super) said: Said,
}

/// Makes a call through its layers.
pub(super) async fn travel(
    outlet: Arc<Outlet>,
    ask: Ask,
    told: Told,
    canceller: Canceller,
    fresh: bool,
) -> Result<RawJson, Error> {
    let (trip, request) = Trip::new(outlet, ask, told, canceller, fresh, Instant::now());
    trip.within_its_time(trip.go(request)).await
}

impl Trip {
    /// The state of a call that began at `at`, and its request.
    pub(super) fn new(
        outlet: Arc<Outlet>,
        ask: Ask,
        told: Told,
        canceller: Canceller,
        fresh: bool,
        at: Instant,
    ) -> (Self, CallRequest) {
        let configured = outlet.deadlines.of_method(&ask.method).total;
        let until = |span: Duration| Some((span, at.checked_add(span)?));
        let trip = Self {
            canceller,
            serves: ask.serves,
            idle: ask.idle,
            total: ask.total.or(configured).and_then(until),
            on_progress: told.progress.map(|callback| Arc::new(Mutex::new(callback))),
            on_notice: told.notice,
            fresh,
            outlet,
            #[cfg(all(feature = "client", feature = "http"))]
            said: Said::default(),
        };
        let request = CallRequest {
            method: ask.method,
            params: ask.params,
            meta: ask.meta,
        };
        (trip, request)
    }

    /// Runs `going` until it ends, is cancelled, or reaches the total deadline.
    pub(super) async fn within_its_time(
        &self,
        going: impl Future<Output = Result<RawJson, Error>>,
    ) -> Result<RawJson, Error> {
        tokio::select! {
            biased;
            ended = going => ended,
            cancelled = self.canceller.cancelled() => Err(cancelled.into()),
            timed_out = self.timed_out() => Err(timed_out.into()),
        }
    }

    /// The whole call.
    #[cfg(feature = "client")]
    async fn go(&self, request: CallRequest) -> Result<RawJson, Error> {
        self.go_on(request, None).await
    }

    #[cfg(not(feature = "client"))]
    async fn go(&self, request: CallRequest) -> Result<RawJson, Error> {
        self.by_layers(request).await
    }

    /// The whole call, continuing from the result of the first attempt if there was one.
    #[cfg(feature = "client")]
    pub(super) async fn go_on(
        &self,
        request: CallRequest,
        first: Option<Result<RawJson, Error>>,
    ) -> Result<RawJson, Error> {
        match &self.outlet.hooks.input_handlers {
            Some(input_handlers) if InputRequiredResult::may_answer(&request.method) => {
                rounds::travel(self, input_handlers, request, first).await
            }
            _ => self.round(request, first).await,
        }
    }

    /// The request as the layers left it. It is not sent if its result is cached.
    #[cfg(feature = "client")]
    async fn attempt(&self, request: CallRequest) -> Result<RawJson, Error> {
        let hooks = &self.outlet.hooks;
        if let Some(known) = hooks.recall(&request, self.fresh) {
            return Ok(known);
        }
        #[cfg(feature = "http")]
        self.said.note(hooks, &request);
        let stamp = hooks.stamp();
        let result = self.on_a_link(&request).await;
        let result = result.inspect_err(|error| hooks.refused(&request, error))?;
        let result = hooks.learn(&request, result, stamp);
        self.checked(&request, result).await
    }

    /// Returns the result, if it matches the tool's output schema.
    #[cfg(feature = "client")]
    pub(super) async fn checked(
        &self,
        request: &CallRequest,
        result: RawJson,
    ) -> Result<RawJson, Error> {
        let hooks = &self.outlet.hooks;
        let check = || hooks.check(&request.method, &request.params, &result);
        match check() {
            // The schema may have changed since the tool was listed.
            Err(_) if self.learn_tools().await.is_ok() => check()?,
            checked => checked?,
        }
        Ok(result)
    }

    #[cfg(not(feature = "client"))]
    async fn attempt(&self, request: CallRequest) -> Result<RawJson, Error> {
        self.on_a_link(&request).await
    }

    pub(super) async fn by_layers(&self, request: CallRequest) -> Result<RawJson, Error> {
        let next = NextCall {
            layers: &self.outlet.layers,
            trip: self,
        };
        next.run(request).await
    }

    async fn on_a_link(&self, request: &CallRequest) -> Result<RawJson, Error> {
        loop {
            let link = self.outlet.lines.link().await;
            let link = link.map_err(|outcome| self.in_all(outcome))?;
            let mut ask = Ask::new(request.method.clone(), request.params.clone());
            ask.meta = request.meta.clone();
            ask.serves = self.serves;
            ask.idle = self.idle;
            ask.total = match self.total {
                Some((_, until)) => Wait::AtMost(until.saturating_duration_since(Instant::now())),
                None => Wait::Forever,
            };
            #[cfg(any(feature = "client", feature = "server"))]
            let version = link.agreed_version();
            let attempt = Attempt::begin(link, ask, self.told(request), &self.canceller);
            #[cfg(any(feature = "client", feature = "server"))]
            record(&attempt, version);
            if attempt.found_no_link() && self.outlet.lines.replaces() {
                // Nothing was sent, so this is not a retry.
                tokio::task::yield_now().await;
                continue;
            }
            return match attempt.await {
                Outcome::Answered(result) => {
                    self.outlet.lines.succeeded();
                    Ok(result)
                }
                // The deadline belongs to the whole call, so the time reported is the call's.
                Outcome::TimedOut {
                    clock: Clock::Total,
                    ..
                } => Err(self.out_of_time().into()),
                // A refusal is an answer, too: the server is alive.
                refused @ (Outcome::Refused(_) | Outcome::InputRequired(_)) => {
                    self.outlet.lines.succeeded();
                    Err(refused.into())
                }
                other => Err(self.in_all(other).into()),
            };
        }
    }

    /// The error of a call that was between two round trips when the connection was lost for good.
    #[cfg(feature = "client")]
    pub(super) async fn lost(&self) -> Error {
        let lost = self.outlet.lines.over().await;
        self.in_all(lost).into()
    }

    /// Turns an attempt's outcome into the call's: `sent` covers all attempts.
    fn in_all(&self, mut outcome: Outcome) -> Outcome {
        if let Outcome::Cancelled { sent, .. }
        | Outcome::TimedOut { sent, .. }
        | Outcome::Lost { sent, .. } = &mut outcome
        {
            *sent = self.canceller.sent();
        }
        outcome
    }

    /// The callbacks for one attempt.
    #[cfg_attr(
        not(all(feature = "client", feature = "http")),
        expect(unused_variables, reason = "nothing is said in headers")
    )]
    fn told(&self, request: &CallRequest) -> Told {
        let progress = self.on_progress.clone().map(|callback| -> OnProgress {
            Box::new(move |progress: ProgressParams| {
                let mut callback = callback.lock();
                callback(progress);
            })
        });
        Told {
            progress,
            notice: self.on_notice.clone(),
            #[cfg(all(feature = "client", feature = "http"))]
            param_headers: self.said.headers(request),
        }
    }

    async fn timed_out(&self) -> Outcome {
        match self.total {
            Some((_, until)) if has_clock() => tokio::time::sleep_until(until).await,
            // A request in flight is timed by the engine; a local handler without a
            // runtime has no clock.
            _ => std::future::pending().await,
        }
        // A request in flight has the same deadline, and the engine reports its outcome.
        self.canceller.until_closed().await;
        self.out_of_time()
    }

    fn out_of_time(&self) -> Outcome {
        Outcome::TimedOut {
            clock: Clock::Total,
            after: self.total.map_or(Duration::MAX, |(span, _)| span),
            sent: self.canceller.sent(),
        }
    }
}

/// Whether this task runs within a tokio runtime. The link's driver may have one when it does not.
pub(super) fn has_clock() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

/// Records the request id and the version in the current span, where they are known only now.
#[cfg(any(feature = "client", feature = "server"))]
pub(super) fn record(attempt: &Attempt, version: Option<ProtocolVersion>) {
    let span = tracing::Span::current();
    if let Some(id) = attempt.id() {
        span.record(names::REQUEST_ID, tracing::field::display(id));
    }
    if let Some(version) = version {
        span.record(names::PROTOCOL_VERSION, version.as_str());
    }
}
