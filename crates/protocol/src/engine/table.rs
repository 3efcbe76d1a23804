//! A small map whose keys are numbers in rising order.

use std::collections::VecDeque;

/// Entries in the order of their keys.
///
/// New keys are always the largest so far, so an insert is a push. A removed entry leaves a gap.
/// Gaps are closed when they reach either end, or when there are more gaps than entries, so a
/// removal costs the same however many entries there are. Unlike a hash map it is iterated in the
/// same order every time (a seed replays), and unlike a tree it keeps its memory (no allocation for
/// a request in a steady state).
#[derive(Clone, Debug)]
pub(super) struct Table<K, V> {
    entries: VecDeque<(K, Option<V>)>,
    gaps: usize,
}

/// A number that is given out once, in rising order.
pub(super) trait Number: Ord + Copy {
    fn number(self) -> u64;
}

impl<K: Number, V> Table<K, V> {
    pub(super) fn new() -> Self {
        Self::with_capacity(0)
    }

    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            entries: VecDeque::with_capacity(capacity),
            gaps: 0,
        }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        debug_assert!(self.entries.back().is_none_or(|(last, _)| *last < key));
        // A deque begins with room for four, but most tables of most engines never hold a second
        // entry.
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len().max(1));
        }
        self.entries.push_back((key, Some(value)));
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        let at = self.position(key)?;
        self.entries[at].1.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let at = self.position(key)?;
        self.entries[at].1.as_mut()
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let at = self.position(key)?;
        let removed = self.entries[at].1.take()?;
        self.gaps += 1;
        while let Some((_, None)) = self.entries.front() {
            self.entries.pop_front();
            self.gaps -= 1;
        }
        while let Some((_, None)) = self.entries.back() {
            self.entries.pop_back();
            self.gaps -= 1;
        }
        if self.gaps > self.entries.len() / 2 {
            self.close_gaps();
        }
        Some(removed)
    }

    fn close_gaps(&mut self) {
        self.entries.retain(|(_, value)| value.is_some());
        self.gaps = 0;
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        let entries = self.entries.iter();
        entries.filter_map(|(key, value)| Some((*key, value.as_ref()?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        let entries = self.entries.iter_mut();
        entries.filter_map(|(key, value)| Some((*key, value.as_mut()?)))
    }

    /// The keys of the matching entries, as a list, so that the caller can change the table as it
    /// walks.
    pub(super) fn keys_where(&self, matches: impl Fn(&V) -> bool) -> Vec<K> {
        self.iter()
            .filter(|(_, value)| matches(value))
            .map(|(key, _)| key)
            .collect()
    }

    /// Frees spare memory.
    pub(super) fn shrink(&mut self) {
        self.close_gaps();
        self.entries.shrink_to_fit();
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.gaps
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn position(&self, key: K) -> Option<usize> {
        // If the keys have no holes before this one, its distance from the first key is its place.
        let (first, _) = self.entries.front()?;
        let guess = usize::try_from(key.number().wrapping_sub(first.number())).ok()?;
        if self
            .entries
            .get(guess)
            .is_some_and(|(known, _)| *known == key)
        {
            return Some(guess);
        }
        self.entries
            .binary_search_by_key(&key, |(key, _)| *key)
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Number for u32 {
        fn number(self) -> u64 {
            self.into()
        }
    }

    #[test]
    fn a_table_takes_no_more_memory_than_it_needs() {
        let mut table = Table::new();
        table.insert(0_u32, "first");
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

    /// In whatever order entries are removed, the rest stays complete and in order.
    #[test]
    fn what_is_removed_is_gone_and_the_rest_stays_in_order() {
        for step in [1, 3, 7, 11, 29] {
            let mut table = Table::new();
            let mut left: Vec<u32> = (0..30).collect();
            for key in &left {
                table.insert(*key, *key);
            }
            for round in 0..30 {
                let key = round * step % 30;
                let known = left.iter().position(|left| *left == key);
                assert_eq!(table.remove(key), known.map(|at| left.remove(at)));
                assert_eq!(table.remove(key), None);
                assert_eq!(table.len(), left.len());
                assert_eq!(table.is_empty(), left.is_empty());
                assert!(table.iter().map(|(key, _)| key).eq(left.iter().copied()));
                assert!((0..30).all(|key| table.get(key).is_some() == left.contains(&key)));
                assert!(table.entries.len() <= 2 * left.len() + 1, "gaps are closed");
            }
        }
    }
}
