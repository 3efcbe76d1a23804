//! Runs handlers, and stops them when the engine says so.

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
    /// A handler for a request. It may answer when it is first polled; else it gets a task of its own.
    fn handle(&self, context: Context) -> BoxFuture<Answer>;

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

/// A handler, as its context, the driver and whoever runs it see it.
#[derive(Debug, Default)]
pub(crate) struct Handling {
    pub(crate) stop: StopToken,
    /// How many [`Presence`]s there are.
    present: AtomicUsize,
    aborted: AtomicBool,
    /// Given back when it is gone.
    held: OnceLock<Mutex<Option<OwnedSemaphorePermit>>>,
    /// The same for the thread of one that blocks.
    thread: OnceLock<Mutex<Option<Permit>>>,
}

impl Handling {
    /// Whether its time was over before it ran.
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
    /// When it was told to stop.
    told: Option<Instant>,
    /// It was dropped, and is still there.
    pub(super) overrun: bool,
    /// It runs on a thread of its own.
    blocks: bool,
    /// What it takes to run, given back when it is gone; or, if it blocks, when it is dropped: what
    /// cannot be stopped must not keep others from starting.
    admitted: Admitted,
}

/// The places that a handler has: its peer's, and its connection's.
pub(super) type Admitted = (Option<Permit>, Option<OwnedSemaphorePermit>);

/// As long as one of these exists, so does the handler. When the last is gone, the engine is told.
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

    /// One more, if the handler still exists. A blocking handler takes it along to its thread.
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

    /// From now on it is a thread of its own, if there may be one more. It counts as one until it is
    /// gone.
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

    /// Whether this was the last, for whoever tells the engine itself.
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

/// What is kept for a handler that exists.
pub(super) fn running(engine: &mut Engine, key: RequestKey) -> Option<&mut Running> {
    engine.handler_mut(key)?.as_mut()
}

impl State {
    /// A handler is to start, if one more may run.
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

    /// What is to be fired when a handler is told to stop.
    pub(super) fn fires(&mut self, key: RequestKey) -> Option<Context> {
        let running = running(&mut self.engine, key)?;
        running.told.get_or_insert_with(Instant::now);
        Some(running.context.clone())
    }

    /// What is to be dropped when the time of a handler is over: its task, and the places of one that
    /// blocks.
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

    /// A handler has ended. What is given back is to be dropped outside the lock: it is not ours.
    #[must_use = "to be dropped outside the lock"]
    pub(super) fn handler_ended(
        &mut self,
        link: &Link,
        now: Time,
        ended: Ended,
    ) -> Option<Running> {
        let key = ended.key;
        // A thread of it can go on after its answer: with questions, and it has not heard yet.
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
    /// Whether one handler more may run; with what it has to give back.
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

    /// Fires a handler's token.
    pub(super) fn fire(&self, context: &Context, cause: StopCause) {
        self.stats.stopping(&cause);
        tracing::debug!(?cause, "a handler is stopped (stop-is-real)");
        context.handling().stop.fire(cause);
        // It may be waiting for room to say something. There is nothing more to say.
        self.room.notify_waiters();
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
