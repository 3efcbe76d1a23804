//! What a subscription has received and its user has not taken yet: bounded, whatever a server tells.

use std::collections::VecDeque;

use crate::sync::{Mutex, MutexGuard};
use belay_protocol::jsonrpc::Notification;
use belay_protocol::types::modern::{AcknowledgedParams, SubscriptionFilter};
use belay_protocol::types::{
    Notification as _, PromptListChangedParams, ResourceListChangedParams, ResourceUpdatedParams,
    ToolListChangedParams,
};
use tokio::sync::Notify;

/// A change on the server that a subscription reports.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools has changed.
    Tools,
    /// The list of prompts has changed.
    Prompts,
    /// The list of resources has changed.
    Resources,
    /// A resource was updated.
    Updated {
        /// The URI of the resource, which may be a part of the one subscribed to.
        uri: String,
    },
    /// The subscriber fell behind and this many changes were dropped. Anything that was
    /// subscribed to may have changed.
    Lagged {
        /// The number of dropped changes.
        missed: u64,
    },
    /// The connection was lost and is restored. Anything that was subscribed to may
    /// have changed in between.
    Restored,
}

impl Change {
    /// Whether its URI is too long to be kept.
    fn is_long(&self) -> bool {
        const LONGEST: usize = 64 << 10;
        matches!(self, Self::Updated { uri } if uri.len() > LONGEST)
    }
}

/// Changes that were received. The same thing waits once: it says that something changed, so a second time would
/// say nothing new.
pub(crate) struct ChangeQueue {
    filter: SubscriptionFilter,
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Change>,
    missed: u64,
    agreed: Option<SubscriptionFilter>,
}

/// The most changes that are queued.
const WAITING: usize = 256;

impl ChangeQueue {
    pub(in crate::client) fn new(filter: SubscriptionFilter) -> Self {
        Self {
            filter,
            inner: Mutex::default(),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Queues a notification from the link, which goes to all subscriptions.
    pub(in crate::client) fn put(&self, notification: &Notification) {
        self.take_in(notification, is_part);
    }

    /// Queues a notification from this subscription's own stream. The server has matched the URI,
    /// so it is not compared again.
    pub(in crate::client) fn put_own(&self, notification: &Notification) {
        self.take_in(notification, |_, _| true);
    }

    fn take_in(&self, notification: &Notification, about: fn(&str, &str) -> bool) {
        if notification.method == *AcknowledgedParams::METHOD {
            let params = notification.params.as_ref();
            let params = params.and_then(|params| params.decode::<AcknowledgedParams>().ok());
            self.agree(
                params
                    .map(|params| params.notifications)
                    .unwrap_or_default(),
            );
        } else if let Some(change) = self.wanted(notification, about) {
            self.push(change);
        }
    }

    /// The change that a notification reports, if the filter asks for it.
    fn wanted(&self, notification: &Notification, about: fn(&str, &str) -> bool) -> Option<Change> {
        let filter = &self.filter;
        let (wanted, change) = match &*notification.method {
            ToolListChangedParams::METHOD => (filter.tools_list_changed, Change::Tools),
            PromptListChangedParams::METHOD => (filter.prompts_list_changed, Change::Prompts),
            ResourceListChangedParams::METHOD => (filter.resources_list_changed, Change::Resources),
            ResourceUpdatedParams::METHOD => {
                let params: ResourceUpdatedParams = notification.params.as_ref()?.decode().ok()?;
                let mut asked = filter.uris().iter();
                let wanted = asked.any(|uri| about(&params.uri, uri));
                (Some(wanted), Change::Updated { uri: params.uri })
            }
            _ => return None,
        };
        (wanted == Some(true)).then_some(change)
    }

    pub(in crate::client) fn push(&self, change: Change) {
        let mut inner = self.lock();
        match inner.waiting.contains(&change) {
            true => return,
            false if inner.waiting.len() >= WAITING || change.is_long() => inner.missed += 1,
            false => inner.waiting.push_back(change),
        }
        drop(inner);
        self.changed.notify_one();
    }

    pub(in crate::client) fn agree(&self, filter: SubscriptionFilter) {
        self.lock().agreed = Some(filter);
        self.changed.notify_one();
    }

    /// Clears what was agreed, before the subscription is opened again.
    pub(in crate::client) fn disagree(&self) {
        self.lock().agreed = None;
    }

    pub(in crate::client) fn agreed(&self) -> Option<SubscriptionFilter> {
        self.lock().agreed.clone()
    }

    /// Whether the subscription includes exactly this resource.
    pub(in crate::client) fn is_about(&self, uri: &str) -> bool {
        self.filter.uris().iter().any(|known| known == uri)
    }

    /// Takes what waits longest.
    pub(in crate::client) fn take(&self) -> Option<Change> {
        let mut inner = self.lock();
        match std::mem::take(&mut inner.missed) {
            0 => inner.waiting.pop_front(),
            missed => Some(Change::Lagged { missed }),
        }
    }

    /// Waits until something was queued or agreed.
    pub(in crate::client) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl std::fmt::Debug for ChangeQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeQueue")
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

/// Whether a resource is `whole`, or a part of it.
fn is_part(uri: &str, whole: &str) -> bool {
    let ends = |last: Option<char>| last.is_none_or(|letter| "/?#:".contains(letter));
    match uri.strip_prefix(whole) {
        Some(rest) => ends(rest.chars().next()) || ends(whole.chars().next_back()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use belay_protocol::jsonrpc::{Message, decode};

    use super::*;

    fn told(method: &str, params: &str) -> Notification {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        match decode(&text.into(), 64) {
            Ok(Message::Notification(notification)) => notification,
            other => panic!("{other:?}"),
        }
    }

    fn updated(uri: u32) -> Notification {
        told(
            ResourceUpdatedParams::METHOD,
            &format!(r#"{{"uri":"a:{uri}"}}"#),
        )
    }

    #[test]
    fn only_what_was_asked_for_waits_and_only_once() {
        let queue = ChangeQueue::new(SubscriptionFilter::new().tools());
        for _ in 0..3 {
            queue.put(&told(ToolListChangedParams::METHOD, "{}"));
            queue.put(&told(PromptListChangedParams::METHOD, "{}"));
            queue.put(&updated(1));
        }
        assert_eq!(queue.take(), Some(Change::Tools));
        assert_eq!(queue.take(), None);
    }

    /// On a shared link the URI is compared; a stream of its own carries one subscription only.
    #[test]
    fn parts_are_told_by_where_the_whole_ends() {
        for (uri, whole, part) in [
            ("a://1", "a://1", true),
            ("a://1/2", "a://1", true),
            ("a://1?q", "a://1", true),
            ("a://1#f", "a://1", true),
            ("a://1/2", "a://1/", true),
            ("a://", "a:", true),
            ("a://12", "a://1", false),
            ("a://1", "a://12", false),
            ("b://1", "a://1", false),
        ] {
            assert_eq!(is_part(uri, whole), part, "{uri} {whole}");
            let queue = ChangeQueue::new(SubscriptionFilter::new().resource(whole));
            let told = told(
                ResourceUpdatedParams::METHOD,
                &format!(r#"{{"uri":"{uri}"}}"#),
            );
            queue.put(&told);
            assert_eq!(queue.take().is_some(), part, "{uri} {whole}");
            queue.put_own(&told);
            assert!(queue.take().is_some(), "{uri} {whole}");
        }
    }

    #[test]
    fn a_server_that_tells_too_much_is_told_of_as_lag() {
        let queue = ChangeQueue::new(SubscriptionFilter::new().resource("a:"));
        for uri in 0..1000 {
            queue.put(&updated(uri));
        }
        queue.put(&told(ResourceUpdatedParams::METHOD, r#"{"uri":"b:1"}"#));
        // A subscriber that lags behind learns of the dropped changes first.
        let missed = 1000 - WAITING as u64;
        assert_eq!(queue.take(), Some(Change::Lagged { missed }));
        for uri in 0..WAITING {
            let uri = format!("a:{uri}");
            assert_eq!(queue.take(), Some(Change::Updated { uri }));
        }
        assert_eq!(queue.take(), None);
    }
}
