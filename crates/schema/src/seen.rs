//! Which members or items of a value were evaluated, for `unevaluatedProperties` and
//! `unevaluatedItems`.

use super::truth::Truth;

/// The evaluated members or items of one value, by index. A value has only one of the two kinds.
/// Empty if nothing was recorded.
#[derive(Clone, Default, Debug)]
pub(super) struct Seen {
    sure: Marks,
    /// Those that are evaluated only if a pattern matches that cannot be matched here.
    doubtful: Marks,
}

impl Seen {
    /// Records one that was evaluated, or may have been.
    pub(super) fn note(&mut self, at: usize, was_seen: Truth) {
        match was_seen {
            Truth::Yes => self.sure.set(at),
            Truth::Unknown => self.doubtful.set(at),
            Truth::No => {}
        }
    }

    pub(super) fn has(&self, at: usize) -> Truth {
        match (self.sure.has(at), self.doubtful.has(at)) {
            (true, _) => Truth::Yes,
            (false, true) => Truth::Unknown,
            (false, false) => Truth::No,
        }
    }

    /// Adds what another subschema has evaluated, if the value matches it or may match it. A failed
    /// subschema evaluates nothing.
    pub(super) fn add(&mut self, more: &Self, fits: Truth) {
        match fits {
            Truth::Yes => self.sure.add(&more.sure),
            Truth::Unknown => self.doubtful.add(&more.sure),
            Truth::No => return,
        }
        self.doubtful.add(&more.doubtful);
    }

    /// The cost of adding it to another, and of keeping it.
    pub(super) fn cost(&self) -> u64 {
        (self.sure.0.len() + self.doubtful.0.len()) as u64
    }
}

/// A set of indexes.
#[derive(Clone, Default, Debug)]
struct Marks(Vec<u64>);

impl Marks {
    fn set(&mut self, at: usize) {
        if self.0.len() <= at / 64 {
            self.0.resize(at / 64 + 1, 0);
        }
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn has(&self, at: usize) -> bool {
        self.0
            .get(at / 64)
            .is_some_and(|word| word & 1 << (at % 64) != 0)
    }

    fn add(&mut self, more: &Self) {
        if self.0.len() < more.0.len() {
            self.0.resize(more.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&more.0) {
            *word |= more;
        }
    }
}
