//! Which members and items of a value were looked at, for `unevaluatedProperties` and `unevaluatedItems`.

/// What was seen of one value. It is empty as long as nothing is noted.
#[derive(Clone, Default, Debug)]
pub(super) struct Seen {
    members: Marks,
    items: Marks,
}

impl Seen {
    pub(super) fn member(&mut self, at: usize) {
        self.members.set(at);
    }

    pub(super) fn item(&mut self, at: usize) {
        self.items.set(at);
    }

    pub(super) fn has_member(&self, at: usize) -> bool {
        self.members.has(at)
    }

    pub(super) fn has_item(&self, at: usize) -> bool {
        self.items.has(at)
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.members.add(&more.members);
        self.items.add(&more.items);
    }

    /// What it costs to add it to another.
    pub(super) fn cost(&self) -> u64 {
        (self.members.0.len() + self.items.0.len()) as u64
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
