//! The handlers of a link, and how they are stopped when the engine says so.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use belay_protocol::engine::{Incoming, RequestKey, StopCause, Time};
use belay_protocol::jsonrpc::{ErrorObject, Notification, RawJson, ResultFrame};
use belay_protocol::types::error_code;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::runner::Ended;
use super::{Engine, Link, Permit, Pool, State, StopToken};
use crate::context::Context;
use crate::sync::Mutex;

/// The result of a handler.
pub(crate) type Answer = Result<Payload, ErrorObject>;

/// A result, encoded or not.
pub(crate) enum Payload {
    Json(RawJson),
    /// Encoded when it is queued.
    Frame(ResultFrame),
}

impl Payload {
    /// The result as JSON, for layers that inspect it.
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

/// A boxed future that is `Send` and `'static`.
pub(crate) type BoxFuture<T> = LayerFuture<'static, T>;

/// The future that a layer returns: boxed, `Send`, and allowed to borrow.
pub type LayerFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Serves the peer's requests and notifications on a link.
pub(crate) trait App: Send + Sync {
    /// Starts a handler. If it is not ready when it is first polled, it gets a task of its own.
    fn handle(&self, context: Context) -> BoxFuture<Answer>;

    /// Handles a notification. Notifications are handled in order, so this must not block.
    fn notified(&self, notification: Notification);
}

/// A callback for notifications.
pub(crate) type Notified = Arc<dyn Fn(Notification) + Send + Sync>;

/// Passes a notification to the callback, if there is one.
pub(crate) fn pass_on(notified: Option<&Notified>, notification: Notification) {
    match notified {
        Some(told) => told(notification),
        None => tracing::debug!(method = %notification.method, "a notification was passed over"),
    }
}

/// The state of a handler that its context, the driver and the running task share.
#[derive(Debug, Default)]
pub(crate) struct Handling {
    pub(crate) stop: StopToken,
    /// The number of [`Presence`]s.
    present: AtomicUsize,
    aborted: AtomicBool,
    /// A permit that is released when the handler is gone.
    held: OnceLock<Mutex<Option<OwnedSemaphorePermit>>>,
    /// The permit for the thread of a blocking handler.
    thread: OnceLock<Mutex<Option<Permit>>>,
}

impl Handling {
    /// Whether the handler was aborted before it ran.
    pub(super) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::SeqCst)
    }

    /// Keeps a permit for as long as the handler exists.
    #[cfg(feature = "server")]
    pub(crate) fn hold(&self, permit: OwnedSemaphorePermit) {
        let _ = self.held.set(Mutex::new(Some(permit)));
    }
}

/// A handler that exists.
pub(super) struct Running {
    context: Context,
    pub(super) task: Option<AbortHandle>,
    /// When the handler was told to stop.
    told: Option<Instant>,
    /// It was aborted, and still exists.
    pub(super) overrun: bool,
    /// It runs on a thread of its own.
    blocks: bool,
    /// Its permits, which are released when it is gone. Those of a blocking handler are released
    /// when it is aborted, since it cannot be stopped and must not keep others from starting.
    admitted: Admitted,
}

/// The permits of a handler: from its peer's share, and from its connection.
pub(super) type Admitted = (Option<Permit>, Option<OwnedSemaphorePermit>);

/// The handler exists for as long as one of these does. When the last is dropped,
/// the engine is told.
pub(crate) struct Presence {
    context: Context,
    left: bool,
}

impl Presence {
    pub(super) fn new(context: Context) -> Self {
        context.handling().present.fetch_add(1, Ordering::SeqCst);
        let left = false;
        Self { context, left }
    }

    /// Another presence, if the handler still exists. A blocking handler takes it to its thread.
    #[cfg(feature = "server")]
    pub(crate) fn of(context: &Context) -> Option<Self> {
        let present = &context.handling().present;
        let one_more = |present: usize| (present > 0).then_some(present + 1);
        let was = present.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more);
        was.ok().map(|_| Self {
            context: context.clone(),
            left: false,
        })
    }

    /// Turns the handler into a blocking one, if another thread is allowed. It
    /// counts as one until it is gone.
    #[cfg(feature = "server")]
    pub(crate) fn blocks(&self) -> bool {
        let (link, key) = (self.context.link(), self.context.key());
        let Some(thread) = link.peer.take(Pool::Blocking, 1) else {
            return false;
        };
        let _ = self.context.handling().thread.set(Mutex::new(Some(thread)));
        let mut state = link.lock();
        state.engine.handler_blocks(key);
        if let Some(running) = running(&mut state.engine, key) {
            running.blocks = true;
        }
        true
    }

    /// Drops it without telling the engine. Returns whether it was the last.
    pub(super) fn leave(mut self) -> bool {
        self.left = true;
        self.is_last()
    }

    fn is_last(&self) -> bool {
        let handling = self.context.handling();
        let is_last = handling.present.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_last {
            let held = handling.held.get().and_then(|held| held.lock().take());
            let thread = handling
                .thread
                .get()
                .and_then(|thread| thread.lock().take());
            drop((held, thread));
        }
        is_last
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if !self.left && self.is_last() {
            // After an answer this changes nothing; without one it is the answer (**panic-fence**).
            self.context.link().handler_ended(Ended {
                key: self.context.key(),
                answer: None,
                presence: None,
            });
        }
    }
}

/// The state of a handler that exists.
pub(super) fn running(engine: &mut Engine, key: RequestKey) -> Option<&mut Running> {
    engine.handler_mut(key)?.as_mut()
}

impl State {
    /// Starts a handler, if its permits can be had.
    pub(super) fn admit(
        &mut self,
        link: &Arc<Link>,
        now: Time,
        incoming: Incoming,
    ) -> Option<Context> {
        let key = incoming.key;
        let Some(admitted) = link.admitted(&incoming) else {
            let problem = "overloaded: too many requests of this kind; send it again later";
            let error = ErrorObject::new(error_code::OVERLOADED, problem);
            self.engine.respond(now, key, Err(error));
            return None;
        };
        let context = Context::new(link.clone(), incoming);
        let running = Running {
            context: context.clone(),
            task: None,
            told: None,
            overrun: false,
            blocks: false,
            admitted,
        };
        if let Some(kept) = self.engine.handler_mut(key) {
            *kept = Some(running);
        }
        link.stats.handler_began();
        Some(context)
    }

    /// The context of a handler that is told to stop.
    pub(super) fn fires(&mut self, key: RequestKey) -> Option<Context> {
        let running = running(&mut self.engine, key)?;
        running.told.get_or_insert_with(Instant::now);
        Some(running.context.clone())
    }

    /// What must be dropped to abort a handler: its task, and the permits of a blocking one.
    pub(super) fn aborts(
        &mut self,
        link: &Link,
        key: RequestKey,
    ) -> Option<(Option<AbortHandle>, Admitted)> {
        let running = running(&mut self.engine, key)?;
        if !std::mem::replace(&mut running.overrun, true) {
            link.stats.overruns(true);
        }
        running
            .context
            .handling()
            .aborted
            .store(true, Ordering::SeqCst);
        let given_back = match running.blocks {
            true => std::mem::take(&mut running.admitted),
            false => Admitted::default(),
        };
        Some((running.task.clone(), given_back))
    }

    /// Records the end of a handler. The returned value holds user code, so it is
    /// dropped outside of the lock.
    #[must_use = "to be dropped outside the lock"]
    pub(super) fn handler_ended(
        &mut self,
        link: &Link,
        now: Time,
        ended: Ended,
    ) -> Option<Running> {
        let key = ended.key;
        // A thread of the handler may outlive the answer: the round has ended with questions, say,
        // and the thread has not noticed yet.
        let gone = ended.presence.is_none_or(Presence::leave);
        self.engine.handler_lingers(key, !gone);
        let kept = match ended.answer {
            Some(answer) => link.respond(&mut self.engine, now, key, answer),
            None => self.engine.handler_gone(now, key),
        };
        let running = kept.flatten()?;
        link.stats.handler_ended();
        if let Some(told) = running.told {
            link.stats.stopped(told.elapsed());
        }
        if running.overrun {
            link.stats.overruns(false);
        }
        Some(running)
    }
}

impl Link {
    /// The permits for another handler, if they can be had.
    fn admitted(&self, incoming: &Incoming) -> Option<Admitted> {
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

    /// Cancels a handler's token.
    pub(super) fn fire(&self, context: &Context, cause: StopCause) {
        self.stats.stopping(&cause);
        tracing::debug!(?cause, "a handler is stopped (stop-is-real)");
        context.handling().stop.fire(cause);
        // The handler may be waiting for room to send a notification, which it need
        // not send any more.
        self.room.notify_waiters();
    }
}

/// Runs a future, and catches its panics (**panic-fence**).
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

/// Runs a callback, and catches its panics. Returns `None` after a panic.
pub(crate) fn fenced<T>(callback: &str, run: impl FnOnce() -> T) -> Option<T> {
    let ran = catch_unwind(AssertUnwindSafe(run));
    ran.inspect_err(|panic| {
        let panic = panic_message(&**panic);
        tracing::error!(callback, panic, "a callback panicked (panic-fence)");
    })
    .ok()
}

pub(super) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    let string = || panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(string).unwrap_or("something that is no text")
}
