//! Delivery of change notifications to clients.
//!
//! A modern client subscribes, and gets the changes it asked for on that stream. A legacy client
//! gets the changes of all lists, and of the resources it has subscribed to.

mod legacy_session;
mod queue;
pub(super) mod subscriptions;

use std::collections::HashMap;
use std::sync::Arc;

use belay_protocol::types::Era;

use super::connections::Connections;
use crate::sync::{Mutex, MutexGuard};

pub(crate) use legacy_session::LegacySession;
use queue::ChangeQueue;
pub(super) use queue::{Change, Full, List};

/// Sends change notifications to all interested clients.
#[derive(Clone)]
pub(in crate::server) struct Changes {
    inner: Arc<Inner>,
}

struct Inner {
    connections: Connections,
    listening: Mutex<Listening>,
}

#[derive(Default)]
struct Listening {
    queues: HashMap<u64, Arc<ChangeQueue>>,
    last: u64,
}

impl Changes {
    pub(in crate::server) fn new(connections: Connections) -> Self {
        let listening = Mutex::default();
        Self {
            inner: Arc::new(Inner {
                connections,
                listening,
            }),
        }
    }

    /// A list has changed.
    pub(in crate::server) fn listed(&self, list: List) {
        self.tell(&Change::Listed(list));
    }

    /// A resource has changed.
    pub(in crate::server) fn updated(&self, uri: &str) {
        self.tell(&Change::Updated(uri.to_owned()));
    }

    fn tell(&self, change: &Change) {
        let listening: Vec<Arc<ChangeQueue>> = self.lock().queues.values().cloned().collect();
        for queue in listening {
            queue.put(change);
        }
        let connections = &self.inner.connections;
        for link in connections.open() {
            let legacy = link.version().is_some_and(|it| it.era() == Era::Legacy);
            if legacy
                && let Some(session) = connections.legacy_session(&link)
                && let Some(runtime) = connections.runtime(&link)
            {
                session.tell(&link, change, &runtime);
            }
        }
    }

    /// Registers a queue until the returned listener is dropped.
    pub(in crate::server) fn listen(&self, queue: ChangeQueue) -> Listener {
        let queue = Arc::new(queue);
        let mut listening = self.lock();
        listening.last += 1;
        let number = listening.last;
        listening.queues.insert(number, queue.clone());
        drop(listening);
        Listener {
            changes: self.clone(),
            number,
            queue,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Listening> {
        self.inner.listening.lock()
    }
}

/// A registered subscription.
pub(in crate::server) struct Listener {
    changes: Changes,
    number: u64,
    pub(in crate::server) queue: Arc<ChangeQueue>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.changes.lock().queues.remove(&self.number);
    }
}
