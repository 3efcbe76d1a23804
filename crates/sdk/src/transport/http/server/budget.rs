//! The bytes that clients make a server keep, weighed against one limit (**bounded**).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// How many bytes may be kept, and how many are.
#[derive(Debug)]
pub(super) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

/// A part of a budget, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Weight {
    of: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { limit, used })
    }

    /// Nothing of it yet.
    pub(super) fn begin(self: &Arc<Self>) -> Weight {
        let of = self.clone();
        Weight { of, bytes: 0 }
    }
}

impl Weight {
    /// Takes more, if there is that much left.
    pub(super) fn more(&mut self, bytes: usize) -> bool {
        let take = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.of.limit);
        let order = Ordering::Relaxed;
        let taken = self.of.used.fetch_update(order, order, take).is_ok();
        self.bytes += if taken { bytes } else { 0 };
        taken
    }

    /// The same bytes, which are weighed for as long as any part of them is kept: whoever holds a
    /// slice of a message holds all of it.
    pub(super) fn attach(self, bytes: Bytes) -> Bytes {
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

struct Weighed {
    bytes: Bytes,
    _weight: Weight,
}

impl AsRef<[u8]> for Weighed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
