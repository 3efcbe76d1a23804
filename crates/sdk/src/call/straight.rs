//! The fast path of a call: it is sent at once on the current link, past all layers.
//!
//! A client may have to act on the answer: answer input requests, repeat the call with other
//! headers, or list the tools again. Mostly it does not. So the request is sent at once, and the
//! call moves to the slow path only if its answer requires that.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use belay_protocol::engine::{Ask, Outcome};
use belay_protocol::jsonrpc::RawJson;
#[cfg(feature = "http")]
use belay_protocol::types::error_code;
use tokio::time::Instant;

#[cfg(feature = "http")]
use super::headers::LastCall;
use super::layer::{Outlet, Trip, record};
use super::{Attempt, Canceller};
use crate::Error;
use crate::client::is_kept;
use crate::driver::{BoxFuture, Told};

pub(super) struct Straight {
    attempt: Attempt,
    outlet: Arc<Outlet>,
    ask: Ask,
    canceller: Canceller,
    begun: Instant,
    #[cfg(feature = "http")]
    said: Option<LastCall>,
}

/// How a call on the fast path ends.
pub(super) enum Came {
    /// The call has ended.
    Over(Result<RawJson, Error>),
    /// The rest of the call, on the slow path.
    GoesOn(BoxFuture<Result<RawJson, Error>>),
}

impl Straight {
    /// Sends the request, unless the call needs the slow path. If the call ends before it begins,
    /// its outcome is returned and nothing is kept.
    pub(super) fn begin(
        outlet: &Arc<Outlet>,
        ask: &Ask,
        told: &Told,
        canceller: &Canceller,
    ) -> Option<Result<Box<Self>, Outcome>> {
        let is_told = told.progress.is_some() || told.notice.is_some();
        // A result may be cached, and callbacks must be registered for every attempt.
        if is_told || is_kept(&ask.method) || !outlet.layers.is_empty() {
            return None;
        }
        let link = outlet.lines.now()?;
        let version = link.agreed_version();
        #[cfg(feature = "http")]
        let said = LastCall::of(&outlet.hooks, &ask.method, &ask.params);
        let told = Told {
            #[cfg(feature = "http")]
            param_headers: said
                .as_ref()
                .map_or_else(Vec::new, |said| said.headers().to_vec()),
            ..Told::default()
        };
        let mut attempt = Attempt::begin(link, ask.clone(), told, canceller);
        if attempt.found_no_link() && outlet.lines.replaces() {
            return None;
        }
        record(&attempt, version);
        if let Some(outcome) = attempt.take_over() {
            return Some(Err(outcome));
        }
        Some(Ok(Box::new(Self {
            attempt,
            outlet: outlet.clone(),
            ask: ask.clone(),
            canceller: canceller.clone(),
            begun: Instant::now(),
            #[cfg(feature = "http")]
            said,
        })))
    }

    pub(super) fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// Waits for the end of the call, or for its move to the slow path.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Came> {
        let outcome = ready!(self.attempt.poll_end(cx));
        let hooks = &self.outlet.hooks;
        // A refusal is an answer, too: the server is alive.
        if matches!(
            outcome,
            Outcome::Answered(_) | Outcome::Refused(_) | Outcome::InputRequired(_)
        ) {
            self.outlet.lines.succeeded();
        }
        let first = match outcome {
            Outcome::Answered(result) => {
                match hooks.check(&self.ask.method, &self.ask.params, &result) {
                    Ok(()) => return Poll::Ready(Came::Over(Ok(result))),
                    Err(_) => Ok(result),
                }
            }
            asked @ Outcome::InputRequired(_) if hooks.input_handlers.is_some() => {
                Err(asked.into())
            }
            #[cfg(feature = "http")]
            Outcome::Refused(error)
                if error.code == error_code::HEADER_MISMATCH && self.said.is_some() =>
            {
                Err(Outcome::Refused(error).into())
            }
            other => return Poll::Ready(Came::Over(Err(other.into()))),
        };
        Poll::Ready(Came::GoesOn(self.go_on(first)))
    }

    /// The slow path, after the first attempt.
    fn go_on(&mut self, first: Result<RawJson, Error>) -> BoxFuture<Result<RawJson, Error>> {
        let (outlet, ask) = (self.outlet.clone(), self.ask.clone());
        let canceller = self.canceller.clone();
        let trip = Trip::new(outlet, ask, Told::default(), canceller, false, self.begun);
        #[cfg_attr(not(feature = "http"), expect(unused_mut))]
        let (mut trip, request) = trip;
        #[cfg(feature = "http")]
        {
            trip.said = self.said.take().into();
        }
        Box::pin(async move {
            let going = trip.go_on(request, Some(first));
            trip.within_its_time(going).await
        })
    }
}
