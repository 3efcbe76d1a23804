//! What a legacy client has said once and for all: a modern one says it with each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use belay_protocol::jsonrpc::RawJson;
use belay_protocol::types::{
    LoggingLevel, Notification as _, PromptListChangedParams, ResourceListChangedParams,
    ResourceUpdatedParams, ToolListChangedParams,
};
use tokio::runtime::Handle;

use super::queue::{Change, ChangeQueue, Full, List};
use crate::driver::{Link, Peer};
use crate::sync::Mutex;

/// What the client of one link wants.
pub(crate) struct LegacySession {
    level: Mutex<LoggingLevel>,
    changes: ChangeQueue,
    /// Somebody is telling them.
    telling: AtomicBool,
}

impl Default for LegacySession {
    fn default() -> Self {
        Self {
            // Whoever wants more, or less, says so.
            level: Mutex::new(LoggingLevel::Info),
            changes: ChangeQueue::for_lists(),
            telling: AtomicBool::new(false),
        }
    }
}

impl LegacySession {
    /// From which level on it wants log messages.
    pub(crate) fn level(&self) -> LoggingLevel {
        *self.level.lock()
    }

    pub(in crate::server) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock() = level;
    }

    /// Wants to know of a resource, unless these are too many.
    pub(in crate::server) fn subscribe(
        &self,
        uri: &str,
        most: usize,
        peer: &Arc<Peer>,
    ) -> Result<(), Full> {
        self.changes.subscribe(uri, most, peer)
    }

    pub(in crate::server) fn unsubscribe(&self, uri: &str) {
        self.changes.unsubscribe(uri);
    }

    /// Tells it, as soon as somebody listens and there is room.
    pub(in crate::server) fn tell(
        self: &Arc<Self>,
        link: &Arc<Link>,
        change: &Change,
        runtime: &Handle,
    ) {
        if self.changes.put(change) {
            self.tell_all(link, runtime);
        }
    }

    /// Tells what waits. While nobody listens it waits here, where each thing waits once.
    pub(in crate::server) fn tell_all(self: &Arc<Self>, link: &Arc<Link>, runtime: &Handle) {
        if !link.is_heard() || self.telling.swap(true, Ordering::SeqCst) {
            return;
        }
        let telling = Telling(self.clone(), true);
        let weak = Arc::downgrade(link);
        let tell = async move {
            // All of it, so that it is dropped here.
            let mut telling = telling;
            let session = telling.0.clone();
            loop {
                while let Some(link) = weak.upgrade().filter(|link| link.is_heard())
                    && let Some(change) = session.changes.take()
                {
                    let (method, params) = notification(&change);
                    if let Err(error) = link.notify(None, method, params.as_ref()).await {
                        tracing::debug!(%error, method, "a change was not told");
                    }
                }
                telling.1 = false;
                session.telling.store(false, Ordering::SeqCst);
                let heard = weak.upgrade().is_some_and(|link| link.is_heard());
                // Something may have come between the last look and this.
                if !heard
                    || session.changes.is_empty()
                    || session.telling.swap(true, Ordering::SeqCst)
                {
                    return;
                }
                telling.1 = true;
            }
        };
        link.tasks().spawn_on(tell, runtime);
    }
}

/// Somebody who tells. If it is dropped before its end, somebody else may.
struct Telling(Arc<LegacySession>, bool);

impl Drop for Telling {
    fn drop(&mut self) {
        if self.1 {
            self.0.telling.store(false, Ordering::SeqCst);
        }
    }
}

/// Change as they are told.
pub(in crate::server) fn notification(change: &Change) -> (&'static str, Option<RawJson>) {
    match change {
        Change::Listed(List::Tools) => (ToolListChangedParams::METHOD, None),
        Change::Listed(List::Prompts) => (PromptListChangedParams::METHOD, None),
        Change::Listed(List::Resources) => (ResourceListChangedParams::METHOD, None),
        Change::Updated(uri) => {
            let params = RawJson::encode(&ResourceUpdatedParams::new(uri.clone()));
            (ResourceUpdatedParams::METHOD, params.ok())
        }
    }
}
