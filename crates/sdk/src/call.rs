//! One builder for every request, in both directions.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use belay_protocol::engine::{Ask, CallId, Outcome, RequestKey, Wait};
use belay_protocol::jsonrpc::{RawJson, RequestId};
use belay_protocol::types::{Meta, ProgressParams, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::Error;
use crate::driver::{Link, OnProgress, Reason};

/// A request that can be made: set what you like, then `await` it.
///
/// # Cancel safety
///
/// Dropping the future cancels the request: if any of it was written, the peer is told, once
/// (**drop-announces**); if nothing was, it is never sent. Dropping returns at once, whatever the
/// connection does. `select!`, `tokio::time::timeout` and aborting the task all drop the future.
#[must_use = "a call does nothing until it is awaited or started"]
pub struct Call<T> {
    link: Arc<Link>,
    ask: Result<Ask, Error>,
    on_progress: Option<OnProgress>,
    canceller: Canceller,
    decode: fn(RawJson) -> Result<T, Error>,
}

impl<T> Call<T> {
    pub(crate) fn new<R>(link: Arc<Link>, params: &R::Params, serves: Option<RequestKey>) -> Self
    where
        R: Request<Result = T>,
        T: DeserializeOwned,
    {
        Self::raw(link, R::METHOD, params, serves)
    }

    pub(crate) fn raw(
        link: Arc<Link>,
        method: &str,
        params: &(impl Serialize + ?Sized),
        serves: Option<RequestKey>,
    ) -> Self
    where
        T: DeserializeOwned,
    {
        let canceller = Canceller::new(link.clone());
        let ask = split_meta(params).map(|(params, meta)| Ask {
            meta,
            serves,
            ..Ask::new(method, params)
        });
        Self {
            link,
            ask: ask.map_err(Error::bad_params),
            on_progress: None,
            canceller,
            decode: |result| result.decode().map_err(Error::bad_result),
        }
    }

    /// A call that cannot be made.
    #[cfg(feature = "client")]
    pub(crate) fn failed(link: Arc<Link>, error: Error) -> Self
    where
        T: DeserializeOwned,
    {
        let mut call = Self::raw(link, "", &(), None);
        call.ask = Err(error);
        call
    }

    /// Gives up after so long in all, progress or not.
    pub fn timeout(self, total: Duration) -> Self {
        self.change(|ask| ask.total = Wait::AtMost(total))
    }

    /// Gives up after so long without progress.
    pub fn idle_timeout(self, idle: Duration) -> Self {
        self.change(|ask| ask.idle = Wait::AtMost(idle))
    }

    /// Never gives up by itself.
    pub fn no_timeout(self) -> Self {
        self.change(|ask| (ask.idle, ask.total) = (Wait::Forever, Wait::Forever))
    }

    fn change(mut self, change: impl FnOnce(&mut Ask)) -> Self {
        if let Ok(ask) = &mut self.ask {
            change(ask);
        }
        self
    }

    /// Is told of progress, in order. It runs between messages, so it must not take long.
    pub fn on_progress(mut self, told: impl FnMut(ProgressParams) + Send + 'static) -> Self {
        self.on_progress = Some(Box::new(told));
        self
    }

    /// Sends something beside the parameters, in `_meta`.
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

    /// Begins the call now, without waiting for its end.
    pub fn start(self) -> InFlight<T> {
        let begin = |ask| Ok(self.canceller.begin(ask, self.on_progress)?);
        let state = match self.ask.and_then(begin) {
            Ok((id, end)) => State::Waiting { id, end },
            Err(error) => State::Over(Some(error)),
        };
        InFlight {
            link: self.link,
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

/// A call that has begun.
///
/// # Cancel safety
///
/// Dropping it cancels the call; see [`Call`].
#[must_use = "dropping a call cancels it"]
pub struct InFlight<T> {
    link: Arc<Link>,
    state: State,
    canceller: Canceller,
    decode: fn(RawJson) -> Result<T, Error>,
}

enum State {
    Waiting {
        id: CallId,
        end: oneshot::Receiver<Outcome>,
    },
    Over(Option<Error>),
}

impl<T> InFlight<T> {
    /// The id on the wire; `None` if the call was over before it began.
    pub fn id(&self) -> Option<RequestId> {
        match &self.state {
            State::Waiting { id, .. } => Some(id.request_id()),
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
        let outcome = match &mut self.state {
            State::Over(error) => {
                let error = error.take().unwrap_or_else(|| self.link.lost().into());
                return Poll::Ready(Err(error));
            }
            State::Waiting { end, .. } => ready!(Pin::new(end).poll(cx)),
        };
        self.state = State::Over(None);
        Poll::Ready(match outcome.unwrap_or_else(|_| self.link.lost()) {
            Outcome::Answered(result) => (self.decode)(result),
            other => Err(other.into()),
        })
    }
}

impl<T> Drop for InFlight<T> {
    fn drop(&mut self) {
        if let State::Waiting { id, .. } = &self.state {
            self.link.forget(*id);
        }
    }
}

/// Cancels a call from elsewhere. The call then ends as cancelled by its caller.
#[derive(Clone)]
pub struct Canceller(Arc<CancellerState>);

struct CancellerState {
    link: Arc<Link>,
    call: Mutex<Cancellable>,
}

enum Cancellable {
    Unstarted,
    Started(CallId),
    /// It was cancelled before it began.
    Cancelled(Reason),
}

impl Canceller {
    fn new(link: Arc<Link>) -> Self {
        let call = Mutex::new(Cancellable::Unstarted);
        Self(Arc::new(CancellerState { link, call }))
    }

    /// Cancels the call, if it is not over.
    pub fn cancel(&self) {
        self.stop(None);
    }

    /// Cancels the call, if it is not over, and tells the peer why.
    pub fn cancel_because(&self, reason: impl Into<String>) {
        self.stop(Some(reason.into()));
    }

    fn stop(&self, reason: Reason) {
        let mut call = self.lock();
        match *call {
            Cancellable::Started(id) => self.0.link.cancel(id, reason.as_deref()),
            Cancellable::Unstarted => *call = Cancellable::Cancelled(reason),
            Cancellable::Cancelled(_) => {}
        }
    }

    /// Begins the call. Nobody can cancel it between this look and its beginning.
    fn begin(
        &self,
        ask: Ask,
        on_progress: Option<OnProgress>,
    ) -> Result<(CallId, oneshot::Receiver<Outcome>), Outcome> {
        let mut call = self.lock();
        let cancelled = match &*call {
            Cancellable::Cancelled(reason) => Some(reason),
            _ => None,
        };
        let begun = self.0.link.begin(ask, on_progress, cancelled)?;
        *call = Cancellable::Started(begun.0);
        Ok(begun)
    }

    fn lock(&self) -> MutexGuard<'_, Cancellable> {
        self.0.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parameters without their `_meta`, and that.
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

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Canceller")
    }
}
