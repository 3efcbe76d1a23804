//! The books of a server: every link that it serves, and every one that it has served.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use belay_protocol::engine::{Ledger, Shutdown};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::standing::Standing;
use crate::driver::{Link, Stats};
use crate::sync::{Mutex, MutexGuard};

/// The books of a server, for all its connections: how many requests began, how each ended, how
/// many run (**ledger**).
///
/// ```
/// let server = belay::Server::new("example", "1.0.0");
/// let books = server.books();
/// let requests = books.ledger().requests;
/// assert_eq!(requests.started(), requests.ended() + requests.in_flight());
/// ```
#[derive(Clone, Default)]
pub struct Books {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    stats: Arc<Stats>,
    links: Mutex<Links>,
    /// Told when the last link is over.
    empty: Notify,
}

#[derive(Default)]
struct Links {
    open: HashMap<usize, Open>,
    past: Ledger,
    closing: bool,
}

struct Open {
    link: Arc<Link>,
    /// Where it is served.
    runtime: Option<Handle>,
    /// What its client wants, if it is a legacy one and somebody asked.
    standing: Option<Arc<Standing>>,
}

impl Books {
    /// How many requests began, and how each ended.
    pub fn ledger(&self) -> Ledger {
        let links = self.links();
        let mut ledger = links.past.clone();
        for open in links.open.values() {
            ledger += &open.link.ledger();
        }
        ledger
    }

    /// How many handlers exist on connections that are open: running, or being stopped.
    pub fn handlers(&self) -> usize {
        let links = self.links();
        let open = links.open.values();
        open.map(|open| open.link.handlers()).sum()
    }

    /// All links that are open.
    pub(super) fn open(&self) -> Vec<Arc<Link>> {
        let links = self.links();
        let open = links.open.values();
        open.map(|open| open.link.clone()).collect()
    }

    /// What the client of an open link wants.
    pub(super) fn standing(&self, link: &Arc<Link>) -> Option<Arc<Standing>> {
        let mut links = self.links();
        let open = links.open.get_mut(&address(link))?;
        Some(open.standing.get_or_insert_default().clone())
    }

    /// Where an open link is served.
    pub(super) fn runtime(&self, link: &Arc<Link>) -> Option<Handle> {
        let links = self.links();
        links.open.get(&address(link))?.runtime.clone()
    }

    /// Somebody listens to what is said on a link by itself.
    #[cfg(feature = "http")]
    pub(crate) fn is_heard(&self, link: &Arc<Link>) {
        let (standing, runtime) = {
            let links = self.links();
            let Some(open) = links.open.get(&address(link)) else {
                return;
            };
            (open.standing.clone(), open.runtime.clone())
        };
        if let (Some(standing), Some(runtime)) = (standing, runtime) {
            standing.tell_all(link, &runtime);
        }
    }

    /// How handlers were stopped, and how long that took.
    pub(crate) fn stats(&self) -> Arc<Stats> {
        self.inner.stats.clone()
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.inner.links.lock()
    }

    /// A link begins. It is over when what is given back is dropped.
    pub(crate) fn enter(&self, link: &Arc<Link>) -> Entry {
        let closing = {
            let mut links = self.links();
            let open = Open {
                link: link.clone(),
                runtime: Handle::try_current().ok(),
                standing: None,
            };
            links.open.insert(address(link), open);
            links.closing
        };
        // It has come while everybody else was told.
        if closing {
            link.shutdown(Shutdown::Drain);
        }
        Entry {
            books: self.clone(),
            link: link.clone(),
        }
    }

    /// Whether everything is about to end.
    pub(crate) fn is_closing(&self) -> bool {
        self.links().closing
    }

    /// Begins to end everything, or ends the time for it.
    pub(crate) fn end(&self, how: Shutdown) {
        let open: Vec<Arc<Link>> = {
            let mut links = self.links();
            links.closing = true;
            let open = links.open.values();
            open.map(|open| open.link.clone()).collect()
        };
        for link in open {
            link.shutdown(how);
        }
    }

    /// Waits until all links are over. Each sees to that by itself, within its time.
    pub(crate) async fn closed(&self) {
        loop {
            let mut empty = std::pin::pin!(self.inner.empty.notified());
            empty.as_mut().enable();
            if self.links().open.is_empty() {
                return;
            }
            empty.await;
        }
    }
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Books")
            .field("requests", &self.ledger().requests)
            .finish_non_exhaustive()
    }
}

/// A link that is in the books. What it did stays there.
pub(crate) struct Entry {
    books: Books,
    link: Arc<Link>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut links = self.books.links();
        links.open.remove(&address(&self.link));
        links.past += &self.link.ledger();
        let empty = links.open.is_empty();
        drop(links);
        if empty {
            self.books.inner.empty.notify_waiters();
        }
    }
}

fn address(link: &Arc<Link>) -> usize {
    Arc::as_ptr(link).addr()
}
