//! The settings of a legacy connection. A modern client sends them with each request instead.

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

/// The settings of the client of one link.
pub(crate) struct LegacySession {
    level: Mutex<LoggingLevel>,
    changes: ChangeQueue,
    /// Whether a task is sending notifications now.
    telling: AtomicBool,
}

impl Default for LegacySession {
    fn default() -> Self {
        Self {
            // The default until the client sends `logging/setLevel`.
            level: Mutex::new(LoggingLevel::Info),
            changes: ChangeQueue::for_lists(),
            telling: AtomicBool::new(false),
        }
    }
}

impl LegacySession {
    /// The minimum level of log messages.
    pub(crate) fn level(&self) -> LoggingLevel {
        *self.level.lock()
    }

    pub(in crate::server) fn set_level(&self, level: LoggingLevel) {
        *self.level.lock() = level;
    }

    /// Subscribes to a resource, unless there are too many.
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

    /// Queues a change, and sends it as soon as the client listens and there is room.
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

    /// Sends the queued changes. While the client does not listen they wait, each of them once.
    pub(in crate::server) fn tell_all(self: &Arc<Self>, link: &Arc<Link>, runtime: &Handle) {
        if !link.is_heard() || self.telling.swap(true, Ordering::SeqCst) {
            return;
        }
        let telling = Telling(self.clone(), true);
        let weak = Arc::downgrade(link);
        let tell = async move {
            // Captures the whole guard, so that it is dropped with this task.
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
                // A change may have been queued since the last look.
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

/// Marks that a task is sending. If the task is dropped early, another one may start.
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
