//! How the limits of a server are shared among its peers (**bounded**).
//!
//! Each [`Pool`] has a limit. A peer may hold no more of a pool than it leaves to the others: a
//! single peer can have half of it, the next one half of the rest. So many peers are needed to use
//! up a pool, and their number need not be known in advance. (Network switches share their buffers
//! between queues like this; it is known as *dynamic thresholds*.)

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// The first bytes of everything that is counted in bytes are free, so that small
/// messages pass under any load.
pub(crate) const FREE: usize = 8 << 10;

/// A limited resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pool {
    /// Bytes that peers cause a server to keep.
    Bytes,
    /// Running handlers.
    Handlers,
    /// Open subscriptions, which do not count as handlers.
    Listens,
    /// Threads of blocking handlers, which cannot be stopped.
    Blocking,
    /// Legacy sessions and event streams.
    Sessions,
    /// HTTP requests, until the last byte of their response was taken.
    Requests,
    Connections,
}

const POOLS: usize = 7;

/// The pools of a server.
#[derive(Debug)]
pub(crate) struct Pools {
    limits: [usize; POOLS],
    used: [AtomicUsize; POOLS],
    /// Notifies tasks that wait for bytes to be released.
    freed: Notify,
    waiting: AtomicUsize,
}

/// A client, or a link, that uses the pools.
#[derive(Debug)]
pub(crate) struct Peer {
    pools: Arc<Pools>,
    held: [AtomicUsize; POOLS],
    /// The only user of these pools, which may take all of them.
    alone: bool,
}

/// A peer's part of a pool, which is released on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    peer: Arc<Peer>,
    pool: Pool,
    amount: usize,
}

impl Pools {
    pub(crate) fn new(limit: impl Fn(Pool) -> usize) -> Arc<Self> {
        use Pool::*;
        let pools = [
            Bytes,
            Handlers,
            Listens,
            Blocking,
            Sessions,
            Requests,
            Connections,
        ];
        Arc::new(Self {
            limits: pools.map(limit),
            used: Default::default(),
            freed: Notify::new(),
            waiting: AtomicUsize::new(0),
        })
    }

    fn limit(&self, pool: Pool) -> usize {
        self.limits[pool as usize]
    }

    pub(crate) fn used(&self, pool: Pool) -> usize {
        self.used[pool as usize].load(ORDER)
    }

    /// A peer that shares the pools with others.
    #[cfg(any(test, all(feature = "http", feature = "server")))]
    pub(crate) fn peer(self: &Arc<Self>) -> Arc<Peer> {
        self.taker(false)
    }

    /// A peer that has the pools to itself.
    pub(crate) fn only_peer(self: &Arc<Self>) -> Arc<Peer> {
        self.taker(true)
    }

    fn taker(self: &Arc<Self>, alone: bool) -> Arc<Peer> {
        Arc::new(Peer {
            pools: self.clone(),
            held: Default::default(),
            alone,
        })
    }
}

impl Peer {
    /// A permit for nothing yet.
    pub(crate) fn begin(self: &Arc<Self>, pool: Pool) -> Permit {
        Permit {
            peer: self.clone(),
            pool,
            amount: 0,
        }
    }

    /// A permit for this amount, if the peer may have it.
    pub(crate) fn take(self: &Arc<Self>, pool: Pool, amount: usize) -> Option<Permit> {
        let mut permit = self.begin(pool);
        permit.more(amount).then_some(permit)
    }

    /// The limit of a pool.
    pub(crate) fn limit(&self, pool: Pool) -> usize {
        self.pools.limit(pool)
    }

    /// Whether the peer may take this amount of a pool.
    pub(crate) fn could_take(&self, pool: Pool, amount: usize) -> bool {
        let used = self.pools.used(pool);
        self.sum_if_allowed(pool, used, amount).is_some()
    }

    /// How much of a pool the peer may still take.
    pub(crate) fn room(&self, pool: Pool) -> usize {
        let left = self.pools.limit(pool).saturating_sub(self.pools.used(pool));
        match self.alone {
            true => left,
            false => {
                let held = self.held[pool as usize].load(ORDER);
                left.saturating_add(1).saturating_sub(held) / 2
            }
        }
    }

    /// Whether the peer, for which nothing is left, may have what another peer releases:
    /// only if it holds nothing itself.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn could_take_from_others(&self, pool: Pool) -> bool {
        self.alone || self.held[pool as usize].load(ORDER) == 0
    }

    /// Whether the peer could take one if it released one of its own.
    #[cfg(all(feature = "http", feature = "server"))]
    pub(crate) fn could_take_for_its_own(&self, pool: Pool) -> bool {
        let left = self.pools.limit(pool).saturating_sub(self.pools.used(pool));
        self.alone || self.held[pool as usize].load(ORDER) <= left.saturating_add(1)
    }

    /// The total use of a pool after the peer has taken this amount, if it may.
    fn sum_if_allowed(&self, pool: Pool, used: usize, amount: usize) -> Option<usize> {
        if amount == 0 {
            return Some(used);
        }
        let sum = used.checked_add(amount)?;
        let left = self.pools.limit(pool).checked_sub(sum)?;
        let held = self.held[pool as usize].load(ORDER).checked_add(amount)?;
        // Rounded up: a peer may have the larger half, and so the only one of a pool of one.
        (self.alone || held <= left.saturating_add(1)).then_some(sum)
    }

    /// Registers a task that waits for bytes to be released.
    pub(crate) fn wait_for_bytes(&self) -> WaitsForBytes<'_> {
        self.pools.waiting.fetch_add(1, Ordering::SeqCst);
        WaitsForBytes(&self.pools)
    }
}

/// A task that waits for bytes to be released by any peer.
pub(crate) struct WaitsForBytes<'a>(&'a Pools);

impl WaitsForBytes<'_> {
    /// Ready when bytes were released after this was called, whether it was polled
    /// in between or not.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.0.freed.notified()
    }
}

impl Drop for WaitsForBytes<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Permit {
    /// Takes more, if the peer may have it.
    pub(crate) fn more(&mut self, amount: usize) -> bool {
        let (peer, pool) = (&self.peer, self.pool);
        let allowed = |used| peer.sum_if_allowed(pool, used, amount);
        let used = &peer.pools.used[pool as usize];
        let taken = used.fetch_update(ORDER, ORDER, allowed).is_ok();
        if taken {
            self.hold(amount);
        }
        taken
    }

    /// Adjusts the permit to a new size of something, without its free part. Returns false, and
    /// changes nothing, if the peer may not have that much.
    pub(crate) fn resize(&mut self, from: usize, to: usize) -> bool {
        let (from, to) = (from.saturating_sub(FREE), to.saturating_sub(FREE));
        if to > from {
            return self.more(to - from);
        }
        self.give_back(from - to);
        true
    }

    /// Counts something that exists already, whether there is room for it or not.
    pub(crate) fn weigh(&mut self, bytes: usize) {
        let weight = bytes.saturating_sub(FREE);
        match weight.checked_sub(self.amount) {
            Some(more) => {
                self.peer.pools.used[self.pool as usize].fetch_add(more, ORDER);
                self.hold(more);
            }
            None => self.give_back(self.amount - weight),
        }
    }

    /// Ties the permit to the bytes: it is held until every slice of them is dropped, since a slice
    /// keeps the whole message in memory.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        match self.amount {
            0 => bytes,
            _ => Bytes::from_owner(Weighed {
                bytes,
                _permit: self,
            }),
        }
    }

    fn hold(&mut self, amount: usize) {
        self.amount += amount;
        self.peer.held[self.pool as usize].fetch_add(amount, ORDER);
    }

    fn give_back(&mut self, amount: usize) {
        if amount == 0 {
            return;
        }
        self.amount -= amount;
        let pools = &self.peer.pools;
        self.peer.held[self.pool as usize].fetch_sub(amount, ORDER);
        pools.used[self.pool as usize].fetch_sub(amount, ORDER);
        // What is waited for is bytes. A request that ends gives back other permits, too, for which
        // every handler that waits would look in vain.
        if self.pool == Pool::Bytes && pools.waiting.load(ORDER) > 0 {
            pools.freed.notify_waiters();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.give_back(self.amount);
    }
}

/// A waiting task registers first and checks then, and a release changes first and checks then.
/// Only in a total order does at least one of them see the other.
const ORDER: Ordering = Ordering::SeqCst;

struct Weighed {
    bytes: Bytes,
    _permit: Permit,
}

impl AsRef<[u8]> for Weighed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools(limit: usize) -> Arc<Pools> {
        Pools::new(|_| limit)
    }

    #[test]
    fn bounded_bytes_are_weighed_until_the_last_part_of_them_is_gone() {
        let peer = pools(10).only_peer();
        let mut permit = peer.begin(Pool::Bytes);
        assert!(permit.more(4) && permit.more(4));
        assert!(!permit.more(4), "there is no more");
        assert!(permit.more(2), "what was refused was not taken");
        let bytes = permit.attach(Bytes::from_static(b"0123456789"));
        let part = bytes.slice(3..4);
        drop(bytes);
        assert!(!peer.could_take(Pool::Bytes, 1));
        drop(part);
        assert!(peer.could_take(Pool::Bytes, 10));
    }

    #[test]
    fn bounded_what_grows_and_shrinks_is_weighed_beyond_its_free_beginning() {
        let peer = pools(100).only_peer();
        let room = |bytes| peer.could_take(Pool::Bytes, bytes);
        let mut permit = peer.begin(Pool::Bytes);
        assert!(permit.resize(0, FREE), "that is free");
        assert!(room(100));
        assert!(permit.resize(FREE, FREE + 60));
        assert!(!permit.resize(FREE + 60, FREE + 101), "there is no more");
        assert!(permit.resize(FREE + 60, FREE + 10));
        assert!(room(90) && !room(91));
        assert!(permit.resize(FREE + 10, 0));
        assert!(room(100));
    }

    #[test]
    fn bounded_what_is_there_already_is_weighed_even_beyond_the_limit() {
        let peer = pools(100).only_peer();
        let mut permit = peer.begin(Pool::Bytes);
        permit.weigh(FREE + 150);
        assert!(!peer.could_take(Pool::Bytes, 1));
        assert!(peer.could_take(Pool::Bytes, 0), "nothing is always there");
        permit.weigh(FREE + 40);
        assert!(peer.could_take(Pool::Bytes, 60) && !peer.could_take(Pool::Bytes, 61));
        permit.weigh(3);
        assert!(peer.could_take(Pool::Bytes, 100));
    }

    /// Takes one at a time until no more is allowed.
    fn take_all(peer: &Arc<Peer>) -> Vec<Permit> {
        std::iter::from_fn(|| peer.take(Pool::Sessions, 1)).collect()
    }

    #[test]
    fn bounded_no_peer_holds_more_than_it_leaves_to_the_others() {
        let pools = pools(100);
        let (first, second, third) = (pools.peer(), pools.peer(), pools.peer());
        let of_first = take_all(&first);
        assert_eq!(of_first.len(), 50);
        let of_second = take_all(&second);
        assert_eq!(of_second.len(), 25, "half of what was left");
        assert!(third.take(Pool::Sessions, 1).is_some(), "so there is more");
        assert_eq!(pools.used(Pool::Sessions), 75);
        drop(of_first);
        assert_eq!(take_all(&second).len() + of_second.len(), 50);
        assert_eq!(pools.used(Pool::Handlers), 0, "each pool by itself");
    }

    #[test]
    fn the_room_of_a_peer_is_what_it_can_take() {
        let pools = pools(101);
        let (one, other, only) = (pools.peer(), pools.peer(), pools.only_peer());
        let _held = [one.take(Pool::Bytes, 20), other.take(Pool::Bytes, 7)];
        for peer in [&one, &other, &only] {
            let room = peer.room(Pool::Bytes);
            assert!(peer.could_take(Pool::Bytes, room), "{room}");
            assert!(!peer.could_take(Pool::Bytes, room + 1), "{room}");
        }
    }

    #[test]
    fn bounded_there_is_always_something_left_for_the_next_one() {
        let pools = pools(1000);
        let peers: Vec<_> = (0..8).map(|_| pools.peer()).collect();
        let held: Vec<_> = peers.iter().map(take_all).collect();
        assert!(held.iter().all(|held| !held.is_empty()));
        assert!(pools.peer().could_take(Pool::Sessions, 1));
    }

    #[tokio::test]
    async fn whoever_waits_for_bytes_is_told_of_those_that_are_given_back() {
        let pools = pools(10);
        let (peer, other) = (pools.only_peer(), pools.only_peer());
        let held = other.take(Pool::Bytes, 10).unwrap();
        let waits = peer.wait_for_bytes();
        let freed = waits.freed();
        assert!(!peer.could_take(Pool::Bytes, 1));
        drop(held);
        freed.await;
        assert!(peer.could_take(Pool::Bytes, 1));
    }
}
