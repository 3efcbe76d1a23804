//! Bugs that are planted on purpose. The exhaustive and the random test suite must each catch them,
//! which shows that a green run means something.
//!
//! They exist only under `--cfg belay_planted`. In every other build [`planted`] is `false` at
//! compile time, and nothing of them is left. A unit test plants one in its own thread; a test with
//! real processes names one in `BELAY_PLANTED`.
//!
//! The engine calls a function below wherever a planted bug can change a frame, a timer or a
//! cancel. The function returns its input unchanged, unless a bug is planted.

use super::deadline::Timer;
use super::queue::{Frame, Owner, Queue};
use super::rules::Announcement;
use super::{CallId, Outcome, Time};

/// The bugs that can be planted.
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

/// The frames to queue for a frame: normally the frame itself. `answers_wait` is about the whole
/// link.
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

/// Whether a frame is queued ahead of all that have not begun. Normally only cancels are.
pub(super) fn is_ahead(is_cancel: bool, owner: Owner) -> bool {
    let overtakes = planted(Bug::ResponseOvertakesItsProgress);
    is_cancel || (overtakes && matches!(owner, Owner::Answer(_)))
}

/// Whether a frame is really withdrawn. Normally it is.
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

/// How many cancels are sent for a call that is given up: one, if its write has begun.
pub(super) fn announcements(is_written: bool, outcome: &Outcome) -> usize {
    let is_timeout = matches!(outcome, Outcome::TimedOut { .. });
    match is_written {
        _ if planted(Bug::TimeoutTellsNobody) && is_timeout => 0,
        true if planted(Bug::CancelSentTwice) => 2,
        false if planted(Bug::CancelForARequestNeverWritten) => 1,
        is_written => usize::from(is_written),
    }
}

/// How the peer is told of the cancellation.
pub(super) fn announcement(how: Announcement) -> Announcement {
    match how {
        Announcement::None if planted(Bug::InitializeCancelled) => Announcement::Notification,
        how => how,
    }
}

/// The call that an answer belongs to.
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
