//! **answered-or-gone**: however many requests come at once, and however their answers are read,
//! each has exactly one. What is counted is what stands on the wire, not what a ledger says.

mod client;
mod http;
mod stdio;

/// How the answers to a burst are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reads {
    /// As they come.
    AtOnce,
    /// A little at a time.
    Slowly,
    /// Not at all until everything stands still, and then all of it.
    AfterAStop,
}
