//! Listening: what a server tells by itself, as one stream in both eras.
//!
//! ```text
//!   modern   subscriptions/listen ── acknowledged ──► changes … ──► its result: finished
//!   legacy   resources/subscribe, for each URI ─────► changes … ──► until it is dropped
//!            (changes of lists come unasked)
//!
//!   the stream or the connection is lost ──► again, as soon as there is one ──► Restored
//! ```

use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{By, Clock, Outcome, Sent};
use belay_protocol::types::legacy::{Subscribe, SubscribeParams, Unsubscribe};
use belay_protocol::types::modern::{Listen, ListenParams, ListenResult, SubscriptionFilter};
use belay_protocol::types::{Era, Request as _};
use tokio::time::Instant;

use super::Client;
use super::inbox::{Change, Inbox};
use crate::call::Route;
use crate::driver::Link;
use crate::{Call, Error, InFlight};

/// What a server tells by itself: [`Subscription::next`] is the next change, and after the last one
/// [`Subscription::end`] tells why there are no more.
///
/// ```no_run
/// # async fn example(client: belay::Client) -> Result<(), belay::Error> {
/// use belay::Change;
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
#[derive(Debug)]
pub struct Subscription {
    client: Client,
    filter: SubscriptionFilter,
    inbox: Arc<Inbox>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// A request whose answer is the stream.
    Modern(InFlight<ListenResult>),
    /// A link that tells.
    Legacy(Arc<Link>),
    /// It was lost, so many times in a row.
    Broken(Error, u32),
    Over(ListenEnd),
}

/// Why there are no more changes.
#[derive(Debug)]
#[non_exhaustive]
pub enum ListenEnd {
    /// The server has ended it, in good order.
    Finished,
    /// The connection is gone for good, or the server refused to go on.
    Failed(Error),
}

/// A server has so long to say that it listens.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(30);

/// So often in a row a stream is opened again, after twice the time each time.
const ATTEMPTS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(100);

impl Client {
    /// Listens to what the server tells by itself. What of it the server will tell is in
    /// [`Subscription::agreed`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends what was begun.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<Subscription, Error> {
        let inbox = Arc::new(Inbox::new(filter.clone()));
        let mut subscription = Subscription {
            client: self.clone(),
            filter,
            inbox,
            state: State::Over(ListenEnd::Finished),
        };
        subscription.state = subscription.open().await?;
        Ok(subscription)
    }
}

impl Subscription {
    /// The next change. `None` after the last one.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub async fn next(&mut self) -> Option<Change> {
        loop {
            if let Some(change) = self.inbox.take() {
                return Some(change);
            }
            self.state = match &mut self.state {
                State::Modern(call) => tokio::select! {
                    biased;
                    () = self.inbox.news() => continue,
                    ended = call => after(ended),
                },
                State::Legacy(link) => tokio::select! {
                    biased;
                    () = self.inbox.news() => continue,
                    closed = link.closed() => {
                        let (cause, sent) = (closed.cause, Sent::Never);
                        State::Broken(Outcome::Lost { cause, sent }.into(), 0)
                    }
                },
                State::Broken(..) => self.restored().await,
                State::Over(_) => return None,
            };
        }
    }

    /// Why there are no more changes, once that is so.
    pub fn end(&self) -> Option<&ListenEnd> {
        match &self.state {
            State::Over(end) => Some(end),
            _ => None,
        }
    }

    /// What the server will tell. That may be less than what was asked for.
    pub fn agreed(&self) -> SubscriptionFilter {
        self.inbox.agreed().unwrap_or_default()
    }

    async fn open(&self) -> Result<State, Error> {
        match self.client.era() {
            Era::Modern => self.open_modern().await,
            Era::Legacy => self.open_legacy().await,
        }
    }

    async fn open_modern(&self) -> Result<State, Error> {
        self.inbox.disagree();
        let (inbox, news) = (self.inbox.clone(), self.client.news());
        let params = ListenParams::new(self.filter.clone());
        let call = self.client.request::<Listen>(&params);
        let call = call.on_notice(move |notification| {
            news.changed(&notification);
            inbox.put(&notification);
        });
        let mut call = call.start();
        let patience = tokio::time::sleep_until(Instant::now() + ACKNOWLEDGED_WITHIN);
        let mut patience = std::pin::pin!(patience);
        loop {
            if self.inbox.agreed().is_some() {
                return Ok(State::Modern(call));
            }
            tokio::select! {
                biased;
                () = self.inbox.news() => {}
                ended = &mut call => return match after(ended) {
                    State::Broken(error, _) | State::Over(ListenEnd::Failed(error)) => Err(error),
                    over => Ok(over),
                },
                () = &mut patience => {
                    let (after, sent) = (ACKNOWLEDGED_WITHIN, Sent::Maybe);
                    let clock = Clock::Total;
                    return Err(Outcome::TimedOut { clock, after, sent }.into());
                }
            }
        }
    }

    /// Changes of lists come unasked.
    async fn open_legacy(&self) -> Result<State, Error> {
        let link = self.client.link().await?;
        self.client.news().listen(&self.inbox);
        for uri in self.filter.uris() {
            let call: Call<_> = Call::new::<Subscribe>(
                Route::Direct(link.clone()),
                &SubscribeParams::new(uri),
                None,
            );
            call.await?;
        }
        let capabilities = self.client.server_capabilities();
        let mut agreed = self.filter.clone();
        let tells = |list: Option<bool>, told: Option<bool>| list.filter(|_| told == Some(true));
        let tools = capabilities.tools.and_then(|list| list.list_changed);
        let prompts = capabilities.prompts.and_then(|list| list.list_changed);
        let resources = capabilities.resources.and_then(|list| list.list_changed);
        agreed.tools_list_changed = tells(agreed.tools_list_changed, tools);
        agreed.prompts_list_changed = tells(agreed.prompts_list_changed, prompts);
        agreed.resources_list_changed = tells(agreed.resources_list_changed, resources);
        self.inbox.agree(agreed);
        Ok(State::Legacy(link))
    }

    /// Opens it again, after it was lost.
    async fn restored(&mut self) -> State {
        let State::Broken(_, attempt) = &self.state else {
            return State::Over(ListenEnd::Finished);
        };
        let attempt = *attempt;
        if attempt > 0 {
            tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        }
        match self.open().await {
            Ok(state) => {
                self.client.news().missed();
                self.inbox.push(Change::Restored);
                state
            }
            Err(error) if error.is_lost() && attempt < ATTEMPTS && !self.client.is_over() => {
                State::Broken(error, attempt + 1)
            }
            Err(error) => State::Over(ListenEnd::Failed(error)),
        }
    }
}

/// What the end of a stream means.
fn after(ended: Result<ListenResult, Error>) -> State {
    match ended {
        Ok(_) => State::Over(ListenEnd::Finished),
        // Some servers end it with a cancel.
        Err(error) if error.cancelled_by() == Some(By::Peer) => State::Over(ListenEnd::Finished),
        Err(error) if error.is_lost() => State::Broken(error, 0),
        Err(error) => State::Over(ListenEnd::Failed(error)),
    }
}

/// In the legacy era the server is told for each URI. Nobody waits for that.
impl Drop for Subscription {
    fn drop(&mut self) {
        let State::Legacy(link) = &self.state else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        for uri in self.client.news().given_up(&self.inbox, self.filter.uris()) {
            let route = Route::Direct(link.clone());
            let call = Call::new::<Unsubscribe>(route, &SubscribeParams::new(uri), None);
            let call = call.start();
            let told = async move {
                if let Err(error) = call.await {
                    tracing::debug!(%error, method = Unsubscribe::METHOD, "it was not told");
                }
            };
            link.tasks().spawn_on(told, &runtime);
        }
    }
}
