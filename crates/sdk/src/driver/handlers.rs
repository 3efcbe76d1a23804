//! Runs handlers, and stops them when the engine says so.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock, Weak};

use belay_protocol::engine::{Incoming, RequestKey, StopCause};
use belay_protocol::jsonrpc::{ErrorObject, Notification, RawJson, ResultFrame};
use belay_protocol::types::error_code;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{Link, Permit, Pool, StopToken};
use crate::sync::count_task;

/// What a handler answers.
pub(crate) type Answer = Result<Payload, ErrorObject>;

/// A result.
pub(crate) enum Payload {
    Json(RawJson),
    /// Written where it leaves.
    Frame(ResultFrame),
}

impl Payload {
    /// The result alone, for whoever looks at it on its way.
    pub(crate) fn into_json(self) -> RawJson {
        match self {
            Self::Json(json) => json,
            Self::Frame(frame) => frame.result(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(json) => json.as_bytes().len(),
            Self::Frame(frame) => frame.result_len(),
        }
    }
}

/// A future that can be sent and stored.
pub(crate) type BoxFuture<T> = LayerFuture<'static, T>;

/// What a layer gives back: a future that can be sent, and may borrow.
pub type LayerFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a link serves: the other side's requests and notifications.
pub(crate) trait App: Send + Sync {
    /// A handler for a request. It runs in a task of its own.
    fn handle(&self, request: Request) -> BoxFuture<Answer>;

    /// A notification has come. They come in order, so this must not take long.
    fn notified(&self, notification: Notification);
}

/// Is told of notifications.
pub(crate) type Notified = Arc<dyn Fn(Notification) + Send + Sync>;

/// Tells whoever wants to know, if somebody does.
pub(crate) fn pass_on(notified: Option<&Notified>, notification: Notification) {
    match notified {
        Some(told) => told(notification),
        None => tracing::debug!(method = %notification.method, "a notification was passed over"),
    }
}

/// A request of the peer's, for its handler.
pub(crate) struct Request {
    pub(crate) incoming: Incoming,
    pub(crate) link: Arc<Link>,
    pub(crate) stop: StopToken,
    /// What keeps the handler counted. A blocking handler takes it along to its thread.
    pub(crate) presence: Weak<Presence>,
}

/// A handler that exists.
pub(super) struct Running {
    stop: StopToken,
    task: Option<AbortHandle>,
    /// When it was told to stop.
    told: Option<Instant>,
    /// It was dropped, and is still there.
    overrun: bool,
    /// It runs on a thread of its own.
    blocks: bool,
    /// What it takes to run, given back when it is gone; or, if it blocks, when it is dropped: what
    /// cannot be stopped must not keep others from starting.
    admitted: Admitted,
}

/// The places that a handler has: its peer's, and its connection's.
type Admitted = (Option<Permit>, Option<OwnedSemaphorePermit>);

/// As long as this exists, so does the handler. When it goes, the engine is told.
pub(crate) struct Presence {
    link: Arc<Link>,
    key: RequestKey,
    /// Given back when it is gone.
    permit: OnceLock<OwnedSemaphorePermit>,
    /// The same for the thread of one that blocks.
    thread: OnceLock<Permit>,
}

impl Presence {
    pub(crate) fn hold(&self, permit: OwnedSemaphorePermit) {
        let _ = self.permit.set(permit);
    }

    /// From now on it is a thread of its own, if there may be one more. It counts as one until it is
    /// gone.
    pub(crate) fn blocks(&self) -> bool {
        let Some(thread) = self.link.peer.take(Pool::Blocking, 1) else {
            return false;
        };
        let _ = self.thread.set(thread);
        let mut state = self.link.lock();
        state.engine.handler_blocks(self.key);
        if let Some(running) = state.running.get_mut(&self.key) {
            running.blocks = true;
        }
        true
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let running = self.link.lock().running.remove(&self.key);
        if let Some(running) = running {
            let stats = &self.link.stats;
            if let Some(told) = running.told {
                stats.stopped(told.elapsed());
            }
            if running.overrun {
                stats.overruns(false);
            }
        }
        // After an answer this changes nothing; without one it is the answer (**panic-fence**).
        self.link
            .tell(|engine, now| engine.handler_gone(now, self.key));
    }
}

impl Link {
    /// Starts a handler.
    pub(super) fn start(self: &Arc<Self>, app: &Arc<dyn App>, incoming: Incoming) {
        let key = incoming.key;
        let Some(admitted) = self.admit(&incoming) else {
            let problem = "overloaded: too many requests of this kind; send it again later";
            let error = ErrorObject::new(error_code::OVERLOADED, problem);
            return self.tell(|engine, now| engine.respond(now, key, Err(error)));
        };
        let stop = StopToken::default();
        let presence = Arc::new(Presence {
            link: self.clone(),
            key,
            permit: OnceLock::new(),
            thread: OnceLock::new(),
        });
        let running = Running {
            stop: stop.clone(),
            task: None,
            told: None,
            overrun: false,
            blocks: false,
            admitted,
        };
        self.lock().running.insert(key, running);
        let method = incoming.method.clone();
        let request = Request {
            incoming,
            link: self.clone(),
            stop,
            presence: Arc::downgrade(&presence),
        };
        let link = self.clone();
        let app = app.clone();
        count_task();
        let task = self.tasks.spawn(async move {
            let handled = fence(move || app.handle(request)).await;
            match handled {
                Ok(answer) => link.respond(key, answer),
                Err(panic) => {
                    let panic = message(&*panic);
                    tracing::error!(%method, panic, "a handler panicked (panic-fence)");
                }
            }
            drop(presence);
        });
        // It may be over by now.
        if let Some(running) = self.lock().running.get_mut(&key) {
            running.task = Some(task.abort_handle());
        }
    }

    /// Whether one handler more may run; with what it has to give back.
    fn admit(&self, incoming: &Incoming) -> Option<Admitted> {
        if incoming.is_listen() {
            return Some((Some(self.peer.take(Pool::Listens, 1)?), None));
        }
        let peer = self.peer.take(Pool::Handlers, 1)?;
        let connection = match &self.connection {
            Some(connection) => Some(connection.clone().try_acquire_owned().ok()?),
            None => None,
        };
        Some((Some(peer), connection))
    }

    /// Fires a handler's token.
    pub(super) fn fire(&self, key: RequestKey, cause: StopCause) {
        let mut state = self.lock();
        let stop = state.running.get_mut(&key).map(|running| {
            running.told.get_or_insert_with(Instant::now);
            running.stop.clone()
        });
        drop(state);
        if let Some(stop) = stop {
            self.stats.stopping(&cause);
            tracing::debug!(?cause, "a handler is stopped (stop-is-real)");
            stop.fire(cause);
            // It may be waiting for room to say something. There is nothing more to say.
            self.room.notify_waiters();
        }
    }

    /// Drops a handler's future at its next await.
    pub(super) fn abort(&self, key: RequestKey) {
        let mut state = self.lock();
        let mut given_back = Admitted::default();
        let task = state.running.get_mut(&key).and_then(|running| {
            if !std::mem::replace(&mut running.overrun, true) {
                self.stats.overruns(true);
            }
            if running.blocks {
                given_back = std::mem::take(&mut running.admitted);
            }
            running.task.clone()
        });
        drop(state);
        drop(given_back);
        if let Some(task) = task {
            task.abort();
        }
    }
}

/// Runs a future behind a fence that its panics do not pass (**panic-fence**).
pub(crate) async fn fence<T>(
    make: impl FnOnce() -> BoxFuture<T>,
) -> Result<T, Box<dyn Any + Send>> {
    let future = catch_unwind(AssertUnwindSafe(make))?;
    let mut future = pin!(future);
    std::future::poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        },
    )
    .await
}

/// Runs a callback behind the same fence. `None` if it panicked.
pub(crate) fn fenced<T>(callback: &str, run: impl FnOnce() -> T) -> Option<T> {
    let ran = catch_unwind(AssertUnwindSafe(run));
    ran.inspect_err(|panic| {
        let panic = message(&**panic);
        tracing::error!(callback, panic, "a callback panicked (panic-fence)");
    })
    .ok()
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    let string = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(string).unwrap_or("something that is no text")
}
