//! Every connection that a server has, and the ledgers of those that are closed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use belay_protocol::engine::{Ledger, Shutdown};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::changes::LegacySession;
use crate::driver::{Link, Stats};
use crate::sync::{Mutex, MutexGuard};

/// Counts for all connections of a server: how many requests began, how each ended, and how many are
/// in flight (**ledger**). Cheap to clone.
///
/// ```
/// let server = belay::Server::new("example", "1.0.0");
/// let requests = server.stats().ledger().requests;
/// assert_eq!(requests.started(), requests.ended() + requests.in_flight());
/// ```
#[derive(Clone)]
pub struct ServerStats(Connections);

impl ServerStats {
    pub(super) fn new(connections: &Connections) -> Self {
        Self(connections.clone())
    }

    /// Counts of requests that began, and of how each ended.
    pub fn ledger(&self) -> Ledger {
        self.0.ledger()
    }

    /// The number of handlers that run or are being stopped.
    pub fn handlers(&self) -> usize {
        self.0.handlers()
    }
}

impl fmt::Debug for ServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServerStats").field(&self.ledger()).finish()
    }
}

/// Every connection that a server has, and the ledgers of those that are closed.
#[derive(Clone, Default)]
pub(crate) struct Connections {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    stats: Arc<Stats>,
    links: Mutex<Links>,
    /// Requests on links that are not registered here, because they may end at once.
    unentered: AtomicU64,
    /// The server is shutting down. Set while `links` is locked.
    closing: AtomicBool,
    /// Notified when the last link has ended.
    empty: Notify,
}

#[derive(Default)]
struct Links {
    open: HashMap<usize, Open>,
    past: Ledger,
}

struct Open {
    link: Arc<Link>,
    /// The runtime that serves the link.
    runtime: Option<Handle>,
    /// The settings of a legacy client. Created on first use.
    session: Option<Arc<LegacySession>>,
}

impl Connections {
    /// How many requests began, and how each ended.
    pub(crate) fn ledger(&self) -> Ledger {
        let links = self.links();
        let mut ledger = links.past.clone();
        ledger.add_in_flight(self.inner.unentered.load(Ordering::SeqCst));
        for open in links.open.values() {
            ledger += &open.link.ledger();
        }
        ledger
    }

    /// How many handlers exist: running, or being stopped.
    pub(crate) fn handlers(&self) -> usize {
        self.inner.stats.handlers()
    }

    /// All open links.
    pub(super) fn open(&self) -> Vec<Arc<Link>> {
        let links = self.links();
        let open = links.open.values();
        open.map(|open| open.link.clone()).collect()
    }

    /// The settings of a legacy client on an open link.
    pub(super) fn legacy_session(&self, link: &Arc<Link>) -> Option<Arc<LegacySession>> {
        let mut links = self.links();
        let open = links.open.get_mut(&address(link))?;
        Some(open.session.get_or_insert_default().clone())
    }

    /// The runtime that serves an open link.
    pub(super) fn runtime(&self, link: &Arc<Link>) -> Option<Handle> {
        let links = self.links();
        links.open.get(&address(link))?.runtime.clone()
    }

    /// A client has opened a stream for notifications: those that wait are sent.
    #[cfg(feature = "http")]
    pub(crate) fn is_heard(&self, link: &Arc<Link>) {
        let (session, runtime) = {
            let links = self.links();
            let Some(open) = links.open.get(&address(link)) else {
                return;
            };
            (open.session.clone(), open.runtime.clone())
        };
        if let (Some(session), Some(runtime)) = (session, runtime) {
            session.tell_all(link, &runtime);
        }
    }

    /// Statistics of how handlers were stopped, and how long that took.
    pub(crate) fn stats(&self) -> Arc<Stats> {
        self.inner.stats.clone()
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.inner.links.lock()
    }

    /// Registers a link until the returned guard is dropped.
    pub(crate) fn enter(&self, link: &Arc<Link>) -> Entry {
        self.enter_late(link, None)
    }

    /// Registers a link on which a request has already begun.
    pub(crate) fn enter_late(&self, link: &Arc<Link>, unentered: Option<Unentered>) -> Entry {
        let closing = {
            let mut links = self.links();
            let open = Open {
                link: link.clone(),
                runtime: Handle::try_current().ok(),
                session: None,
            };
            links.open.insert(address(link), open);
            drop(unentered);
            self.is_closing()
        };
        // It was registered after the shutdown had reached the other links.
        if closing {
            link.shutdown(Shutdown::Drain);
        }
        Entry {
            connections: self.clone(),
            link: link.clone(),
        }
    }

    /// Whether the server is shutting down.
    pub(crate) fn is_closing(&self) -> bool {
        self.inner.closing.load(Ordering::SeqCst)
    }

    /// Counts a request whose link is registered only if the request does not end at once.
    #[cfg(feature = "http")]
    pub(crate) fn begin_unentered(&self) -> Unentered {
        self.inner.unentered.fetch_add(1, Ordering::SeqCst);
        Unentered(self.clone())
    }

    /// Begins the shutdown of all links, or ends their drain.
    pub(crate) fn end(&self, how: Shutdown) {
        let open: Vec<Arc<Link>> = {
            let links = self.links();
            self.inner.closing.store(true, Ordering::SeqCst);
            let open = links.open.values();
            open.map(|open| open.link.clone()).collect()
        };
        for link in open {
            link.shutdown(how);
        }
    }

    /// Waits until all links have ended. Each of them keeps the shutdown's time limits itself.
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

/// A request on a link that is not registered.
pub(crate) struct Unentered(Connections);

#[cfg(feature = "http")]
impl Unentered {
    /// Adds the ledger of the link, which has ended with its request.
    pub(crate) fn over(self, ledger: &Ledger) {
        let connections = self.0.clone();
        let mut links = connections.links();
        links.past += ledger;
        // Dropped under the lock, so that the request is counted exactly once.
        drop(self);
    }
}

impl Drop for Unentered {
    fn drop(&mut self) {
        self.0.inner.unentered.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A registered link. Its ledger is kept when it is closed.
pub(crate) struct Entry {
    connections: Connections,
    link: Arc<Link>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut links = self.connections.links();
        links.open.remove(&address(&self.link));
        links.past += &self.link.ledger();
        let empty = links.open.is_empty();
        drop(links);
        if empty {
            self.connections.inner.empty.notify_waiters();
        }
    }
}

fn address(link: &Arc<Link>) -> usize {
    Arc::as_ptr(link).addr()
}
