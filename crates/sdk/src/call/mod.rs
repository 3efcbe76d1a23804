//! `Call`: the builder of every request, in both directions.

mod attempt;
mod canceller;
#[cfg(feature = "client")]
mod headers;
mod layer;
#[cfg(feature = "client")]
mod rounds;
#[cfg(feature = "client")]
mod straight;

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use belay_protocol::engine::{Ask, Outcome, RequestKey, Wait};
#[cfg(feature = "client")]
use belay_protocol::jsonrpc::Text;
use belay_protocol::jsonrpc::{RawJson, RequestId};
use belay_protocol::types::{Meta, ProgressParams, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
use crate::driver::{BoxFuture, Told};

use attempt::Attempt;
pub use canceller::Canceller;
pub use layer::{CallRequest, ClientLayer, NextCall};
pub(crate) use layer::{Lines, Outlet, Route};
#[cfg(feature = "client")]
use straight::Came;

/// A request that is built with methods and sent with `await`.
///
/// # Cancel safety
///
/// Dropping the future cancels the request: if any of it was written, the peer is notified
/// once (**drop-announces**); if nothing was, it is never sent. Dropping returns at once,
/// whatever the state of the connection. `select!`, `tokio::time::timeout` and aborting
/// the task all drop the future.
#[must_use = "a call does nothing until it is awaited or started"]
pub struct Call<T> {
    route: Route,
    ask: Result<Ask, Error>,
    told: Told,
    canceller: Canceller,
    fresh: bool,
    decode: fn(RawJson) -> Result<T, Error>,
}

impl<T> Call<T> {
    pub(crate) fn new<R>(route: Route, params: &R::Params, serves: Option<RequestKey>) -> Self
    where
        R: Request<Result = T>,
        T: DeserializeOwned,
    {
        Self::raw(route, R::METHOD, params, serves)
    }

    pub(crate) fn raw(
        route: Route,
        method: &str,
        params: &(impl Serialize + ?Sized),
        serves: Option<RequestKey>,
    ) -> Self
    where
        T: DeserializeOwned,
    {
        let ask = split_meta(params).map(|(params, meta)| Ask {
            meta,
            serves,
            ..Ask::new(method, params)
        });
        Self::asking(route, ask.map_err(Error::bad_params))
    }

    /// A call whose parameters are already encoded, and have no `_meta`.
    #[cfg(feature = "client")]
    pub(crate) fn prepared(route: Route, method: &'static str, params: RawJson) -> Self
    where
        T: DeserializeOwned,
    {
        Self::asking(route, Ok(Ask::new(Text::from_static(method), params)))
    }

    fn asking(route: Route, ask: Result<Ask, Error>) -> Self
    where
        T: DeserializeOwned,
    {
        Self {
            route,
            ask,
            told: Told::default(),
            canceller: Canceller::new(),
            fresh: false,
            decode: |result| result.decode().map_err(Error::bad_result),
        }
    }

    /// A call that fails at once.
    #[cfg(feature = "client")]
    pub(crate) fn failed(route: Route, error: Error) -> Self
    where
        T: DeserializeOwned,
    {
        let mut call = Self::raw(route, "", &(), None);
        call.ask = Err(error);
        call
    }

    /// Sets the total timeout. Progress does not extend it.
    pub fn timeout(self, total: Duration) -> Self {
        self.change(|ask| ask.total = Wait::AtMost(total))
    }

    /// Sets the idle timeout. Each progress notification restarts it.
    pub fn idle_timeout(self, idle: Duration) -> Self {
        self.change(|ask| ask.idle = Wait::AtMost(idle))
    }

    /// Removes both timeouts.
    pub fn no_timeout(self) -> Self {
        self.change(|ask| (ask.idle, ask.total) = (Wait::Forever, Wait::Forever))
    }

    /// Bypasses the cache: the request is sent even if a result is cached.
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    fn change(mut self, change: impl FnOnce(&mut Ask)) -> Self {
        if let Ok(ask) = &mut self.ask {
            change(ask);
        }
        self
    }

    /// Registers a progress callback. It is called in order on the connection's task, between
    /// messages, and must not block.
    pub fn on_progress(mut self, told: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.told.progress = Some(Box::new(told));
        self
    }

    /// Registers a callback for all other notifications about this call.
    #[cfg(feature = "client")]
    pub(crate) fn on_notice(
        mut self,
        told: impl Fn(belay_protocol::jsonrpc::Notification) + Send + Sync + 'static,
    ) -> Self {
        self.told.notice = Some(std::sync::Arc::new(told));
        self
    }

    /// Requests log messages about this call, from this level up. Modern only: a legacy connection
    /// has one level, set with [`Client::set_log_level`](crate::Client::set_log_level).
    #[cfg(feature = "client")]
    pub fn log_level(self, level: belay_protocol::types::LoggingLevel) -> Self {
        self.meta(belay_protocol::types::meta_key::LOG_LEVEL, level)
    }

    /// Sets the trace that this call belongs to.
    pub fn trace_context(mut self, context: &crate::layers::TraceContext) -> Self {
        if let Ok(ask) = &mut self.ask {
            context.put(&mut ask.meta);
        }
        self
    }

    /// Sets a key in the request's `_meta`.
    pub fn meta(mut self, key: &str, value: impl Serialize) -> Self {
        if let Ok(ask) = &mut self.ask
            && let Err(error) = ask.meta.set(key, value)
        {
            self.ask = Err(Error::bad_params(error));
        }
        self
    }

    /// A handle that cancels this call from elsewhere, before or after it has started.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Sends the request now, without waiting for its result. If the client has layers or is
    /// supervised, call this within a tokio runtime. Layers, and further round trips for a server
    /// that asks for input, make progress only while the result is awaited.
    pub fn start(self) -> InFlight<T> {
        let (ask, told, canceller) = (self.ask, self.told, &self.canceller);
        let state = match (ask, self.route) {
            (Err(error), _) => State::Over(Some(Err(error))),
            (Ok(ask), Route::Direct(link)) => {
                State::Direct(Attempt::begin(link, ask, told, canceller))
            }
            (Ok(ask), Route::Layered(outlet)) => {
                State::layered(outlet, ask, told, canceller, self.fresh)
            }
        };
        InFlight {
            state,
            canceller: self.canceller,
            decode: self.decode,
        }
    }
}

impl<T> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = InFlight<T>;

    fn into_future(self) -> InFlight<T> {
        self.start()
    }
}

/// A call in flight.
///
/// # Cancel safety
///
/// Dropping it cancels the call; see [`Call`].
#[must_use = "dropping a call cancels it"]
pub struct InFlight<T> {
    state: State,
    canceller: Canceller,
    decode: fn(RawJson) -> Result<T, Error>,
}

enum State {
    Direct(Attempt),
    #[cfg(feature = "client")]
    Straight(Box<straight::Straight>),
    Layered(BoxFuture<Result<RawJson, Error>>),
    Over(Option<Result<RawJson, Error>>),
}

impl State {
    /// Through the layers, or past them if there is nothing to do.
    fn layered(
        outlet: Arc<Outlet>,
        ask: Ask,
        told: Told,
        canceller: &Canceller,
        fresh: bool,
    ) -> Self {
        #[cfg(feature = "client")]
        match straight::Straight::begin(&outlet, &ask, &told, canceller) {
            Some(Ok(straight)) => return Self::Straight(straight),
            Some(Err(outcome)) => return Self::Over(Some(Err(outcome.into()))),
            None => {}
        }
        let travel = layer::travel(outlet, ask, told, canceller.clone(), fresh);
        Self::begin(Box::pin(travel))
    }

    /// Polls the call once: a future does nothing until then, but a started call must be sent.
    fn begin(mut travel: BoxFuture<Result<RawJson, Error>>) -> Self {
        // The noop waker is safe, because the awaiting task polls again with its own. The poll is
        // exempt from tokio's cooperative budget: otherwise, of many calls started by one task,
        // none would be sent after the first hundred or so.
        let mut first = tokio::task::unconstrained(travel.as_mut());
        match Pin::new(&mut first).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ended) => Self::Over(Some(ended)),
            Poll::Pending => Self::Layered(travel),
        }
    }
}

impl<T> InFlight<T> {
    /// The request id on the wire. `None` if the call ended before it was sent, or waits for a
    /// connection. After a repetition by a layer, it is the id of the last attempt.
    pub fn id(&self) -> Option<RequestId> {
        match &self.state {
            State::Direct(attempt) => attempt.id(),
            #[cfg(feature = "client")]
            State::Straight(straight) => straight.attempt().id(),
            State::Layered(_) => self.canceller.id(),
            State::Over(_) => None,
        }
    }

    /// A handle that cancels this call from elsewhere.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

impl<T> Future for InFlight<T> {
    type Output = Result<T, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = match &mut self.state {
            State::Direct(attempt) => match ready!(Pin::new(attempt).poll(cx)) {
                Outcome::Answered(result) => Ok(result),
                other => Err(other.into()),
            },
            #[cfg(feature = "client")]
            State::Straight(straight) => match ready!(straight.poll_end(cx)) {
                Came::Over(ended) => ended,
                Came::GoesOn(travel) => {
                    self.state = State::Layered(travel);
                    return self.poll(cx);
                }
            },
            State::Layered(travel) => ready!(travel.as_mut().poll(cx)),
            State::Over(ended) => ended.take().expect("polled again after its end"),
        };
        self.state = State::Over(None);
        Poll::Ready(ended.and_then(self.decode))
    }
}

/// Splits the `_meta` off the parameters.
fn split_meta(params: &(impl Serialize + ?Sized)) -> Result<(RawJson, Meta), serde_json::Error> {
    let encoded = RawJson::encode(params)?;
    if encoded.as_str() == "null" {
        return Ok((RawJson::empty_object(), Meta::default()));
    }
    let Some(meta) = encoded.field("_meta") else {
        return Ok((encoded, Meta::default()));
    };
    let mut fields: serde_json::Map<String, serde_json::Value> = encoded.decode()?;
    fields.remove("_meta");
    Ok((RawJson::encode(&fields)?, meta.decode()?))
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Call")
    }
}

impl<T> fmt::Debug for InFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.id()).finish()
    }
}
