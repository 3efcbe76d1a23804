//! State that all workers share: the server's address, the end of the run, and the problems found.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::observer::Counts;
use crate::random::Random;

/// An environment variable that marks every process of a run, so that leftover ones can be found.
pub(crate) fn mark() -> (&'static str, String) {
    ("BELAY_SOAK", std::process::id().to_string())
}

/// One run.
pub(crate) struct Soak {
    /// The path of the `belay` program.
    pub(crate) belay: PathBuf,
    /// The address of its HTTP server.
    pub(crate) address: SocketAddr,
    pub(crate) seed: u64,
    until: Mutex<Instant>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    problems: Vec<String>,
    /// By worker number.
    counts: BTreeMap<usize, Counts>,
    /// The headers of legacy sessions that were left open.
    sessions: Vec<Headers>,
}

pub(crate) type Headers = Vec<(String, String)>;

impl Soak {
    pub(crate) fn new(belay: PathBuf, address: SocketAddr, seed: u64) -> Self {
        Self {
            belay,
            address,
            seed,
            until: Mutex::new(Instant::now()),
            found: Mutex::default(),
        }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the time after which no life begins.
    pub(crate) fn go_on_until(&self, until: Instant) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Whether no more life should begin: the time is over, or a problem was found.
    pub(crate) fn is_over(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        Instant::now() >= until || !self.found().problems.is_empty()
    }

    pub(crate) fn problem(&self, what: String) {
        self.found().problems.push(what);
    }

    /// Waits until a problem was found, and a second more, since others may be about to find the
    /// same.
    pub(crate) async fn something_was_found(&self) {
        while self.found().problems.is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.found().problems.clone()
    }

    pub(crate) fn counts(&self, worker: usize) -> Counts {
        let counts = self.found().counts.get(&worker).copied();
        counts.unwrap_or_default()
    }

    /// Leaves a session open. It is deleted when the server comes to rest.
    pub(crate) fn leave_session(&self, headers: Headers) {
        self.found().sessions.push(headers);
    }

    pub(crate) fn take_sessions(&self) -> Vec<Headers> {
        std::mem::take(&mut self.found().sessions)
    }
}

/// One life of one worker: a connection, a session or a process from its beginning to its end.
pub(crate) struct Life {
    pub(crate) soak: Arc<Soak>,
    pub(crate) worker: usize,
    pub(crate) number: u64,
    pub(crate) random: Random,
}

impl Life {
    pub(crate) fn new(soak: &Arc<Soak>, worker: usize, number: u64) -> Self {
        Self {
            soak: soak.clone(),
            worker,
            number,
            random: Random::of(soak.seed, worker, number),
        }
    }

    /// A name that no other life has.
    pub(crate) fn name(&self) -> String {
        format!("worker {} life {}", self.worker, self.number)
    }

    pub(crate) fn count(&self, counts: Counts) {
        *self.soak.found().counts.entry(self.worker).or_default() += counts;
    }
}
