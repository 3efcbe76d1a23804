//! Drives one engine: here the rules meet time, tasks and I/O.
//!
//! [`Link`] is shared by callers, handlers and the driver. It holds the engine under a lock that
//! is never held across an `await`. Only the driver ([`run::drive`]) takes events out, apart from
//! two shortcuts in `ports.rs`, so they are acted on in order. All other tasks pass something to
//! the engine and wake the driver.
//!
//! All tasks are spawned through one tracker. The engine decides when a handler stops; here its
//! token is cancelled and its future dropped.

mod dispatch;
mod exchange_handle;
mod handlers;
mod io;
mod output;
mod ports;
mod run;
mod runner;
mod shares;
mod stats;
mod stop;
mod waiter;
mod watchdog;

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use belay_protocol::engine::{
    self as engine, Ask, CallId, Config, Connected, ExchangeId, Ledger, Loss, LossKind, Mode,
    Outcome, RequestKey, Role, Sent, Shutdown, Time, Wire,
};
use belay_protocol::jsonrpc::RawJson;
use belay_protocol::types::ProtocolVersion;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

pub(crate) use exchange_handle::ExchangeHandle;
#[cfg(all(feature = "http", feature = "server"))]
pub(crate) use exchange_handle::Last;
pub use handlers::LayerFuture;
#[cfg(feature = "server")]
pub(crate) use handlers::Presence;
pub(crate) use handlers::{
    Answer, App, BoxFuture, Handling, Notified, Payload, fence, fenced, pass_on,
};
pub use io::Direction;
pub(crate) use io::Tap;
pub(crate) use ports::ExchangeStep;
pub(crate) use run::{Driven, Ends, Process, Until, drive_exchanges, drive_exchanges_with, launch};
#[cfg(feature = "server")]
pub(crate) use shares::FREE;
pub(crate) use shares::{Peer, Permit, Pool, Pools};
pub(crate) use stats::{BUCKETS, CAUSES, Stats};
pub(crate) use stop::StopToken;
pub(crate) use waiter::{OnNotice, OnProgress, Told, Waiter};

use crate::Principal;
use crate::sync::{Mutex, MutexGuard, count_task};
use handlers::Running;
use ports::{Port, Routed};
use runner::Work;

pub(crate) const LINK: ExchangeId = ExchangeId::LINK;

/// Starts to carry an exchange that this side opens.
pub(crate) type Opener = Box<dyn Fn(ExchangeHandle) + Send + Sync>;

/// Why a call was cancelled, if its caller gave a reason.
pub(crate) type Reason = Option<String>;

/// One connection, shared by everything that uses it.
pub(crate) struct Link {
    state: Mutex<State>,
    /// Wakes the driver.
    wake: Notify,
    /// The driver is to be woken when the handler that is being polled has yielded.
    deferred: AtomicBool,
    /// The handlers that wait to run, and the results of those that ran.
    work: Mutex<Work>,
    /// There are results of handlers.
    has_ended: AtomicBool,
    /// The task that drives the link also polls handlers for the first time.
    runs_inline: bool,
    /// Messages are sent as POSTs, for which this side opens exchanges.
    posts: bool,
    /// Opens exchanges; set by the driver.
    opener: OnceLock<Opener>,
    /// The runner is kept for as long as the connection.
    keeps_runner: bool,
    /// The application; set by the driver. Weak, because it may refer to this link.
    app: OnceLock<Weak<dyn App>>,
    /// Notified when frames were written or withdrawn, so that there may be room for more, and when
    /// tasks that wait for room should stop.
    room: Notify,
    /// Why the link is closed, and a notification for the tasks that wait for that.
    closed: OnceLock<Closed>,
    closing: Notify,
    /// Every task of this link except the driver's own.
    tasks: TaskTracker,
    /// The peer whose shares the link uses.
    peer: Arc<Peer>,
    /// Whether waiting output counts against the peer's share.
    weighs_output: bool,
    /// The limit on handlers of the underlying connection, in addition to the engine's own limit.
    connection: Option<Arc<Semaphore>>,
    stats: Arc<Stats>,
    principal: Option<Principal>,
    origin: Instant,
}

/// What a link shares with others of the same server.
#[derive(Default)]
pub(crate) struct Surroundings {
    /// The tracker of its tasks.
    pub(crate) tasks: TaskTracker,
    /// The task that drives the link also polls handlers first: it is the link of a single request.
    pub(crate) runs_inline: bool,
    /// The peer whose shares it uses. By default it has limits of its own.
    pub(crate) peer: Option<Arc<Peer>>,
    /// The limit on handlers of the underlying connection.
    pub(crate) connection: Option<Arc<Semaphore>>,
    /// The counters of stopped handlers.
    pub(crate) stats: Arc<Stats>,
    /// The authenticated principal, if there is one.
    pub(crate) principal: Option<Principal>,
}

/// Why a link is closed.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub(crate) cause: Loss,
}

/// The engine. The data of calls, handlers and exchanges is kept in its tables, so that
/// it is removed when they end.
type Engine = engine::Engine<Option<Arc<Waiter>>, Option<Running>, Port>;

struct State {
    engine: Engine,
    connecting: Option<oneshot::Sender<Result<Connected, Outcome>>>,
    /// Exchanges that this side has to open, unless they have ended meanwhile.
    unopened: Vec<ExchangeId>,
    /// The permit for waiting output, where that is counted.
    output: Option<Permit>,
    /// When the driver wakes up by itself.
    awaited: Option<Time>,
    /// The link belongs to a single POST, and is driven until nothing goes on.
    is_post: bool,
    /// The driver is acting on events that it has taken out.
    is_acting: bool,
}

impl Link {
    pub(crate) fn new(config: impl Into<Arc<Config>>) -> Arc<Self> {
        Self::within(config, Surroundings::default())
    }

    /// One of many links of a server.
    pub(crate) fn within(config: impl Into<Arc<Config>>, surroundings: Surroundings) -> Arc<Self> {
        let config = config.into();
        let peer = surroundings.peer.unwrap_or_else(|| own_peer(&config));
        // The engine bounds the output on a pipe, which also has backpressure.
        let weighs_output = config.role() == Role::Server && config.wire != Wire::Pipe;
        let keeps_runner = config.role() == Role::Server;
        let posts = config.role() == Role::Client && config.wire != Wire::Pipe;
        Arc::new(Self {
            state: Mutex::new(State {
                engine: Engine::carrying(config),
                connecting: None,
                unopened: Vec::new(),
                output: weighs_output.then(|| peer.begin(Pool::Bytes)),
                awaited: None,
                is_post: surroundings.runs_inline,
                is_acting: false,
            }),
            wake: Notify::new(),
            deferred: AtomicBool::new(false),
            work: Mutex::default(),
            has_ended: AtomicBool::new(false),
            runs_inline: surroundings.runs_inline,
            posts,
            opener: OnceLock::new(),
            keeps_runner,
            app: OnceLock::new(),
            room: Notify::new(),
            closed: OnceLock::new(),
            closing: Notify::new(),
            tasks: surroundings.tasks,
            peer,
            weighs_output,
            connection: surroundings.connection,
            stats: surroundings.stats,
            principal: surroundings.principal,
            origin: Instant::now(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn now(&self) -> Time {
        Time::after(self.origin.elapsed())
    }

    /// Wakes the driver. While a handler of this link is being polled on this thread, that is
    /// deferred until it has yielded: see `watchdog.rs`.
    fn wake_driver(&self) {
        match watchdog::is_polled_here(self) {
            true => self.deferred.store(true, Ordering::SeqCst),
            false => self.wake.notify_one(),
        }
    }

    /// Passes something to the engine, and wakes the tasks that have something to do then.
    fn tell<T>(&self, tell: impl FnOnce(&mut Engine, Time) -> T) -> T {
        let (told, routed) = {
            let mut state = self.lock();
            let now = self.now();
            let told = tell(&mut state.engine, now);
            (told, state.route())
        };
        self.wake(routed);
        told
    }

    /// Wakes the tasks that have something to do. Called outside of the lock.
    fn wake(&self, routed: Routed) {
        if let Some(carrier) = routed.carrier {
            carrier.wake();
        }
        match routed.driver {
            true => self.wake_driver(),
            // Frames may have been withdrawn. Otherwise the driver notifies at the end of its turn.
            false => self.room.notify_waiters(),
        }
    }

    /// Begins the handshake. This is called before the link is driven, because the driver may lose
    /// the connection and end before this is called.
    pub(crate) fn connect(&self, mode: Mode) -> oneshot::Receiver<Result<Connected, Outcome>> {
        let (done, connected) = oneshot::channel();
        let mut state = self.lock();
        let now = self.now();
        state.connecting = Some(done);
        state.engine.connect(now, mode);
        // The link has no driver yet.
        let _ = state.route();
        connected
    }

    /// Begins a call, unless it ends at once. Its outcome goes to `waiter`.
    ///
    /// A call that was cancelled before it began ends here, and is never written.
    pub(crate) fn begin(
        self: &Arc<Self>,
        ask: Ask,
        waiter: &Arc<Waiter>,
        cancelled: Option<&Reason>,
    ) -> Result<CallId, Outcome> {
        let (id, opened, routed) = {
            let mut state = self.lock();
            let (state, now) = (&mut *state, self.now());
            let id = state.engine.request(now, ask)?;
            if let Some(caller) = state.engine.call_mut(id) {
                *caller = Some(waiter.clone());
            }
            if let Some(reason) = cancelled {
                state.engine.cancel(now, id, reason.as_deref());
            }
            let mut routed = state.route();
            let opened = match self.opener() {
                // Only if no other exchange waits to be opened, so that earlier
                // messages are sent first.
                Some(open) if state.unopened.len() == 1 => {
                    state.open_last(self).map(|handle| (open, handle))
                }
                _ => None,
            };
            routed.driver &= opened.is_none() || state.is_driver_needed();
            (id, opened, routed)
        };
        self.wake(routed);
        if let Some((open, handle)) = opened {
            open(handle);
        }
        Ok(id)
    }

    /// Cancels a call. Returns at once, whatever the state of the connection
    /// (**cancel-never-waits**).
    pub(crate) fn cancel(&self, call: CallId, reason: Option<&str>) {
        self.tell(|engine, now| engine.cancel(now, call, reason));
        self.room.notify_waiters();
    }

    /// The opener, to open the exchange of a call at once, without a turn of the driver. `None`
    /// while a handler is being polled, which may not yield for long: see `watchdog.rs`.
    fn opener(&self) -> Option<&Opener> {
        let opener = self.opener.get()?;
        (!watchdog::is_polled_here(self)).then_some(opener)
    }

    /// Whether messages are sent as POSTs.
    pub(crate) fn posts(&self) -> bool {
        self.posts
    }

    /// Whether a call in flight was sent.
    pub(crate) fn sent(&self, call: CallId) -> Option<Sent> {
        self.lock().engine.sent(call)
    }

    /// Spawns a task of this link.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        count_task();
        self.tasks.spawn(task);
    }

    /// Waits until every task of this link has been dropped, with its destructors: what a
    /// handler cleans up must be cleaned up before the process ends. A task that never yields is
    /// waited for no longer than `span`.
    async fn tasks_gone(&self, span: Duration) {
        self.tasks.close();
        let _ = tokio::time::timeout(span, self.tasks.wait()).await;
    }

    /// Whether a task is left that cannot be dropped, because it never yields.
    #[cfg(all(feature = "stdio", feature = "server", unix))]
    pub(crate) fn is_stuck(&self) -> bool {
        !self.tasks.is_empty()
    }

    pub(crate) fn introduction(&self) -> Option<RawJson> {
        self.lock().engine.introduction().cloned()
    }

    /// The protocol version for the headers of POSTs.
    pub(crate) fn agreed_version(&self) -> Option<ProtocolVersion> {
        self.lock().engine.agreed_version()
    }

    pub(crate) fn version(&self) -> Option<ProtocolVersion> {
        self.lock().engine.version()
    }

    pub(crate) fn grant_grace(&self, key: RequestKey, grace: Option<Duration>) {
        self.lock().engine.grant_grace(key, grace);
    }

    pub(crate) fn set_deadline(&self, key: RequestKey, after: Duration, answer: RawJson) {
        self.tell(|engine, now| engine.set_deadline(now, key, after, answer));
    }

    pub(crate) fn shutdown(&self, how: Shutdown) {
        self.tell(|engine, now| engine.shutdown(now, how));
    }

    /// The limits on received messages: bytes, and nesting depth.
    pub(crate) fn reading_limits(&self) -> (usize, usize) {
        let state = self.lock();
        let limits = &state.engine.config().limits;
        (limits.received_bytes, limits.depth)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.lock().engine.ledger().clone()
    }

    pub(crate) fn handlers(&self) -> usize {
        self.lock().engine.handlers()
    }

    /// Waits until the link is closed, and returns why.
    pub(crate) async fn closed(&self) -> Closed {
        loop {
            // Registered first, checked second, so that no notification is missed.
            let mut closing = std::pin::pin!(self.closing.notified());
            closing.as_mut().enable();
            if let Some(closed) = self.closed.get() {
                return closed.clone();
            }
            closing.await;
        }
    }

    /// Reports that the whole connection is lost.
    pub(crate) fn lose(&self, cause: Loss) {
        self.tell(|engine, now| engine.handle_link_lost(now, cause));
        self.room.notify_waiters();
    }

    /// Whether the server has forgotten the session.
    pub(crate) fn session_is_gone(&self) -> bool {
        self.closed_because().kind == LossKind::SessionGone
    }

    /// The authenticated principal, if there is one.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// The peer whose shares the link uses.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Releases the memory that an idle link does not need.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn shrink(&self) {
        let mut state = self.lock();
        state.engine.shrink();
        state.unopened.shrink_to_fit();
        drop(state);
        self.work.lock().shrink();
    }

    /// The tracker of this link's tasks.
    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    #[cfg(feature = "client")]
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().engine.closed_because().is_some()
    }

    pub(crate) fn closed_because(&self) -> Loss {
        let cause = self.lock().engine.closed_because();
        cause.unwrap_or(LossKind::ClosedByUs.into())
    }

    /// Sends a notification that is not awaited, if there is room.
    #[cfg(feature = "client")]
    pub(crate) fn notify_now(&self, method: &str) {
        if let Err(error) = self.tell(|engine, now| engine.notify(now, None, method, None)) {
            tracing::debug!(%error, method, "a notification was not sent");
        }
    }

    /// The outcome of a call without a driver: its runtime was shut down.
    pub(crate) fn lost(&self) -> Outcome {
        Outcome::Lost {
            cause: self.closed_because(),
            sent: Sent::Maybe,
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

/// The pools of a link that shares them with no other. The engine limits handlers
/// and subscriptions itself.
fn own_peer(config: &Config) -> Arc<Peer> {
    let limits = &config.limits;
    let pools = Pools::new(|pool| match pool {
        Pool::Bytes => limits.kept_bytes,
        Pool::Blocking => limits.blocking,
        _ => usize::MAX,
    });
    pools.only_peer()
}
