//! Checks a ledger.

use belay::outcome::{Book, Ledger};

/// Asserts that `started = ends + in flight` in both directions, and that nothing is in flight.
///
/// # Panics
///
/// If a request is in flight.
///
/// ```
/// belay_testkit::check(&belay::outcome::Ledger::default());
/// ```
pub fn check(ledger: &Ledger) {
    for (name, book) in [("calls", &ledger.calls), ("requests", &ledger.requests)] {
        assert!(is_settled(book), "ledger: {name} are in flight: {book:?}");
    }
}

fn is_settled(book: &Book) -> bool {
    book.started() == book.ended() && book.in_flight() == 0
}
