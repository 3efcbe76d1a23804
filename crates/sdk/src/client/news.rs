//! What servers tell by themselves, and who wants to know.

use std::sync::{Arc, OnceLock, Weak};

use belay_protocol::jsonrpc::Notification;

use super::cache::Shelf;
use super::inbox::Inbox;
use crate::sync::Mutex;

/// Whoever wants to know of a client's notifications. There is one for all its connections.
#[derive(Default)]
pub(crate) struct News {
    shelf: OnceLock<Shelf>,
    /// Those who listen in the legacy era, where nobody has to be asked.
    inboxes: Mutex<Vec<Weak<Inbox>>>,
    /// Held while a server is told what is wanted, or not any more.
    order: tokio::sync::Mutex<()>,
}

impl News {
    /// What was kept is not good any more when something changes.
    pub(super) fn tell_shelf(&self, shelf: &Shelf) {
        let _ = self.shelf.set(shelf.clone());
    }

    /// Something was told.
    pub(super) fn heard(&self, notification: &Notification) {
        self.changed(notification);
        let inboxes = self.inboxes.lock();
        let inboxes: Vec<Arc<Inbox>> = inboxes.iter().filter_map(Weak::upgrade).collect();
        for inbox in inboxes {
            inbox.put(notification);
        }
    }

    /// Something was told on a stream of its own.
    pub(super) fn changed(&self, notification: &Notification) {
        if let Some(shelf) = self.shelf.get() {
            shelf.heard(notification);
        }
    }

    /// Something may have been told while nobody listened.
    pub(super) fn missed(&self) {
        if let Some(shelf) = self.shelf.get() {
            shelf.clear();
        }
    }

    /// Waits until nobody else tells the server what is wanted.
    pub(super) async fn in_order(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.order.lock().await
    }

    /// Somebody listens, as long as the inbox is there.
    pub(super) fn listen(&self, inbox: &Arc<Inbox>) {
        let mut inboxes = self.inboxes.lock();
        let inbox = Arc::downgrade(inbox);
        inboxes.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&inbox));
        inboxes.push(inbox);
    }

    /// Whether somebody wants to know of a resource.
    pub(super) fn is_wanted(&self, uri: &str) -> bool {
        let inboxes = self.inboxes.lock();
        let mut listening = inboxes.iter().filter_map(Weak::upgrade);
        listening.any(|inbox| inbox.is_about(uri))
    }

    /// Somebody does not listen any more. Gives the resources that nobody else wants to know of.
    pub(super) fn given_up<'a>(&self, inbox: &Arc<Inbox>, uris: &'a [String]) -> Vec<&'a str> {
        let mut inboxes = self.inboxes.lock();
        inboxes.retain(|known| !std::ptr::eq(known.as_ptr(), Arc::as_ptr(inbox)));
        let left: Vec<Arc<Inbox>> = inboxes.iter().filter_map(Weak::upgrade).collect();
        let wanted = |uri: &&String| left.iter().any(|inbox| inbox.is_about(uri));
        let unwanted = uris.iter().filter(|uri| !wanted(uri));
        unwanted.map(String::as_str).collect()
    }
}
