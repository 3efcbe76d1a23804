//! What anchors mean, where that depends on where one comes from.

use std::collections::HashMap;

use super::places::Part;

/// So many meanings are kept. How many come up depends on the schema and not on how large a value is, so
/// that this does not grow with it.
const MEANINGS: usize = 20_000;

/// What the anchors mean that depend on where one comes from: the number of such a meaning.
pub(super) type Scope = usize;

/// All meanings that came up.
pub(super) struct Scopes {
    /// How many anchors there are.
    names: usize,
    /// All but the first, in which nothing means anything: most schemas have no such anchors.
    meanings: Vec<Vec<Option<Part>>>,
    numbers: HashMap<Vec<Option<Part>>, Scope>,
    /// What a meaning becomes in a resource.
    entered: HashMap<(Scope, usize), Scope>,
}

impl Scopes {
    pub(super) fn new(names: usize) -> Self {
        Self {
            names,
            meanings: Vec::new(),
            numbers: HashMap::new(),
            entered: HashMap::new(),
        }
    }

    /// What is known of a meaning in a resource.
    pub(super) fn known(&self, scope: Scope, resource: usize) -> Option<Scope> {
        self.entered.get(&(scope, resource)).copied()
    }

    /// What a name means.
    pub(super) fn meant(&self, scope: Scope, name: usize) -> Option<Part> {
        self.meanings.get(scope.checked_sub(1)?)?[name]
    }

    /// The meaning in a resource: the first that had an anchor keeps it. `None` if there are too many.
    pub(super) fn enter(
        &mut self,
        scope: Scope,
        resource: usize,
        anchors: &[(usize, Part)],
    ) -> Option<Scope> {
        if self.entered.len() == MEANINGS {
            return None;
        }
        let before = scope.checked_sub(1).map(|at| &self.meanings[at]);
        let mut meaning = before.map_or_else(|| vec![None; self.names], Clone::clone);
        for (name, part) in anchors {
            meaning[*name].get_or_insert(*part);
        }
        let next = self.meanings.len() + 1;
        let number = *self.numbers.entry(meaning).or_insert_with_key(|meaning| {
            self.meanings.push(meaning.clone());
            next
        });
        self.entered.insert((scope, resource), number);
        Some(number)
    }
}
