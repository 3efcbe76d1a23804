//! Dynamic scopes: the targets of dynamic anchors, which depend on the path of references.

use std::collections::HashMap;

use super::places::Part;

/// The maximum number of scopes. It depends on the schema and not on the size of the value, so
/// memory does not grow with the value.
const MEANINGS: usize = 20_000;

/// The number of a dynamic scope: a target for each dynamic anchor.
pub(super) type Scope = usize;

/// All dynamic scopes that came up.
pub(super) struct Scopes {
    /// The number of dynamic anchor names.
    names: usize,
    /// All scopes except the first, which has no targets: most schemas have no dynamic anchors.
    meanings: Vec<Vec<Option<Part>>>,
    numbers: HashMap<Vec<Option<Part>>, Scope>,
    /// The scope after entering a resource from a scope.
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

    /// The scope after entering a resource, if it was computed before.
    pub(super) fn known(&self, scope: Scope, resource: usize) -> Option<Scope> {
        self.entered.get(&(scope, resource)).copied()
    }

    /// The target of a name in a scope.
    pub(super) fn meant(&self, scope: Scope, name: usize) -> Option<Part> {
        self.meanings.get(scope.checked_sub(1)?)?[name]
    }

    /// The scope after entering a resource. The outermost target of each name is kept. `None` if
    /// there are too many scopes.
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
