//! A small map for things that are numbered as they come.

use std::collections::VecDeque;

/// Entries in the order of their keys.
///
/// New keys are always the largest so far, so adding is a push; what ends is mostly old, so
/// removing moves little. Unlike a hash map it is walked in the same order every time (a seed
/// replays), and unlike a tree it keeps its memory (no allocation for a request in a steady state).
#[derive(Clone, Debug)]
pub(super) struct Table<K, V> {
    entries: VecDeque<(K, V)>,
}

impl<K: Ord + Copy, V> Table<K, V> {
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
        }
    }

    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: VecDeque::with_capacity(capacity),
        }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        debug_assert!(self.entries.back().is_none_or(|(last, _)| *last < key));
        // A deque begins with room for four; most tables of most engines never hold a second entry.
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len().max(1));
        }
        self.entries.push_back((key, value));
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        let at = self.position(key)?;
        Some(&self.entries[at].1)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let at = self.position(key)?;
        Some(&mut self.entries[at].1)
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let at = self.position(key)?;
        self.entries.remove(at).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        self.entries.iter().map(|(key, value)| (*key, value))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.entries.iter_mut().map(|(key, value)| (*key, value))
    }

    /// The keys of the entries that match, so that each can be changed while walking over them.
    pub(super) fn keys_where(&self, matches: impl Fn(&V) -> bool) -> Vec<K> {
        self.iter()
            .filter(|(_, value)| matches(value))
            .map(|(key, _)| key)
            .collect()
    }

    /// Gives back the memory that is not needed now.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn position(&self, key: K) -> Option<usize> {
        // What is asked for is mostly what came last.
        if self.entries.back().is_some_and(|(last, _)| *last == key) {
            return Some(self.entries.len() - 1);
        }
        self.entries
            .binary_search_by_key(&key, |(key, _)| *key)
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_no_more_memory_than_it_needs() {
        let mut table = Table::new();
        table.insert(0, "first");
        assert_eq!(table.entries.capacity(), 1);
        for key in 1..100 {
            table.insert(key, "more");
        }
        assert!(table.entries.capacity() < 200);
        for key in 1..100 {
            table.remove(key);
        }
        table.shrink();
        assert_eq!(table.entries.capacity(), 1);
        assert_eq!(table.get(0), Some(&"first"));
    }
}
