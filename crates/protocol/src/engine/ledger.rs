//! The books: `started = ends + in flight`, at every moment.

use std::ops::AddAssign;

use super::End;

/// How many requests began, how each ended, and what came that meant nothing (**ledger**).
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
    /// Requests of ours.
    pub calls: Book,
    /// Requests of the peer.
    pub requests: Book,
    /// Answers to calls that were over, or never made (**late-is-inert**).
    pub late_answers: u64,
    /// Cancels that named nothing in flight, or nothing at all (**strays-are-quiet**).
    pub stray_cancels: u64,
    /// Progress for a call that was over, or never made.
    pub stray_progress: u64,
    /// Progress that did not grow, from the peer or from a handler (**order**).
    pub stale_progress: u64,
    /// What a handler still wanted to say after its request was over (**silence**).
    pub silenced: u64,
    /// Messages that could not be decoded.
    pub malformed: u64,
    /// Requests that a modern server had no right to make, and that a client has no right to answer.
    pub ignored_requests: u64,
    /// Anything that arrived on an exchange that was over.
    pub strays_on_closed_exchanges: u64,
}

impl Ledger {
    /// Counts requests of the peer's that have begun, and are in no book yet.
    pub fn add_in_flight(&mut self, requests: u64) {
        self.requests.started += requests;
    }
}

/// The books of two connections are one book.
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

/// One direction of the books.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Book {
    started: u64,
    ended: [u64; End::ALL.len()],
}

impl Book {
    /// How many began.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// How many ended.
    pub fn ended(&self) -> u64 {
        self.ended.iter().sum()
    }

    /// How many ended this way.
    pub fn ended_as(&self, end: End) -> u64 {
        self.ended[end as usize]
    }

    /// How many began and have not ended.
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
