//! The random numbers that decide everything in a run.

use std::time::Duration;

/// A small generator without platform dependence: a seed gives the same decisions on every machine.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator of one life of one worker. It depends on these numbers alone, not on what
    /// other lives did or how long they took.
    pub(crate) fn of(seed: u64, worker: usize, life: u64) -> Self {
        let mut state = Self(seed).next();
        for number in [worker as u64, life] {
            state = Self(state ^ number).next();
        }
        Self(state)
    }

    /// A separate generator for a part of a life. How many numbers that part takes may depend on
    /// the answers, and does not affect later parts.
    pub(crate) fn part(&mut self) -> Self {
        Self(self.next())
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A number from `low` to `high`, both inclusive.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len() as u64) as usize]
    }

    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_has_decisions_of_its_own() {
        let first = |seed, worker, life| Random::of(seed, worker, life).next();
        assert_eq!(first(1, 2, 3), first(1, 2, 3));
        for other in [(2, 2, 3), (1, 3, 3), (1, 2, 4), (1, 3, 2)] {
            assert_ne!(first(1, 2, 3), first(other.0, other.1, other.2));
        }
    }
}
