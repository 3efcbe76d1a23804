//! Counters of requests: `started = ends + in flight`, at every moment.

use std::ops::AddAssign;

use super::End;

/// Counts how many requests began, how each ended, and which messages had no effect (**ledger**).
///
/// ```
/// use belay_protocol::engine::{End, Ledger};
/// let ledger = Ledger::default();
/// assert_eq!(ledger.calls.started(), ledger.calls.ended() + ledger.calls.in_flight());
/// assert_eq!(ledger.calls.ended_as(End::Lost), 0);
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Ledger {
    /// Outgoing calls.
    pub calls: Book,
    /// Incoming requests.
    pub requests: Book,
    /// Answers to calls that were over, or never made (**late-is-inert**).
    pub late_answers: u64,
    /// Cancels that named no request in flight, or were malformed (**strays-are-quiet**).
    pub stray_cancels: u64,
    /// Progress for a call that was over, or never made; malformed progress.
    pub stray_progress: u64,
    /// Progress whose value did not grow, from the peer or from a handler (**order**).
    pub stale_progress: u64,
    /// Messages that a handler tried to send after its request was over (**silence**).
    pub silenced: u64,
    /// Messages that could not be decoded.
    pub malformed: u64,
    /// Requests from a modern server, which the server must not make and the client must not
    /// answer.
    pub ignored_requests: u64,
    /// Messages that arrived on an exchange or a link that was over.
    pub strays_on_closed_exchanges: u64,
}

impl Ledger {
    /// Counts incoming requests that have begun and that no other ledger counts.
    pub fn add_in_flight(&mut self, requests: u64) {
        self.requests.started += requests;
    }
}

/// Adds up the counters of two connections.
impl AddAssign<&Self> for Ledger {
    fn add_assign(&mut self, other: &Self) {
        let Self {
            calls,
            requests,
            late_answers,
            stray_cancels,
            stray_progress,
            stale_progress,
            silenced,
            malformed,
            ignored_requests,
            strays_on_closed_exchanges,
        } = other;
        self.calls.add(calls);
        self.requests.add(requests);
        self.late_answers += late_answers;
        self.stray_cancels += stray_cancels;
        self.stray_progress += stray_progress;
        self.stale_progress += stale_progress;
        self.silenced += silenced;
        self.malformed += malformed;
        self.ignored_requests += ignored_requests;
        self.strays_on_closed_exchanges += strays_on_closed_exchanges;
    }
}

/// The counters of one direction.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Book {
    started: u64,
    ended: [u64; End::ALL.len()],
}

impl Book {
    /// How many requests began.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// How many requests ended.
    pub fn ended(&self) -> u64 {
        self.ended.iter().sum()
    }

    /// How many requests ended this way.
    pub fn ended_as(&self, end: End) -> u64 {
        self.ended[end as usize]
    }

    /// How many requests began and have not ended.
    pub fn in_flight(&self) -> u64 {
        self.started - self.ended()
    }

    fn add(&mut self, other: &Self) {
        self.started += other.started;
        for (mine, theirs) in self.ended.iter_mut().zip(other.ended) {
            *mine += theirs;
        }
    }

    pub(super) fn begin(&mut self) {
        self.started += 1;
    }

    pub(super) fn end(&mut self, end: End) {
        self.ended[end as usize] += 1;
    }
}
