//! Who is told that something changed.
//!
//! A modern client listens, and is told what it asked for, on the stream it asked on. A legacy client
//! is told of every list, and of the resources it has subscribed to, by and by.

use std::collections::HashMap;
use std::sync::Arc;

use belay_protocol::types::Era;

pub(super) use super::mailbox::{List, News};

use super::books::Books;
use super::mailbox::Mailbox;
use crate::sync::{Mutex, MutexGuard};

/// Tells everybody who wants to know.
#[derive(Clone)]
pub(super) struct Changes {
    inner: Arc<Inner>,
}

struct Inner {
    books: Books,
    listening: Mutex<Listening>,
}

#[derive(Default)]
struct Listening {
    mailboxes: HashMap<u64, Arc<Mailbox>>,
    last: u64,
}

impl Changes {
    pub(super) fn new(books: Books) -> Self {
        let listening = Mutex::default();
        Self {
            inner: Arc::new(Inner { books, listening }),
        }
    }

    /// A list is not what it was.
    pub(super) fn listed(&self, list: List) {
        self.tell(&News::Listed(list));
    }

    /// A resource is not what it was.
    pub(super) fn updated(&self, uri: &str) {
        self.tell(&News::Updated(uri.to_owned()));
    }

    fn tell(&self, news: &News) {
        let listening: Vec<Arc<Mailbox>> = self.lock().mailboxes.values().cloned().collect();
        for mailbox in listening {
            mailbox.put(news);
        }
        let books = &self.inner.books;
        for link in books.open() {
            let legacy = link.version().is_some_and(|it| it.era() == Era::Legacy);
            if legacy
                && let Some(standing) = books.standing(&link)
                && let Some(runtime) = books.runtime(&link)
            {
                standing.tell(&link, news, &runtime);
            }
        }
    }

    /// Somebody listens, until what is given back is dropped.
    pub(super) fn listen(&self, mailbox: Mailbox) -> Listener {
        let mailbox = Arc::new(mailbox);
        let mut listening = self.lock();
        listening.last += 1;
        let number = listening.last;
        listening.mailboxes.insert(number, mailbox.clone());
        drop(listening);
        Listener {
            changes: self.clone(),
            number,
            mailbox,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Listening> {
        self.inner.listening.lock()
    }
}

/// Somebody who listens.
pub(super) struct Listener {
    changes: Changes,
    number: u64,
    pub(super) mailbox: Arc<Mailbox>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.changes.lock().mailboxes.remove(&self.number);
    }
}
