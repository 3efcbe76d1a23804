//! Which members or items of a value were looked at, for `unevaluatedProperties` and `unevaluatedItems`.

use super::truth::Truth;

/// What was seen of one value, by the numbers of its members or items: it has either. It is empty as long
/// as nothing is noted.
#[derive(Clone, Default, Debug)]
pub(super) struct Seen {
    sure: Marks,
    /// What was seen if a pattern matches that cannot be matched here.
    doubtful: Marks,
}

impl Seen {
    /// Notes one that was seen, or may have been.
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

    /// Takes in what a part has seen that fits, or may fit: one that does not has seen nothing.
    pub(super) fn add(&mut self, more: &Self, fits: Truth) {
        match fits {
            Truth::Yes => self.sure.add(&more.sure),
            Truth::Unknown => self.doubtful.add(&more.sure),
            Truth::No => return,
        }
        self.doubtful.add(&more.doubtful);
    }

    /// What it costs to add it to another, and to keep it.
    pub(super) fn cost(&self) -> u64 {
        (self.sure.0.len() + self.doubtful.0.len()) as u64
    }
}

/// One bit for each.
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
