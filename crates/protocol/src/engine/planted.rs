//! Bugs that are planted on purpose, so that a green run of the exhaustive and the random suite
//! means something: each suite must catch them.
//!
//! They exist only under `--cfg belay_planted`. In every other build [`planted`] is `false` at
//! compile time, and nothing of this is left. A test of the engine plants one in its own thread; a
//! test with real processes names one in `BELAY_PLANTED`.

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
