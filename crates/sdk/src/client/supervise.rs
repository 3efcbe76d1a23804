//! Supervision: a client whose server is restarted when it dies.
//!
//! ```text
//!             ┌──────────────── started again ────────────────┐
//!             ▼                                               │
//!   ───────► up ──── its connection is lost ────► down ──── delay ───── budget spent ──► over
//!             │                                                                            ▲
//!             └────────────────────────── closed ──────────────────────────────────────────┘
//! ```
//!
//! Calls in flight are lost with their connection and are not repeated (**retry-is-explicit**).
//! New calls wait for the next connection, within their deadlines.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{Ledger, Loss, LossKind, Outcome, Sent, Shutdown};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{ChangeHub, Client, ClientBuilder, Established, Held};
use crate::Error;
use crate::call::Lines;
use crate::driver::{BoxFuture, Link, fenced};
use crate::sync::{Mutex, MutexGuard};

/// How a server is started again when it dies.
///
/// ```no_run
/// # async fn example() -> Result<(), belay::Error> {
/// use belay::client::{Restart, Supervision};
/// use belay::Client;
/// use std::process::Command;
///
/// let client = Client::builder("host", "1.0.0")
///     .supervise(Supervision::new().restarts(5).on_restart(|restart| match restart {
///         Restart::Waiting { cause, delay } => eprintln!("{cause}; again in {delay:?}"),
///         Restart::Back => eprintln!("it is back"),
///         Restart::GivenUp { cause } => eprintln!("given up: {cause}"),
///         _ => {}
///     }))
///     .spawn(Command::new("./server"))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until a client is given it"]
pub struct Supervision {
    restarts: u32,
    first_delay: Duration,
    longest_delay: Duration,
    told: Option<Arc<dyn Fn(Restart) + Send + Sync>>,
    /// Reconnect only when the server has forgotten the session.
    sessions_only: bool,
}

/// What happened to a supervised server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Restart {
    /// The connection is lost, or a restart failed. The next attempt follows after `delay`.
    Waiting {
        /// Why the connection was lost, or could not be opened.
        cause: Loss,
        /// The time until the next attempt.
        delay: Duration,
    },
    /// The connection is restored.
    Back,
    /// The restart budget is used up: the server died too often without answering a
    /// call. The client stays closed.
    GivenUp {
        /// Why the last connection was lost, or could not be opened.
        cause: Loss,
    },
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            restarts: 5,
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(10),
            told: None,
            sessions_only: false,
        }
    }
}

impl Supervision {
    /// The policy of every legacy client on HTTP: a session that the server has
    /// forgotten is reopened.
    #[cfg(feature = "http")]
    pub(crate) fn of_sessions() -> Self {
        Self {
            // No budget: calls that wait for a session have deadlines of their own.
            restarts: u32::MAX,
            first_delay: Duration::from_millis(10),
            sessions_only: true,
            ..Self::default()
        }
    }

    fn replaces(&self, cause: &Loss) -> bool {
        !self.sessions_only || cause.kind == LossKind::SessionGone
    }

    /// Five restarts, with a backoff of 100 ms that doubles up to 10 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the restart budget. It is refilled when a call is answered, or when a connection has
    /// lived for ten seconds, and by nothing else.
    pub fn restarts(mut self, restarts: u32) -> Self {
        self.restarts = restarts;
        self
    }

    /// Sets the backoff: `first` before the first restart, doubled each time, up to `longest`.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_delay = first;
        self.longest_delay = longest;
        self
    }

    /// Registers a callback for restarts. It must not block.
    pub fn on_restart(mut self, told: impl Fn(Restart) + Send + Sync + 'static) -> Self {
        self.told = Some(Arc::new(told));
        self
    }

    fn delay(&self, used: u32) -> Duration {
        let twice = 2_u32.checked_pow(used).unwrap_or(u32::MAX);
        self.first_delay
            .saturating_mul(twice)
            .min(self.longest_delay)
    }

    fn tell(&self, restart: Restart) {
        if let Some(told) = &self.told {
            fenced("on_restart", || told(restart));
        }
    }
}

impl fmt::Debug for Supervision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervision")
            .field("restarts", &self.restarts)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Restarts the server, or reconnects to it, when its connection is lost. This is for
    /// servers that are child processes, and for legacy servers on HTTP, where a
    /// connection is a session. It has no effect on [`connect`](ClientBuilder::connect),
    /// which cannot open its streams again.
    pub fn supervise(mut self, supervision: Supervision) -> Self {
        self.supervision = Some(supervision);
        self
    }
}

/// Opens connections for the supervisor.
pub(crate) trait Opener: Send + 'static {
    /// Opens the next connection.
    fn open(&mut self) -> impl Future<Output = Result<Established, Error>> + Send;
}

/// Makes a client whose connection is replaced when it is lost.
pub(crate) fn start(
    builder: &ClientBuilder,
    supervision: Supervision,
    first: Established,
    opener: impl Opener,
) -> Client {
    let first = Arc::new(first);
    let supervisor = Arc::new(Supervisor {
        line: watch::Sender::new(Line::Up(first.clone())),
        ledgers: Mutex::new(PastLedgers {
            last: first,
            before: Ledger::default(),
            used: 0,
        }),
        supervision,
        changes: builder.changes(),
    });
    let routes = builder.routes(supervisor.clone(), None);
    // Not a task of any link, since it outlives them. It ends with the client.
    let watching = tokio::spawn(supervisor.clone().watch(opener));
    let supervised = Supervised {
        supervisor,
        watching,
    };
    Client::from_parts(routes, Held::Supervised(supervised), builder.changes())
}

/// The client's handle on its supervisor. Dropping it ends supervision.
pub(crate) struct Supervised {
    supervisor: Arc<Supervisor>,
    watching: JoinHandle<()>,
}

impl Supervised {
    pub(super) fn established(&self) -> Arc<Established> {
        self.supervisor.ledgers().last.clone()
    }

    /// Whether supervision has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.supervisor.line.borrow(), Line::Over(_))
    }

    pub(super) fn ledger(&self) -> Ledger {
        let ledgers = self.supervisor.ledgers();
        let mut ledger = ledgers.before.clone();
        ledger += &ledgers.last.link.ledger();
        ledger
    }

    pub(super) async fn close(&self) -> Loss {
        // Before anything is awaited, so that callers are not left waiting for a
        // connection if this is dropped.
        self.stop();
        let established = self.established();
        established.close().await;
        self.closed().await
    }

    pub(super) async fn closed(&self) -> Loss {
        let mut line = self.supervisor.line.subscribe();
        let over = line.wait_for(|line| matches!(line, Line::Over(_))).await;
        match over.as_deref() {
            Ok(Line::Over(cause)) => cause.clone(),
            _ => LossKind::ClosedByUs.into(),
        }
    }
}

impl Supervised {
    /// Ends supervision: nothing is restarted any more.
    pub(super) fn stop(&self) {
        self.watching.abort();
        self.supervisor.over(LossKind::ClosedByUs.into());
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.stop();
        self.established().link.shutdown(Shutdown::Now);
    }
}

struct Supervisor {
    line: watch::Sender<Line>,
    ledgers: Mutex<PastLedgers>,
    supervision: Supervision,
    changes: Arc<ChangeHub>,
}

enum Line {
    Up(Arc<Established>),
    Down,
    Over(Loss),
}

struct PastLedgers {
    /// The current connection, or the last one.
    last: Arc<Established>,
    /// The counts of all earlier connections.
    before: Ledger,
    /// Restarts since a call was last answered, or a connection lived for long.
    used: u32,
}

impl Supervisor {
    /// Waits for the end of each connection, and opens the next.
    async fn watch(self: Arc<Self>, mut opener: impl Opener) {
        // However this task ends, even with its runtime, callers must not wait for
        // another connection.
        let _over = OverWhenDropped(self.clone());
        loop {
            let link = self.ledgers().last.link.clone();
            let since = Instant::now();
            let mut cause = link.closed().await.cause;
            if since.elapsed() >= LIVED {
                self.succeeded();
            }
            if !self.supervision.replaces(&cause) {
                return self.over(cause);
            }
            if !self.turn(Line::Down) {
                return;
            }
            let next = loop {
                let Some(delay) = self.next_delay() else {
                    self.supervision.tell(Restart::GivenUp {
                        cause: cause.clone(),
                    });
                    return self.over(cause);
                };
                let told = cause.clone();
                self.supervision
                    .tell(Restart::Waiting { cause: told, delay });
                tokio::time::sleep(delay).await;
                match opener.open().await {
                    Ok(next) => break next,
                    Err(error) => cause = because(error),
                }
            };
            let next = Arc::new(next);
            self.replace(next.clone());
            // Change notifications were missed between the two connections, so the
            // cache is emptied.
            self.changes.missed();
            // If the client was closed meanwhile, the new connection is dropped
            // here, which closes it.
            if !self.turn(Line::Up(next)) {
                return;
            }
            self.supervision.tell(Restart::Back);
        }
    }

    /// The delay before the next restart, or `None` if the budget is used up.
    fn next_delay(&self) -> Option<Duration> {
        let mut ledgers = self.ledgers();
        let used = ledgers.used;
        ledgers.used += 1;
        (used < self.supervision.restarts).then(|| self.supervision.delay(used))
    }

    /// Adds the counts of the last connection to the total, and makes `next` the current one.
    fn replace(&self, next: Arc<Established>) {
        let before = {
            let mut ledgers = self.ledgers();
            let ledger = ledgers.last.link.ledger();
            ledgers.before += &ledger;
            std::mem::replace(&mut ledgers.last, next)
        };
        drop(before);
    }

    /// Moves to `next`, unless supervision is over: then the first cause stays.
    fn turn(&self, next: Line) -> bool {
        self.line.send_if_modified(|line| {
            let turns = !matches!(line, Line::Over(_));
            if turns {
                *line = next;
            }
            turns
        })
    }

    fn over(&self, cause: Loss) {
        self.turn(Line::Over(cause));
    }

    fn ledgers(&self) -> MutexGuard<'_, PastLedgers> {
        self.ledgers.lock()
    }
}

/// A connection that lived this long counts as healthy and refills the restart budget.
const LIVED: Duration = Duration::from_secs(10);

struct OverWhenDropped(Arc<Supervisor>);

impl Drop for OverWhenDropped {
    fn drop(&mut self) {
        let cause = self.0.ledgers().last.link.closed_because();
        self.0.over(cause);
    }
}

/// Why a connection could not be opened.
fn because(error: Error) -> Loss {
    match error.outcome() {
        Some(Outcome::Lost { cause, .. }) => cause.clone(),
        _ => Loss {
            kind: LossKind::Io,
            source: Some(Arc::new(error)),
        },
    }
}

impl Lines for Supervisor {
    fn link(&self) -> BoxFuture<Result<Arc<Link>, Outcome>> {
        let mut line = self.line.subscribe();
        Box::pin(async move {
            let usable = |line: &Line| match line {
                Line::Up(established) => !established.link.is_closed(),
                Line::Down => false,
                Line::Over(_) => true,
            };
            let cause = match line.wait_for(usable).await.as_deref() {
                Ok(Line::Up(established)) => return Ok(established.link.clone()),
                Ok(Line::Over(cause)) => cause.clone(),
                _ => LossKind::ClosedByUs.into(),
            };
            let sent = Sent::Never;
            Err(Outcome::Lost { cause, sent })
        })
    }

    fn now(&self) -> Option<Arc<Link>> {
        match &*self.line.borrow() {
            Line::Up(established) => Some(established.link.clone()),
            Line::Down | Line::Over(_) => None,
        }
    }

    fn over(&self) -> BoxFuture<Outcome> {
        let mut line = self.line.subscribe();
        Box::pin(async move {
            let over = |line: &Line| matches!(line, Line::Over(_));
            let cause = match line.wait_for(over).await.as_deref() {
                Ok(Line::Over(cause)) => cause.clone(),
                _ => LossKind::ClosedByUs.into(),
            };
            let sent = Sent::Maybe;
            Outcome::Lost { cause, sent }
        })
    }

    fn replaces(&self) -> bool {
        true
    }

    fn succeeded(&self) {
        self.ledgers().used = 0;
    }
}
