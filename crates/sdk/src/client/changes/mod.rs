//! Subscriptions: the server's change notifications, as one stream in both eras.
//!
//! ```text
//!   modern   subscriptions/listen ── acknowledged ──► changes … ──► its result: finished
//!   legacy   resources/subscribe, for each URI ─────► changes … ──► until it is dropped
//!            (changes of lists come unasked)
//!
//!   the stream or the connection is lost ──► again, as soon as there is one ──► Restored
//! ```

mod hub;
mod queue;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{By, Clock, Loss, Outcome, Sent};
use belay_protocol::types::legacy::{Subscribe, SubscribeParams, Unsubscribe};
use belay_protocol::types::modern::{Listen, ListenParams, ListenResult, SubscriptionFilter};
use belay_protocol::types::{Era, Request as _, error_code};
use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Client;
use super::stream::stream;
use crate::driver::{BoxFuture, Link};
use crate::{Error, InFlight};

pub(crate) use hub::ChangeHub;
pub use queue::Change;
use queue::ChangeQueue;

/// What a server tells by itself: [`Subscription::next`] is the next change, and after the last one
/// [`Subscription::end`] tells why there are no more.
///
/// ```no_run
/// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
/// use belay::client::Change;
/// use belay::types::modern::SubscriptionFilter;
///
/// let filter = SubscriptionFilter::new().tools().resource("file:///config.json");
/// let mut changes = client.listen(filter).await?;
/// while let Some(change) = changes.next().await {
///     match change {
///         Change::Tools => println!("list the tools again"),
///         Change::Updated { uri } => println!("read {uri} again"),
///         // Something may have been missed.
///         _ => println!("look at everything again"),
///     }
/// }
/// println!("{:?}", changes.end());
/// # Ok(())
/// # }
/// ```
///
/// Dropping it ends the subscription on the server, too.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    what: What,
    state: State,
    /// Attempts in a row to reopen it that did not last.
    attempt: u32,
    since: Instant,
}

/// What the subscription is for.
#[derive(Clone)]
struct What {
    client: Client,
    filter: SubscriptionFilter,
    queue: Arc<ChangeQueue>,
}

enum State {
    /// A `subscriptions/listen` request, whose stream carries the changes.
    Modern(InFlight<ListenResult>),
    /// The URIs subscribed on one link, which carries the changes.
    Legacy(Subscribed),
    /// Reopening after a loss. The future is kept here, so that dropping `next`
    /// does not restart it.
    Opening(BoxFuture<Result<Self, Error>>),
    Over(SubscriptionEnd),
}

/// Why a subscription ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum SubscriptionEnd {
    /// The server ended it in good order.
    Finished,
    /// The connection is gone for good, the stream was lost too often in a row, or the
    /// server refused to reopen it.
    Failed(Error),
}

/// The server must acknowledge a subscription within this time.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(30);

/// Reopening is tried this often in a row, with a doubling pause: about two minutes in all.
const ATTEMPTS: u32 = 30;
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A stream that lived this long counts as healthy, and the attempts start from zero.
const LIVED: Duration = Duration::from_secs(10);

impl Client {
    /// Subscribes to the server's changes. [`Subscription::agreed`] tells which of them
    /// the server has agreed to send.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the subscription if it was already requested.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Subscription, Error> {
        let what = What {
            client: self.clone(),
            queue: Arc::new(ChangeQueue::new(filter.clone())),
            filter,
        };
        let state = what.open().await?;
        Ok(Subscription {
            what,
            state,
            attempt: 0,
            since: Instant::now(),
        })
    }
}

impl Subscription {
    /// Waits for the next change. Returns `None` after the last one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = self.what.queue.take() {
                return Some(change);
            }
            let next = match &mut self.state {
                State::Modern(call) => tokio::select! {
                    biased;
                    () = self.what.queue.changed() => continue,
                    ended = call => after(ended),
                },
                State::Legacy(subscribed) => tokio::select! {
                    biased;
                    () = self.what.queue.changed() => continue,
                    closed = subscribed.link.closed() => Next::Lost(lost(closed.cause)),
                },
                State::Opening(opening) => match opening.await {
                    Ok(state) => Next::Restored(state),
                    Err(error) => Next::Lost(error),
                },
                State::Over(_) => return None,
            };
            self.go_on(next);
        }
    }

    /// All changes as a stream, whose last item tells why the subscription ended.
    ///
    /// Dropping it ends the subscription.
    ///
    /// ```no_run
    /// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
    /// use std::future::poll_fn;
    /// use std::pin::pin;
    /// use belay::types::modern::SubscriptionFilter;
    /// use futures_core::Stream;
    ///
    /// let changes = client.listen(SubscriptionFilter::new().tools()).await?;
    /// let mut changes = pin!(changes.into_stream());
    /// // Or `changes.next()` with the `StreamExt` of your choice.
    /// while let Some(change) = poll_fn(|task| changes.as_mut().poll_next(task)).await {
    ///     match change {
    ///         Ok(change) => println!("{change:?}"),
    ///         Err(end) => println!("it is over: {end:?}"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_stream(self) -> impl Stream<Item = Result<Change, SubscriptionEnd>> + Send + Unpin {
        stream(Some(self), |listening| {
            Box::pin(async {
                let mut listening = listening?;
                match listening.next().await {
                    Some(change) => Some((Ok(change), Some(listening))),
                    None => match listening.state {
                        State::Over(end) => Some((Err(end), None)),
                        _ => None,
                    },
                }
            })
        })
    }

    /// Why the subscription ended, or `None` while it goes on.
    pub fn end(&self) -> Option<&SubscriptionEnd> {
        match &self.state {
            State::Over(end) => Some(end),
            _ => None,
        }
    }

    /// What the server has agreed to send. This may be less than was asked for.
    pub fn agreed(&self) -> SubscriptionFilter {
        self.what.queue.agreed().unwrap_or_default()
    }

    fn go_on(&mut self, next: Next) {
        self.state = match next {
            Next::Over(end) => State::Over(end),
            Next::Restored(state) => {
                self.since = Instant::now();
                self.what.client.changes().missed();
                self.what.queue.push(Change::Restored);
                state
            }
            Next::Lost(error) => {
                let lived =
                    !matches!(self.state, State::Opening(_)) && self.since.elapsed() > LIVED;
                if lived {
                    self.attempt = 0;
                }
                match is_passing(&error) && self.attempt < ATTEMPTS && !self.what.client.is_over() {
                    false => State::Over(SubscriptionEnd::Failed(error)),
                    true => {
                        let opening = self.what.clone().open_after(pause(self.attempt));
                        self.attempt += 1;
                        State::Opening(Box::pin(opening))
                    }
                }
            }
        };
    }
}

/// The pause before reopening. The first attempt follows at once.
fn pause(attempt: u32) -> Duration {
    match attempt {
        0 => Duration::ZERO,
        attempt => (PAUSE * 2_u32.pow(attempt.min(10) - 1)).min(LONGEST_PAUSE),
    }
}

/// How a state ended, and so what follows it.
enum Next {
    Lost(Error),
    Restored(State),
    Over(SubscriptionEnd),
}

/// What the end of a subscription stream means.
fn after(ended: Result<ListenResult, Error>) -> Next {
    match ended {
        Ok(_) => Next::Over(SubscriptionEnd::Finished),
        // Some servers end a subscription by cancelling it.
        Err(error) if error.cancelled_by() == Some(By::Peer) => {
            Next::Over(SubscriptionEnd::Finished)
        }
        Err(error) => Next::Lost(error),
    }
}

/// Whether the error may be temporary, so that another attempt makes sense.
fn is_passing(error: &Error) -> bool {
    let code = error.refusal().map(|refusal| refusal.code);
    let busy = matches!(
        code,
        Some(error_code::OVERLOADED | error_code::SHUTTING_DOWN)
    );
    error.is_lost() || error.is_timeout() || busy
}

fn lost(cause: Loss) -> Error {
    let sent = Sent::Never;
    Outcome::Lost { cause, sent }.into()
}

impl What {
    async fn open_after(self, pause: Duration) -> Result<State, Error> {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        self.open().await
    }

    async fn open(&self) -> Result<State, Error> {
        // Waiting for a supervised connection to be replaced does not count towards the time in
        // which the server must acknowledge.
        let link = self.client.link().await?;
        if link.is_closed() {
            return Err(lost(link.closed_because()));
        }
        match self.client.era() {
            Era::Modern => self.open_modern().await,
            Era::Legacy => self.open_legacy(link).await,
        }
    }

    async fn open_modern(&self) -> Result<State, Error> {
        self.queue.disagree();
        let (queue, changes) = (self.queue.clone(), self.client.changes());
        let params = ListenParams::new(self.filter.clone());
        let call = self.client.request::<Listen>(&params);
        let call = call.on_notice(move |notification| {
            changes.changed(&notification);
            queue.put_own(&notification);
        });
        let mut call = call.start();
        let patience = tokio::time::sleep(ACKNOWLEDGED_WITHIN);
        let mut patience = std::pin::pin!(patience);
        loop {
            if self.queue.agreed().is_some() {
                return Ok(State::Modern(call));
            }
            tokio::select! {
                biased;
                () = self.queue.changed() => {}
                ended = &mut call => return match after(ended) {
                    Next::Lost(error) => Err(error),
                    Next::Restored(state) => Ok(state),
                    Next::Over(end) => Ok(State::Over(end)),
                },
                () = &mut patience => {
                    let (after, sent) = (ACKNOWLEDGED_WITHIN, Sent::Maybe);
                    let clock = Clock::Total;
                    return Err(Outcome::TimedOut { clock, after, sent }.into());
                }
            }
        }
    }

    /// Subscribes to each URI on the link. Changes of lists need no subscription in the legacy era.
    async fn open_legacy(&self, link: Arc<Link>) -> Result<State, Error> {
        let changes = self.client.changes();
        changes.add(&self.queue);
        let mut subscribed = Subscribed {
            client: self.client.clone(),
            link,
            queue: self.queue.clone(),
            uris: Vec::new(),
            runtime: Handle::try_current().ok(),
        };
        let told = self.told_by_legacy();
        for uri in told.uris() {
            // Noted first: the request may arrive even if this future is dropped or fails.
            subscribed.uris.push(uri.clone());
            // A pending `resources/unsubscribe` for the same URI goes first: they
            // could overtake each other.
            let _in_order = changes.in_order().await;
            let params = SubscribeParams::new(uri);
            self.client.request::<Subscribe>(&params).await?;
        }
        self.queue.agree(told);
        Ok(State::Legacy(subscribed))
    }

    /// The part of the filter that a legacy server supports, by its capabilities.
    fn told_by_legacy(&self) -> SubscriptionFilter {
        let can = self.client.server_capabilities();
        let tells =
            |wanted: Option<bool>, told: Option<bool>| wanted.filter(|_| told == Some(true));
        let tools = can.tools.and_then(|list| list.list_changed);
        let prompts = can.prompts.and_then(|list| list.list_changed);
        let subscribe = can.resources.as_ref().and_then(|it| it.subscribe);
        let resources = can.resources.and_then(|list| list.list_changed);
        let mut told = self.filter.clone();
        told.tools_list_changed = tells(told.tools_list_changed, tools);
        told.prompts_list_changed = tells(told.prompts_list_changed, prompts);
        told.resources_list_changed = tells(told.resources_list_changed, resources);
        if subscribe != Some(true) {
            told.resource_subscriptions = None;
        }
        told
    }
}

/// The URIs subscribed at a legacy server. Dropping this unsubscribes them in the background.
struct Subscribed {
    client: Client,
    link: Arc<Link>,
    queue: Arc<ChangeQueue>,
    uris: Vec<String>,
    /// Needed because the drop may happen outside of any runtime.
    runtime: Option<Handle>,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let changes = self.client.changes();
        let unwanted = changes.remove(&self.queue, &self.uris);
        let (false, Some(runtime)) = (self.link.is_closed(), &self.runtime) else {
            return;
        };
        for uri in unwanted {
            let params = SubscribeParams::new(uri);
            let call = self.client.request::<Unsubscribe>(&params);
            let changes = changes.clone();
            let uri = uri.to_owned();
            let told = async move {
                let _in_order = changes.in_order().await;
                // Another subscription may have asked for the URI meanwhile.
                if changes.is_wanted(&uri) {
                    return;
                }
                if let Err(error) = call.await {
                    tracing::debug!(%error, method = Unsubscribe::METHOD, "it was not told");
                }
            };
            self.link.tasks().spawn_on(told, runtime);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("filter", &self.what.filter)
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attempts last as long as it takes to restart a server.
    #[test]
    fn a_server_has_two_minutes_to_come_back() {
        let all: Duration = (0..ATTEMPTS).map(pause).sum();
        assert!((100..150).contains(&all.as_secs()), "{all:?}");
        assert_eq!(pause(0), Duration::ZERO);
        assert_eq!(pause(1), PAUSE);
        assert_eq!(pause(ATTEMPTS), LONGEST_PAUSE);
    }
}
