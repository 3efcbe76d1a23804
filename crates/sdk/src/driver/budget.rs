//! The bytes that clients make a server keep, weighed against one limit (**bounded**).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(feature = "http")]
use bytes::Bytes;

/// The beginning of whatever is weighed is free: so that small things pass, however large the
/// others are.
pub(crate) const FREE: usize = 8 << 10;

/// How many bytes may be kept, and how many are.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

/// A part of a budget, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Weight {
    of: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { limit, used })
    }

    /// Nothing of it yet.
    pub(crate) fn begin(self: &Arc<Self>) -> Weight {
        let of = self.clone();
        Weight { of, bytes: 0 }
    }
}

impl Weight {
    /// Takes more, if there is that much left.
    pub(crate) fn more(&mut self, bytes: usize) -> bool {
        let take = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.of.limit);
        let order = Ordering::Relaxed;
        let taken = self.of.used.fetch_update(order, order, take).is_ok();
        self.bytes += if taken { bytes } else { 0 };
        taken
    }

    /// Takes or gives back the difference between two sizes of something that is kept; false, and
    /// nothing, if there is not that much left.
    pub(crate) fn resize(&mut self, from: usize, to: usize) -> bool {
        let (from, to) = (from.saturating_sub(FREE), to.saturating_sub(FREE));
        if to > from {
            return self.more(to - from);
        }
        self.bytes -= from - to;
        self.of.used.fetch_sub(from - to, Ordering::Relaxed);
        true
    }

    /// The same bytes, which are weighed for as long as any part of them is kept: whoever holds a
    /// slice of a message holds all of it.
    #[cfg(feature = "http")]
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        match self.bytes {
            0 => bytes,
            _ => Bytes::from_owner(Weighed {
                bytes,
                _weight: self,
            }),
        }
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(feature = "http")]
struct Weighed {
    bytes: Bytes,
    _weight: Weight,
}

#[cfg(feature = "http")]
impl AsRef<[u8]> for Weighed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "http")]
    #[test]
    fn bounded_bytes_are_weighed_until_the_last_part_of_them_is_gone() {
        let budget = Budget::new(10);
        let mut weight = budget.begin();
        assert!(weight.more(4) && weight.more(4));
        assert!(!weight.more(4), "there is no more");
        assert!(weight.more(2), "what was refused was not taken");
        let bytes = weight.attach(Bytes::from_static(b"0123456789"));
        let part = bytes.slice(3..4);
        drop(bytes);
        assert!(!budget.begin().more(1));
        drop(part);
        assert!(budget.begin().more(10));
    }

    #[test]
    fn bounded_what_grows_and_shrinks_is_weighed_beyond_its_free_beginning() {
        let budget = Budget::new(100);
        let mut weight = budget.begin();
        assert!(weight.resize(0, FREE), "that is free");
        assert!(budget.begin().more(100));
        assert!(weight.resize(FREE, FREE + 60));
        assert!(!weight.resize(FREE + 60, FREE + 101), "there is no more");
        assert!(weight.resize(FREE + 60, FREE + 10));
        assert!(budget.begin().more(90) && !budget.begin().more(91));
        assert!(weight.resize(FREE + 10, 0));
        assert!(budget.begin().more(100));
    }
}
