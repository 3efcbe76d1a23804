//! News that waits to be told: each only once, however often it happens.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use belay_protocol::types::modern::SubscriptionFilter;
use tokio::sync::Notify;

use crate::driver::{Peer, Permit, Pool};
use crate::sync::{Mutex, MutexGuard};

/// What changed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum News {
    /// A list.
    Listed(List),
    /// A resource.
    Updated(String),
}

/// The lists that change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum List {
    Tools,
    Prompts,
    Resources,
}

/// News for one listener. What waits is there once: it says *that* something changed, so a second
/// time would say nothing new. That bounds it by what the listener asked for.
#[derive(Default)]
pub(super) struct Mailbox {
    inner: Mutex<Inner>,
    news: Notify,
}

#[derive(Default)]
struct Inner {
    lists: HashSet<List>,
    uris: HashSet<String>,
    /// Bytes of the URIs.
    bytes: usize,
    weight: Option<Permit>,
    waiting: VecDeque<News>,
}

/// Why a resource cannot be subscribed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Full {
    /// There are so many already.
    Many,
    /// They are too long, with all that is kept for others.
    Long,
}

impl Mailbox {
    /// For what a filter names, if there is room for that.
    pub(super) fn for_filter(filter: &SubscriptionFilter, peer: &Arc<Peer>) -> Result<Self, Full> {
        let mailbox = Self::default();
        {
            let mut inner = mailbox.lock();
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
            mailbox.subscribe(uri, usize::MAX, peer)?;
        }
        Ok(mailbox)
    }

    /// For changes of all lists.
    pub(super) fn for_lists() -> Self {
        let mailbox = Self::default();
        mailbox.lock().lists = [List::Tools, List::Prompts, List::Resources].into();
        mailbox
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Also wants to know of this resource, unless that makes too many, or too much.
    pub(super) fn subscribe(&self, uri: &str, most: usize, peer: &Arc<Peer>) -> Result<(), Full> {
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

    pub(super) fn unsubscribe(&self, uri: &str) {
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
            .retain(|news| *news != News::Updated(uri.to_owned()));
    }

    /// Puts something in, if it is wanted and not there. True if it was.
    pub(super) fn put(&self, news: &News) -> bool {
        let mut inner = self.lock();
        let wanted = match news {
            News::Listed(list) => inner.lists.contains(list),
            News::Updated(uri) => inner.uris.contains(uri),
        };
        if !wanted || inner.waiting.contains(news) {
            return false;
        }
        inner.waiting.push_back(news.clone());
        drop(inner);
        self.news.notify_one();
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().waiting.is_empty()
    }

    /// Takes what waits longest.
    pub(super) fn take(&self) -> Option<News> {
        self.lock().waiting.pop_front()
    }

    /// The same, or waits for something.
    pub(super) async fn next(&self) -> News {
        loop {
            if let Some(news) = self.take() {
                return news;
            }
            self.news.notified().await;
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
        let mailbox = Mailbox::for_filter(&filter, &Pools::new(|_| 0).only_peer()).unwrap();
        let updated = News::Updated("file:///a".into());
        for news in [&updated, &News::Listed(List::Tools), &updated] {
            mailbox.put(news);
        }
        assert!(!mailbox.put(&News::Listed(List::Prompts)));
        assert!(!mailbox.put(&News::Updated("file:///b".into())));
        assert_eq!(mailbox.take(), Some(updated.clone()));
        // It can change again as soon as it was told.
        assert!(mailbox.put(&updated));
        assert_eq!(mailbox.take(), Some(News::Listed(List::Tools)));
        assert_eq!(mailbox.take(), Some(updated));
        assert_eq!(mailbox.take(), None);
    }

    #[test]
    fn bounded_subscriptions_are_counted_and_weighed_and_end() {
        let mailbox = Mailbox::for_lists();
        let peer = Pools::new(|_| 100).only_peer();
        assert_eq!(mailbox.subscribe("a", 1, &peer), Ok(()));
        assert_eq!(mailbox.subscribe("a", 1, &peer), Ok(()));
        assert_eq!(mailbox.subscribe("b", 1, &peer), Err(Full::Many));
        assert!(mailbox.put(&News::Updated("a".into())));
        mailbox.unsubscribe("a");
        assert_eq!(mailbox.take(), None);
        assert!(!mailbox.put(&News::Updated("a".into())));

        let long = "x".repeat(crate::driver::FREE);
        assert_eq!(mailbox.subscribe(&long, 9, &peer), Ok(()));
        let longer = "y".repeat(101);
        assert_eq!(mailbox.subscribe(&longer, 9, &peer), Err(Full::Long));
        assert!(!mailbox.put(&News::Updated(longer.clone())));
        mailbox.unsubscribe(&long);
        assert_eq!(mailbox.subscribe(&longer, 9, &peer), Ok(()));
        drop(mailbox);
        assert!(
            peer.could_take(Pool::Bytes, 100),
            "all of it was given back"
        );
    }
}
