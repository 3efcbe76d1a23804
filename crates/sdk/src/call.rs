//! One builder for every request, in both directions.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use belay_protocol::engine::{Ask, CallId, Deadlines, Outcome, RequestKey};
use belay_protocol::jsonrpc::{RawJson, RequestId};
use belay_protocol::types::{Meta, ProgressParams, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::Error;
use crate::driver::{Link, OnProgress};

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
    deadlines: Option<Deadlines>,
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
            deadlines: None,
            on_progress: None,
            canceller,
            decode: |result| result.decode().map_err(Error::bad_result),
        }
    }

    /// Gives up after so long in all, progress or not.
    pub fn timeout(mut self, total: Duration) -> Self {
        self.deadlines().total = Some(total);
        self
    }

    /// Gives up after so long without progress.
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.deadlines().idle = Some(idle);
        self
    }

    /// Never gives up by itself.
    pub fn no_timeout(mut self) -> Self {
        *self.deadlines() = Deadlines::NONE;
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
        let begun = self.ask.and_then(|mut ask| {
            ask.deadlines = self.deadlines;
            Ok(self.link.begin(ask, self.on_progress)?)
        });
        let state = match begun {
            Ok((id, end)) => {
                self.canceller.started(id);
                State::Waiting { id, end }
            }
            Err(error) => State::Over(Some(error)),
        };
        InFlight {
            link: self.link,
            state,
            canceller: self.canceller,
            decode: self.decode,
        }
    }

    fn deadlines(&mut self) -> &mut Deadlines {
        self.deadlines.get_or_insert_default()
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
            self.link.cancel(*id, None);
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
    Cancelled(Option<String>),
}

impl Canceller {
    fn new(link: Arc<Link>) -> Self {
        let call = Mutex::new(Cancellable::Unstarted);
        Self(Arc::new(CancellerState { link, call }))
    }

    /// Cancels the call, if it is not over, and tells the peer why.
    pub fn cancel(&self, reason: impl Into<Option<String>>) {
        let reason = reason.into();
        let mut call = self.0.call.lock().unwrap_or_else(PoisonError::into_inner);
        match *call {
            Cancellable::Started(id) => self.0.link.cancel(id, reason.as_deref()),
            Cancellable::Unstarted => *call = Cancellable::Cancelled(reason),
            Cancellable::Cancelled(_) => {}
        }
    }

    fn started(&self, id: CallId) {
        let mut call = self.0.call.lock().unwrap_or_else(PoisonError::into_inner);
        if let Cancellable::Cancelled(reason) = &*call {
            self.0.link.cancel(id, reason.as_deref());
        }
        *call = Cancellable::Started(id);
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
