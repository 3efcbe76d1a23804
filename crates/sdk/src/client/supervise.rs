//! A client whose server is started again when it dies.
//!
//! ```text
//!             ┌──────────────── started again ────────────────┐
//!             ▼                                               │
//!   ───────► up ──── its connection is lost ────► down ──── delay ───── budget spent ──► over
//!             │                                                                            ▲
//!             └────────────────────────── closed ──────────────────────────────────────────┘
//! ```
//!
//! Calls in flight are lost with their connection, and nobody makes them again (**retry-is-explicit**).
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
    /// Only a session that the server has forgotten is begun again.
    sessions_only: bool,
}

/// What happens to a server that is supervised.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Restart {
    /// It is gone, or could not be started; it is started again after a while.
    Waiting {
        /// Why it is gone.
        cause: Loss,
        /// How long the while is.
        delay: Duration,
    },
    /// It is there again.
    Back,
    /// It has died too often without answering a single call in between.
    GivenUp {
        /// Why it is gone.
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
    /// What every legacy client on HTTP does: a session that is not known any more is begun again.
    #[cfg(feature = "http")]
    pub(crate) fn of_sessions() -> Self {
        Self {
            // Calls that wait for a session give up by themselves.
            restarts: u32::MAX,
            first_delay: Duration::from_millis(10),
            sessions_only: true,
            ..Self::default()
        }
    }

    fn replaces(&self, cause: &Loss) -> bool {
        !self.sessions_only || cause.kind == LossKind::SessionGone
    }

    /// Five restarts, after 100 ms, 200 ms and so on up to 10 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many restarts there may be until a call is answered, or a connection has lived for ten
    /// seconds. That, and nothing else, fills the budget again.
    pub fn restarts(mut self, restarts: u32) -> Self {
        self.restarts = restarts;
        self
    }

    /// How long to wait before a restart: `first`, and twice as long each time, up to `longest`.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_delay = first;
        self.longest_delay = longest;
        self
    }

    /// Is told what happens. It must not take long.
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
    /// Starts the server again when it dies, or connects to it again. For servers that are child
    /// processes, and for legacy ones on HTTP, where a connection is a session: it has no effect on a
    /// connection over streams of one's own.
    pub fn supervise(mut self, supervision: Supervision) -> Self {
        self.supervision = Some(supervision);
        self
    }
}

/// What opens a connection, and the next one.
pub(crate) trait Opener: Send + 'static {
    /// Opens the next one.
    fn open(&mut self) -> impl Future<Output = Result<Established, Error>> + Send;
}

/// A client whose connection is replaced when it is lost.
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

/// What a client holds of it. When the client is gone, nothing is started any more.
pub(crate) struct Supervised {
    supervisor: Arc<Supervisor>,
    watching: JoinHandle<()>,
}

impl Supervised {
    pub(super) fn established(&self) -> Arc<Established> {
        self.supervisor.ledgers().last.clone()
    }

    /// Whether it was given up.
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
        // Before anything is waited for, so that dropping this leaves nobody waiting.
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
    /// Nothing is started any more.
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
    /// The connection, or the last one there was.
    last: Arc<Established>,
    /// What happened on those before it.
    before: Ledger,
    /// Restarts since a call was answered.
    used: u32,
}

impl Supervisor {
    /// Waits for the end of each connection, and opens the next.
    async fn watch(self: Arc<Self>, mut opener: impl Opener) {
        // However this ends, and be it with its runtime, nobody waits for another connection.
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
            // What the one before has said is not what this one says.
            self.changes.missed();
            // If it was closed in the meantime, the new one is dropped, and so it ends.
            if !self.turn(Line::Up(next)) {
                return;
            }
            self.supervision.tell(Restart::Back);
        }
    }

    /// How long to wait before the next restart, if there may be one.
    fn next_delay(&self) -> Option<Duration> {
        let mut ledgers = self.ledgers();
        let used = ledgers.used;
        ledgers.used += 1;
        (used < self.supervision.restarts).then(|| self.supervision.delay(used))
    }

    /// What happened on the last connection is kept; this is the last one now.
    fn replace(&self, next: Arc<Established>) {
        let before = {
            let mut ledgers = self.ledgers();
            let ledger = ledgers.last.link.ledger();
            ledgers.before += &ledger;
            std::mem::replace(&mut ledgers.last, next)
        };
        drop(before);
    }

    /// What is over stays over: the first cause stands.
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

/// A connection that lived so long was one that worked.
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
