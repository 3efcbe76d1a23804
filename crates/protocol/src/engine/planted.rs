//! Bugs that are planted on purpose, so that a green run of the exhaustive and the random suite
//! means something: each suite must catch them.
//!
//! They exist only under `--cfg belay_planted`. In every other build [`planted`] is `false` at
//! compile time, and nothing of this is left. A test of the engine plants one in its own thread; a
//! test with real processes names one in `BELAY_PLANTED`.
//!
//! The engine knows little of them. Where something leaves it (a frame, a timer, a cancel), it passes
//! through a function below, which gives back what it was given, unless a bug is planted.

use super::deadline::Timer;
use super::queue::{Frame, Owner, Queue};
use super::rules::Announcement;
use super::{CallId, Outcome, Time};

/// What can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    not(belay_planted),
    allow(dead_code, reason = "named where they would be")
)]
pub(super) enum Bug {
    TimeoutTellsNobody,
    CancelSentTwice,
    CancelForARequestNeverWritten,
    CancelGivenUpOnAStalledPipe,
    AnswerLeavesAfterCancel,
    ResponseOvertakesItsProgress,
    LateAnswerResolvesANewCall,
    EntryKeptAfterItsEnd,
    InitializeCancelled,
    StrayCancelAnswered,
    BrokenStreamNeverExpires,
    CancelLooksInBothDirections,
    RefusalDropped,
    RefusedTwice,
    PanicAnswersNobody,
}

/// What is put into a queue for a frame: that frame. `answers_wait` for the whole link.
#[cfg(not(belay_planted))]
pub(super) fn written(frame: Frame, _: &Queue, _answers_wait: bool) -> [Frame; 1] {
    [frame]
}

#[cfg(belay_planted)]
pub(super) fn written(frame: Frame, queue: &Queue, answers_wait: bool) -> Vec<Frame> {
    let is_internal_error = frame.error == Some(crate::types::error_code::INTERNAL_ERROR);
    let times = match frame.owner {
        Owner::Refusal if planted(Bug::RefusalDropped) && answers_wait => 0,
        Owner::Refusal if planted(Bug::RefusedTwice) => 2,
        Owner::Answer(_) if planted(Bug::PanicAnswersNobody) && is_internal_error => 0,
        Owner::Cancel(_) if planted(Bug::CancelGivenUpOnAStalledPipe) && queue.has_begun() => 0,
        _ => 1,
    };
    vec![frame; times]
}

/// Whether a frame goes ahead of all that has not begun, as only cancels do.
pub(super) fn is_ahead(is_cancel: bool, owner: Owner) -> bool {
    let overtakes = planted(Bug::ResponseOvertakesItsProgress);
    is_cancel || (overtakes && matches!(owner, Owner::Answer(_)))
}

/// Whether a frame that is to be withdrawn is.
pub(super) fn is_withdrawn(owner: Owner) -> bool {
    let stays = planted(Bug::AnswerLeavesAfterCancel);
    !(stays && matches!(owner, Owner::Answer(_) | Owner::Word(_)))
}

/// When a timer that is moved is due from now on.
pub(super) fn due(timer: Timer, from: Option<Time>, to: Option<Time>) -> Option<Time> {
    match (timer, to) {
        (Timer::Call(_), None) if planted(Bug::EntryKeptAfterItsEnd) => from,
        (Timer::Exchange(_), Some(_)) if planted(Bug::BrokenStreamNeverExpires) => None,
        _ => to,
    }
}

/// How often the peer is told that a call is given up: once, if its write has begun.
pub(super) fn announcements(is_written: bool, outcome: &Outcome) -> usize {
    let is_timeout = matches!(outcome, Outcome::TimedOut { .. });
    match is_written {
        _ if planted(Bug::TimeoutTellsNobody) && is_timeout => 0,
        true if planted(Bug::CancelSentTwice) => 2,
        false if planted(Bug::CancelForARequestNeverWritten) => 1,
        is_written => usize::from(is_written),
    }
}

/// How the peer is told of it.
pub(super) fn announcement(how: Announcement) -> Announcement {
    match how {
        Announcement::None if planted(Bug::InitializeCancelled) => Announcement::Notification,
        how => how,
    }
}

/// Which call an answer is for.
pub(super) fn answered(
    found: Option<CallId>,
    newest: impl FnOnce() -> Option<CallId>,
) -> Option<CallId> {
    match planted(Bug::LateAnswerResolvesANewCall) {
        true => newest(),
        false => found,
    }
}

#[cfg(not(belay_planted))]
pub(super) const fn planted(_: Bug) -> bool {
    false
}

#[cfg(belay_planted)]
pub(super) fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug) || *IN_PROCESS == Some(bug)
}

#[cfg(belay_planted)]
static IN_PROCESS: std::sync::LazyLock<Option<Bug>> = std::sync::LazyLock::new(|| {
    let named = std::env::var("BELAY_PLANTED").ok()?;
    let bug = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == named);
    Some(bug.unwrap_or_else(|| panic!("there is no planted bug {named}")))
});

#[cfg(belay_planted)]
thread_local! {
    pub(super) static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

#[cfg(belay_planted)]
impl Bug {
    pub(super) const ALL: [Self; 15] = [
        Self::TimeoutTellsNobody,
        Self::CancelSentTwice,
        Self::CancelForARequestNeverWritten,
        Self::CancelGivenUpOnAStalledPipe,
        Self::AnswerLeavesAfterCancel,
        Self::ResponseOvertakesItsProgress,
        Self::LateAnswerResolvesANewCall,
        Self::EntryKeptAfterItsEnd,
        Self::InitializeCancelled,
        Self::StrayCancelAnswered,
        Self::BrokenStreamNeverExpires,
        Self::CancelLooksInBothDirections,
        Self::RefusalDropped,
        Self::RefusedTwice,
        Self::PanicAnswersNobody,
    ];
}
