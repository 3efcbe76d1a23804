//! One request on one link, from its beginning to its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use belay_protocol::engine::{Ask, CallId, Outcome, Sent};
use belay_protocol::jsonrpc::RequestId;
use tokio::sync::oneshot;

use super::Canceller;
use crate::driver::{Link, Told};

/// A request on its way. Dropping it gives it up (**drop-announces**).
pub(crate) struct Attempt {
    link: Arc<Link>,
    state: State,
    canceller: Canceller,
}

enum State {
    Waiting {
        id: CallId,
        end: oneshot::Receiver<Outcome>,
    },
    Over(Option<Outcome>),
}

impl Attempt {
    pub(crate) fn begin(link: Arc<Link>, ask: Ask, told: Told, canceller: &Canceller) -> Self {
        let state = match canceller.begin(&link, ask, told) {
            Ok((id, end)) => State::Waiting { id, end },
            Err(outcome) => State::Over(Some(outcome)),
        };
        let canceller = canceller.clone();
        Self {
            link,
            state,
            canceller,
        }
    }

    /// The id on the wire; `None` if it was over before it began.
    pub(crate) fn id(&self) -> Option<RequestId> {
        match &self.state {
            State::Waiting { id, .. } => Some(id.request_id()),
            State::Over(_) => None,
        }
    }

    /// Whether the link was gone before anything began.
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
        let outcome = match &mut self.state {
            State::Over(outcome) => outcome.take(),
            State::Waiting { end, .. } => ready!(Pin::new(end).poll(cx)).ok(),
        };
        self.state = State::Over(None);
        let outcome = outcome.unwrap_or_else(|| self.link.lost());
        self.canceller.ended(&outcome);
        Poll::Ready(outcome)
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let State::Waiting { id, .. } = &self.state {
            self.canceller.given_up();
            self.link.forget(*id);
        }
    }
}
