//! News that waits to be told: each only once, however often it happens.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use belay_protocol::types::modern::SubscriptionFilter;
use tokio::sync::Notify;

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
    waiting: VecDeque<News>,
}

impl Mailbox {
    /// For what a filter names.
    pub(super) fn for_filter(filter: &SubscriptionFilter) -> Self {
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
            inner.uris = filter.uris().iter().cloned().collect();
        }
        mailbox
    }

    /// For changes of all lists.
    pub(super) fn for_lists() -> Self {
        let mailbox = Self::default();
        mailbox.lock().lists = [List::Tools, List::Prompts, List::Resources].into();
        mailbox
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Also wants to know of this resource, unless that makes too many.
    pub(super) fn subscribe(&self, uri: &str, most: usize) -> bool {
        let mut inner = self.lock();
        if inner.uris.len() >= most && !inner.uris.contains(uri) {
            return false;
        }
        inner.uris.insert(uri.to_owned());
        true
    }

    pub(super) fn unsubscribe(&self, uri: &str) {
        let mut inner = self.lock();
        inner.uris.remove(uri);
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

    #[test]
    fn news_wait_once_in_the_order_of_their_first_time() {
        let filter = SubscriptionFilter::new().tools().resource("file:///a");
        let mailbox = Mailbox::for_filter(&filter);
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
    fn subscriptions_are_bounded_and_end() {
        let mailbox = Mailbox::for_lists();
        assert!(mailbox.subscribe("a", 1));
        assert!(mailbox.subscribe("a", 1));
        assert!(!mailbox.subscribe("b", 1));
        assert!(mailbox.put(&News::Updated("a".into())));
        mailbox.unsubscribe("a");
        assert_eq!(mailbox.take(), None);
        assert!(!mailbox.put(&News::Updated("a".into())));
    }
}
