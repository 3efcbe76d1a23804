//! Change that waits to be told: each only once, however often it happens.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use belay_protocol::types::modern::SubscriptionFilter;
use tokio::sync::Notify;

use crate::driver::{Peer, Permit, Pool};
use crate::sync::{Mutex, MutexGuard};

/// A change notification.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::server) enum Change {
    /// A list.
    Listed(List),
    /// A resource.
    Updated(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::server) enum List {
    Tools,
    Prompts,
    Resources,
}

/// Changes for one listener. What waits is there once: it says *that* something changed, so a second
/// time would say nothing new. That bounds it by what the listener asked for.
#[derive(Default)]
pub(in crate::server) struct ChangeQueue {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    lists: HashSet<List>,
    uris: HashSet<String>,
    /// The total length of the URIs.
    bytes: usize,
    weight: Option<Permit>,
    waiting: VecDeque<Change>,
}

/// Why a resource cannot be subscribed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::server) enum Full {
    /// Too many resources are subscribed to.
    Many,
    /// The URIs exceed the memory budget, together with all else that is stored for the client.
    Long,
}

impl ChangeQueue {
    /// A queue for the changes in a filter, if the memory budget allows it.
    pub(in crate::server) fn for_filter(
        filter: &SubscriptionFilter,
        peer: &Arc<Peer>,
    ) -> Result<Self, Full> {
        let queue = Self::default();
        {
            let mut inner = queue.lock();
            let lists = [
                (filter.tools_list_changed, List::Tools),
                (filter.prompts_list_changed, List::Prompts),
                (filter.resources_list_changed, List::Resources),
            ];
            let wanted = lists
                .into_iter()
                .filter(|(wanted, _)| *wanted == Some(true));
            inner.lists = wanted.map(|(_, list)| list).collect();
        }
        for uri in filter.uris() {
            queue.subscribe(uri, usize::MAX, peer)?;
        }
        Ok(queue)
    }

    /// A queue for changes of all lists.
    pub(in crate::server) fn for_lists() -> Self {
        let queue = Self::default();
        queue.lock().lists = [List::Tools, List::Prompts, List::Resources].into();
        queue
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Adds a resource, unless there are too many or the memory budget is exceeded.
    pub(in crate::server) fn subscribe(
        &self,
        uri: &str,
        most: usize,
        peer: &Arc<Peer>,
    ) -> Result<(), Full> {
        let mut inner = self.lock();
        if inner.uris.contains(uri) {
            return Ok(());
        }
        if inner.uris.len() >= most {
            return Err(Full::Many);
        }
        let (before, after) = (inner.bytes, inner.bytes + uri.len());
        let weight = inner.weight.get_or_insert_with(|| peer.begin(Pool::Bytes));
        if !weight.resize(before, after) {
            return Err(Full::Long);
        }
        inner.bytes = after;
        inner.uris.insert(uri.to_owned());
        Ok(())
    }

    pub(in crate::server) fn unsubscribe(&self, uri: &str) {
        let mut inner = self.lock();
        if inner.uris.remove(uri) {
            let (before, after) = (inner.bytes, inner.bytes - uri.len());
            inner.bytes = after;
            if let Some(weight) = &mut inner.weight {
                weight.resize(before, after);
            }
        }
        inner
            .waiting
            .retain(|change| *change != Change::Updated(uri.to_owned()));
    }

    /// Queues a change, if it is wanted and not queued yet. Returns whether it was queued.
    pub(in crate::server) fn put(&self, change: &Change) -> bool {
        let mut inner = self.lock();
        let wanted = match change {
            Change::Listed(list) => inner.lists.contains(list),
            Change::Updated(uri) => inner.uris.contains(uri),
        };
        if !wanted || inner.waiting.contains(change) {
            return false;
        }
        inner.waiting.push_back(change.clone());
        drop(inner);
        self.changed.notify_one();
        true
    }

    pub(in crate::server) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Takes what waits longest.
    pub(in crate::server) fn take(&self) -> Option<Change> {
        self.lock().waiting.pop_front()
    }

    /// Waits for a change, and takes the oldest.
    pub(in crate::server) async fn next(&self) -> Change {
        loop {
            if let Some(change) = self.take() {
                return change;
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Pools;

    #[test]
    fn news_wait_once_in_the_order_of_their_first_time() {
        let filter = SubscriptionFilter::new().tools().resource("file:///a");
        let queue = ChangeQueue::for_filter(&filter, &Pools::new(|_| 0).only_peer()).unwrap();
        let updated = Change::Updated("file:///a".into());
        for change in [&updated, &Change::Listed(List::Tools), &updated] {
            queue.put(change);
        }
        assert!(!queue.put(&Change::Listed(List::Prompts)));
        assert!(!queue.put(&Change::Updated("file:///b".into())));
        assert_eq!(queue.take(), Some(updated.clone()));
        // The change can happen again once it was sent.
        assert!(queue.put(&updated));
        assert_eq!(queue.take(), Some(Change::Listed(List::Tools)));
        assert_eq!(queue.take(), Some(updated));
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn bounded_subscriptions_are_counted_and_weighed_and_end() {
        let queue = ChangeQueue::for_lists();
        let peer = Pools::new(|_| 100).only_peer();
        assert_eq!(queue.subscribe("a", 1, &peer), Ok(()));
        assert_eq!(queue.subscribe("a", 1, &peer), Ok(()));
        assert_eq!(queue.subscribe("b", 1, &peer), Err(Full::Many));
        assert!(queue.put(&Change::Updated("a".into())));
        queue.unsubscribe("a");
        assert_eq!(queue.take(), None);
        assert!(!queue.put(&Change::Updated("a".into())));

        let long = "x".repeat(crate::driver::FREE);
        assert_eq!(queue.subscribe(&long, 9, &peer), Ok(()));
        let longer = "y".repeat(101);
        assert_eq!(queue.subscribe(&longer, 9, &peer), Err(Full::Long));
        assert!(!queue.put(&Change::Updated(longer.clone())));
        queue.unsubscribe(&long);
        assert_eq!(queue.subscribe(&longer, 9, &peer), Ok(()));
        drop(queue);
        assert!(
            peer.could_take(Pool::Bytes, 100),
            "all of it was given back"
        );
    }
}
