//! Moments, told to the engine by whoever drives it.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment: how long after some beginning, which the driver chooses once.
///
/// The engine never reads a clock. Whoever drives it says what time it is, with every input.
///
/// ```
/// use belay_protocol::engine::Time;
/// use std::time::Duration;
///
/// let later = Time::START + Duration::from_secs(3);
/// assert_eq!(later - Time::START, Duration::from_secs(3));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Time(Duration);

impl Time {
    /// The beginning.
    pub const START: Self = Self(Duration::ZERO);

    /// The moment `elapsed` after the beginning.
    pub const fn after(elapsed: Duration) -> Self {
        Self(elapsed)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// How long from one moment to another; nothing, if the other is not later.
impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
