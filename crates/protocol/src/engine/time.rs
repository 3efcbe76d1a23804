//! Moments in time, which the driver passes to the engine.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment, as the time since a start that the driver chooses once.
///
/// The engine never reads a clock. The driver passes the current time with every input.
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
    /// The start.
    pub const START: Self = Self(Duration::ZERO);

    /// The moment `elapsed` after the start.
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

/// The time between two moments; zero if the other is not earlier.
impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
