//! Distribution of a server's notifications to the cache and to subscriptions.

use std::sync::{Arc, OnceLock, Weak};

use belay_protocol::jsonrpc::Notification;

use super::queue::ChangeQueue;
use crate::client::cache::Shelf;
use crate::sync::Mutex;

/// Where a client's notifications go. It is shared by all connections of the client.
#[derive(Default)]
pub(crate) struct ChangeHub {
    shelf: OnceLock<Shelf>,
    /// The subscriptions of a legacy connection, where all notifications arrive on the one link.
    queues: Mutex<Vec<Weak<ChangeQueue>>>,
    /// Held while a resource is subscribed or unsubscribed, so that the two cannot
    /// overtake each other.
    order: tokio::sync::Mutex<()>,
}

impl ChangeHub {
    /// Sets the cache that change notifications invalidate.
    pub(in crate::client) fn set_cache(&self, shelf: &Shelf) {
        let _ = self.shelf.set(shelf.clone());
    }

    /// A notification arrived on the link: it goes to the cache and to every queue.
    pub(in crate::client) fn notified(&self, notification: &Notification) {
        self.changed(notification);
        let queues = self.queues.lock();
        let queues: Vec<Arc<ChangeQueue>> = queues.iter().filter_map(Weak::upgrade).collect();
        for queue in queues {
            queue.put(notification);
        }
    }

    /// A notification arrived on a subscription's own stream: only the cache is informed here.
    pub(in crate::client) fn changed(&self, notification: &Notification) {
        if let Some(shelf) = self.shelf.get() {
            shelf.notified(notification);
        }
    }

    /// Notifications may have been missed, so the cache is emptied.
    pub(in crate::client) fn missed(&self) {
        if let Some(shelf) = self.shelf.get() {
            shelf.clear();
        }
    }

    /// Waits for the turn to subscribe or unsubscribe.
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

    /// Whether any subscription includes this resource.
    pub(in crate::client) fn is_wanted(&self, uri: &str) -> bool {
        let queues = self.queues.lock();
        let mut listening = queues.iter().filter_map(Weak::upgrade);
        listening.any(|queue| queue.is_about(uri))
    }

    /// Removes a queue. Returns those of its resources that no other subscription includes.
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
