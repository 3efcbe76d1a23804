//! Statistics of stopped handlers.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use belay_protocol::engine::StopCause;

/// The names of the causes for which handlers are stopped.
pub(crate) const CAUSES: [&str; 6] = [
    "cancelled",
    "disconnected",
    "resume_window_passed",
    "lost",
    "deadline",
    "shutdown",
];

/// The bounds of the buckets, in milliseconds.
pub(crate) const BUCKETS: [u64; 6] = [1, 10, 100, 1000, 2000, 5000];

/// Counters over the life of a server.
#[derive(Default, Debug)]
pub(crate) struct Stats {
    stops: [AtomicU64; CAUSES.len()],
    /// How long handlers took to end once they were told to, by bucket; the last
    /// bucket is for longer times.
    took: [AtomicU64; BUCKETS.len() + 1],
    took_in_all: AtomicU64,
    /// Handlers that were aborted and still exist: they block, or never yield.
    overrun: AtomicUsize,
    /// All handlers that exist.
    handlers: AtomicUsize,
}

impl Stats {
    pub(super) fn handler_began(&self) {
        self.handlers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn handler_ended(&self) {
        self.handlers.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number of handlers that exist, on all connections.
    #[cfg(feature = "server")]
    pub(crate) fn handlers(&self) -> usize {
        self.handlers.load(Ordering::Relaxed)
    }

    /// Counts a handler that is told to stop.
    pub(super) fn stopping(&self, cause: &StopCause) {
        let at = match cause {
            StopCause::Cancelled { .. } => 0,
            StopCause::Disconnected => 1,
            StopCause::ResumeWindowPassed => 2,
            StopCause::Deadline => 4,
            StopCause::Shutdown => 5,
            // Other causes mean that the caller is lost.
            _ => 3,
        };
        self.stops[at].fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a stopped handler is gone.
    pub(super) fn stopped(&self, after: Duration) {
        let millis = BUCKETS.map(Duration::from_millis);
        let bucket = millis.iter().position(|bound| after <= *bound);
        self.took[bucket.unwrap_or(BUCKETS.len())].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.took_in_all.fetch_add(micros, Ordering::Relaxed);
    }

    pub(super) fn overruns(&self, begins: bool) {
        match begins {
            true => self.overrun.fetch_add(1, Ordering::Relaxed),
            false => self.overrun.fetch_sub(1, Ordering::Relaxed),
        };
    }

    /// How many handlers were told to stop, in the order of [`CAUSES`].
    pub(crate) fn stops(&self) -> [u64; CAUSES.len()] {
        std::array::from_fn(|at| self.stops[at].load(Ordering::Relaxed))
    }

    /// The counts in the order of [`BUCKETS`], then the count of longer times, and the total time.
    pub(crate) fn took(&self) -> ([u64; BUCKETS.len() + 1], Duration) {
        let took = std::array::from_fn(|at| self.took[at].load(Ordering::Relaxed));
        let in_all = Duration::from_micros(self.took_in_all.load(Ordering::Relaxed));
        (took, in_all)
    }

    pub(crate) fn overrun(&self) -> usize {
        self.overrun.load(Ordering::Relaxed)
    }
}
