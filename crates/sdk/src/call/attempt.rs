//! One request on one link, from its beginning to its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use belay_protocol::engine::{Ask, CallId, Outcome, Sent};
use belay_protocol::jsonrpc::RequestId;

use super::Canceller;
use crate::driver::{Link, Told, Waiter};

/// A request in flight on one link. Dropping it cancels the request (**drop-announces**).
pub(crate) struct Attempt {
    link: Arc<Link>,
    waiter: Arc<Waiter>,
    state: State,
    canceller: Canceller,
}

enum State {
    Waiting(CallId),
    Over(Option<Outcome>),
}

impl Attempt {
    pub(crate) fn begin(link: Arc<Link>, ask: Ask, told: Told, canceller: &Canceller) -> Self {
        let waiter = Waiter::new(told, &ask, link.posts());
        let state = match canceller.begin(&link, ask, &waiter) {
            Ok(id) => State::Waiting(id),
            Err(outcome) => State::Over(Some(outcome)),
        };
        let canceller = canceller.clone();
        Self {
            link,
            waiter,
            state,
            canceller,
        }
    }

    /// The id on the wire, or `None` if the request ended before it was sent.
    pub(crate) fn id(&self) -> Option<RequestId> {
        match &self.state {
            State::Waiting(id) => Some(id.request_id()),
            State::Over(_) => None,
        }
    }

    /// Whether the link was closed before the request began.
    pub(crate) fn found_no_link(&self) -> bool {
        matches!(
            self.state,
            State::Over(Some(Outcome::Lost {
                sent: Sent::Never,
                ..
            }))
        )
    }
}

impl Future for Attempt {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        self.poll_end(cx)
    }
}

impl Attempt {
    /// The outcome, if the request ended before it began.
    #[cfg(feature = "client")]
    pub(super) fn take_over(&mut self) -> Option<Outcome> {
        let State::Over(outcome) = &mut self.state else {
            return None;
        };
        let outcome = outcome.take()?;
        self.canceller.ended(&outcome);
        Some(outcome)
    }

    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        let outcome = match &mut self.state {
            State::Over(outcome) => outcome.take().expect("polled again after its end"),
            State::Waiting(_) => ready!(self.waiter.poll_end(cx)),
        };
        self.state = State::Over(None);
        self.canceller.ended(&outcome);
        Poll::Ready(outcome)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let State::Waiting(id) = &self.state {
            self.waiter.give_up();
            self.canceller.given_up();
            self.link.cancel(*id, None);
        }
    }
}
