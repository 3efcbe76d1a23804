//! Turns one engine: the place where time, tasks and I/O meet the rules.
//!
//! [`Link`] is what everybody holds: callers, handlers and the driver itself. It has the engine
//! under a lock that is never held across an `await`. The driver ([`run::drive`]) is the only one
//! that takes events out, so they are acted upon in order; everybody else tells the engine something
//! and wakes the driver.
//!
//! All tasks are spawned through one tracker. The engine decides when a handler stops; here its
//! token is fired and its future dropped.

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

/// Begins to carry an exchange that is ours to open.
pub(crate) type Opener = Box<dyn Fn(ExchangeHandle) + Send + Sync>;

/// Why a call was cancelled, if that was said.
pub(crate) type Reason = Option<String>;

/// One connection, shared by all who use it.
pub(crate) struct Link {
    state: Mutex<State>,
    /// The driver has something to do.
    wake: Notify,
    /// It is to be told so when the handler that is being polled has yielded.
    deferred: AtomicBool,
    /// Handlers that wait to be run, and what became of those that ran.
    work: Mutex<Work>,
    /// Something is there of those that ran.
    has_ended: AtomicBool,
    /// Handlers are first polled by whoever turns the link.
    runs_inline: bool,
    /// What it says is posted: it opens exchanges.
    posts: bool,
    /// Opens them, once there is a driver.
    opener: OnceLock<Opener>,
    /// There is one runner for as long as there is a connection.
    keeps_runner: bool,
    /// What is served, once there is a driver. It may know this link.
    app: OnceLock<Weak<dyn App>>,
    /// Something was written or withdrawn, so there may be room for more; or somebody who waits for
    /// room should stop.
    room: Notify,
    /// Why it is closed, once it is, and who waits to know.
    closed: OnceLock<Closed>,
    closing: Notify,
    /// Every task of this link but the driver's own.
    tasks: TaskTracker,
    /// Whose it is: what it takes is taken from this peer's shares.
    peer: Arc<Peer>,
    /// Whether what waits to be written counts as well.
    weighs_output: bool,
    /// How many handlers there may be on the connection that it is served on, beyond the engine's
    /// own limit.
    connection: Option<Arc<Semaphore>>,
    stats: Arc<Stats>,
    principal: Option<Principal>,
    origin: Instant,
}

/// What a link has in common with others, and whose it is.
#[derive(Default)]
pub(crate) struct Surroundings {
    /// What counts its tasks.
    pub(crate) tasks: TaskTracker,
    /// Handlers are first polled by whoever turns the link: it is the link of one request.
    pub(crate) runs_inline: bool,
    /// Whose it is; by default it has limits of its own.
    pub(crate) peer: Option<Arc<Peer>>,
    /// What limits the handlers of one connection.
    pub(crate) connection: Option<Arc<Semaphore>>,
    /// What counts how handlers were stopped.
    pub(crate) stats: Arc<Stats>,
    /// Who is at the other end, if that is known.
    pub(crate) principal: Option<Principal>,
}

/// Why a link is closed, and what was still running then.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub(crate) cause: Loss,
}

/// The engine, and what belongs to its calls, handlers and exchanges: kept in its own tables, so that
/// nothing is left of what has ended.
type Engine = engine::Engine<Option<Arc<Waiter>>, Option<Running>, Port>;

struct State {
    engine: Engine,
    connecting: Option<oneshot::Sender<Result<Connected, Outcome>>>,
    /// Exchanges that are ours to open, unless they are over by now.
    unopened: Vec<ExchangeId>,
    /// What waits to be written, where it is weighed.
    output: Option<Permit>,
    /// When the driver looks again by itself.
    awaited: Option<Time>,
    /// It is turned until nothing goes on: it belongs to a single POST.
    is_post: bool,
    /// The driver acts upon what it has taken out.
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
        // A pipe waits, and what is said on it is bounded by the engine.
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

    /// There is something for the driver. If a handler of this link causes that while it is polled, the
    /// driver is woken when the handler has yielded: see `watchdog.rs`.
    fn wake_driver(&self) {
        match watchdog::is_polled_here(self) {
            true => self.deferred.store(true, Ordering::SeqCst),
            false => self.wake.notify_one(),
        }
    }

    /// Tells the engine something, and wakes whoever has something to do then.
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

    /// Wakes whoever has something to do, outside the lock.
    fn wake(&self, routed: Routed) {
        if let Some(carrier) = routed.carrier {
            carrier.wake();
        }
        match routed.driver {
            true => self.wake_driver(),
            // Something may have been withdrawn. Else the driver says so at the end of its turn.
            false => self.room.notify_waiters(),
        }
    }

    /// Begins to open the conversation. To be called before the link is driven: whoever drives it
    /// may find the other side gone, and be gone itself, before anybody looks again.
    pub(crate) fn connect(&self, mode: Mode) -> oneshot::Receiver<Result<Connected, Outcome>> {
        let (done, connected) = oneshot::channel();
        let mut state = self.lock();
        let now = self.now();
        state.connecting = Some(done);
        state.engine.connect(now, mode);
        // Nobody drives it yet.
        let _ = state.route();
        connected
    }

    /// Begins a call, unless it is over before it began. Its end is told to whoever waits.
    ///
    /// One that was cancelled before it began ends here, and is never written.
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
                // What was said before goes out before.
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

    /// Gives a call up. Returns at once, whatever the wire does (**cancel-never-waits**).
    pub(crate) fn cancel(&self, call: CallId, reason: Option<&str>) {
        self.tell(|engine, now| engine.cancel(now, call, reason));
        self.room.notify_waiters();
    }

    /// What opens the exchange of a call where the call is made, without a turn of the driver. Not from
    /// within a handler, which may not yield for long: see `watchdog.rs`.
    fn opener(&self) -> Option<&Opener> {
        let opener = self.opener.get()?;
        (!watchdog::is_polled_here(self)).then_some(opener)
    }

    /// Whether what it says is posted.
    pub(crate) fn posts(&self) -> bool {
        self.posts
    }

    /// Whether a call in flight has left.
    pub(crate) fn sent(&self, call: CallId) -> Option<Sent> {
        self.lock().engine.sent(call)
    }

    /// Runs a task that belongs to this link.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        count_task();
        self.tasks.spawn(task);
    }

    /// Waits until every task of this link has been dropped, destructors and all: what a handler
    /// cleans up must be cleaned up before the process ends. One that never yields is not waited
    /// for longer than `span`.
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

    /// The revision that a client names beside what it posts.
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

    /// The longest message that is read, and how deep it may be nested.
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

    /// Why it is closed, once it is.
    pub(crate) async fn closed(&self) -> Closed {
        loop {
            // First in line, then look: what is said in between is not missed.
            let mut closing = std::pin::pin!(self.closing.notified());
            closing.as_mut().enable();
            if let Some(closed) = self.closed.get() {
                return closed.clone();
            }
            closing.await;
        }
    }

    /// The whole of it is gone.
    pub(crate) fn lose(&self, cause: Loss) {
        self.tell(|engine, now| engine.handle_link_lost(now, cause));
        self.room.notify_waiters();
    }

    /// Whether the server does not know the session any more.
    pub(crate) fn session_is_gone(&self) -> bool {
        self.closed_because().kind == LossKind::SessionGone
    }

    /// Who is at the other end, if that is known.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// Whose it is, for what the other side makes us keep.
    pub(crate) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Gives back the memory that an idle link does not need.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn shrink(&self) {
        let mut state = self.lock();
        state.engine.shrink();
        state.unopened.shrink_to_fit();
        drop(state);
        self.work.lock().shrink();
    }

    /// The tracker that counts the tasks of this link.
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

    /// Tells the peer something that nobody waits for, if there is room.
    #[cfg(feature = "client")]
    pub(crate) fn notify_now(&self, method: &str) {
        if let Err(error) = self.tell(|engine, now| engine.notify(now, None, method, None)) {
            tracing::debug!(%error, method, "a notification was not sent");
        }
    }

    /// The end of a call whose driver is gone: its runtime was shut down.
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

/// The pools of a link that shares them with nobody. How many handlers and listens there may be, its
/// engine knows.
fn own_peer(config: &Config) -> Arc<Peer> {
    let limits = &config.limits;
    let pools = Pools::new(|pool| match pool {
        Pool::Bytes => limits.kept_bytes,
        Pool::Blocking => limits.blocking,
        _ => usize::MAX,
    });
    pools.only_peer()
}
