//! What servers tell by themselves, and who wants to know.

use std::sync::{Arc, OnceLock, Weak};

use belay_protocol::jsonrpc::Notification;

use super::queue::ChangeQueue;
use crate::client::cache::Shelf;
use crate::sync::Mutex;

/// Whoever wants to know of a client's notifications. There is one for all its connections.
#[derive(Default)]
pub(crate) struct ChangeHub {
    shelf: OnceLock<Shelf>,
    /// Those who listen in the legacy era, where nobody has to be asked.
    queues: Mutex<Vec<Weak<ChangeQueue>>>,
    /// Held while a server is told what is wanted, or not any more.
    order: tokio::sync::Mutex<()>,
}

impl ChangeHub {
    /// What was kept is not good any more when something changes.
    pub(in crate::client) fn set_cache(&self, shelf: &Shelf) {
        let _ = self.shelf.set(shelf.clone());
    }

    /// Something was told.
    pub(in crate::client) fn notified(&self, notification: &Notification) {
        self.changed(notification);
        let queues = self.queues.lock();
        let queues: Vec<Arc<ChangeQueue>> = queues.iter().filter_map(Weak::upgrade).collect();
        for queue in queues {
            queue.put(notification);
        }
    }

    /// Something was told on a stream of its own.
    pub(in crate::client) fn changed(&self, notification: &Notification) {
        if let Some(shelf) = self.shelf.get() {
            shelf.notified(notification);
        }
    }

    /// Something may have been told while nobody listened.
    pub(in crate::client) fn missed(&self) {
        if let Some(shelf) = self.shelf.get() {
            shelf.clear();
        }
    }

    /// Waits until nobody else tells the server what is wanted.
    pub(in crate::client) async fn in_order(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.order.lock().await
    }

    /// Somebody listens, as long as the queue is there.
    pub(in crate::client) fn add(&self, queue: &Arc<ChangeQueue>) {
        let mut queues = self.queues.lock();
        let queue = Arc::downgrade(queue);
        queues.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&queue));
        queues.push(queue);
    }

    /// Whether somebody wants to know of a resource.
    pub(in crate::client) fn is_wanted(&self, uri: &str) -> bool {
        let queues = self.queues.lock();
        let mut listening = queues.iter().filter_map(Weak::upgrade);
        listening.any(|queue| queue.is_about(uri))
    }

    /// Somebody does not listen any more. Gives the resources that nobody else wants to know of.
    pub(in crate::client) fn remove<'a>(
        &self,
        queue: &Arc<ChangeQueue>,
        uris: &'a [String],
    ) -> Vec<&'a str> {
        let mut queues = self.queues.lock();
        queues.retain(|known| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(queue)));
        let left: Vec<Arc<ChangeQueue>> = queues.iter().filter_map(Weak::upgrade).collect();
        let wanted = |uri: &&String| left.iter().any(|queue| queue.is_about(uri));
        let unwanted = uris.iter().filter(|uri| !wanted(uri));
        unwanted.map(String::as_str).collect()
    }
}
