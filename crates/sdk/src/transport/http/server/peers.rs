//! The clients of a server, among which its limits are shared (**bounded**).
//!
//! A peer is a [`Principal`], if middleware in front of the server has set one; else an
//! address. But loopback addresses and reverse proxies stand for many clients: there each
//! connection is a peer of its own.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Weak};

use crate::Principal;
use crate::driver::{Peer, Pools};
use crate::sync::Mutex;

/// All peers of a server that hold a share or are connected.
pub(super) struct Peers {
    pools: Arc<Pools>,
    /// The addresses that stand for many clients.
    proxies: Vec<IpAddr>,
    known: Mutex<Known>,
    /// For requests without a principal or a known connection.
    unknown: Arc<Peer>,
}

#[derive(Default)]
struct Known {
    peers: HashMap<Key, Weak<Peer>>,
    /// The number of peers at which dropped ones are removed.
    clean_at: usize,
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Principal(Principal),
    Address(IpAddr),
}

impl Peers {
    pub(super) fn new(pools: Arc<Pools>, proxies: Vec<IpAddr>) -> Self {
        Self {
            unknown: pools.only_peer(),
            pools,
            proxies,
            known: Mutex::default(),
        }
    }

    pub(super) fn pools(&self) -> &Arc<Pools> {
        &self.pools
    }

    /// The peer that connects from this address.
    pub(super) fn from(&self, address: IpAddr) -> Arc<Peer> {
        let address = address.to_canonical();
        let this_machine = [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            Ipv6Addr::LOCALHOST.into(),
        ];
        match this_machine.contains(&address) || self.proxies.contains(&address) {
            true => self.pools.peer(),
            false => self.known(Key::Address(network(address))),
        }
    }

    /// The peer of a principal, on any connection.
    pub(super) fn named(&self, principal: &Principal) -> Arc<Peer> {
        self.known(Key::Principal(principal.clone()))
    }

    /// The peer of requests without a principal or an address. All of them share it,
    /// and it has no share of its own.
    pub(super) fn unknown(&self) -> &Arc<Peer> {
        &self.unknown
    }

    fn known(&self, key: Key) -> Arc<Peer> {
        let mut known = self.known.lock();
        if let Some(peer) = known.peers.get(&key).and_then(Weak::upgrade) {
            return peer;
        }
        if known.peers.len() >= known.clean_at {
            known.peers.retain(|_, peer| peer.strong_count() > 0);
            known.clean_at = (2 * known.peers.len()).max(64);
        }
        let peer = self.pools.peer();
        known.peers.insert(key, Arc::downgrade(&peer));
        peer
    }
}

/// The network of an address: a customer has a whole IPv6 network and can use any address in it.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers() -> Peers {
        let proxies = vec!["10.0.0.1".parse().unwrap()];
        Peers::new(Pools::new(|_| 10), proxies)
    }

    fn same(one: &str, other: &str) -> bool {
        let peers = peers();
        let [one, other] = [one, other].map(|address| peers.from(address.parse().unwrap()));
        Arc::ptr_eq(&one, &other)
    }

    #[test]
    fn bounded_a_peer_is_an_address_or_a_network() {
        assert!(same("192.0.2.1", "192.0.2.1"));
        assert!(same("192.0.2.1", "::ffff:192.0.2.1"));
        assert!(!same("192.0.2.1", "192.0.2.2"));
        assert!(same("2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6"));
        assert!(!same("2001:db8:1:2::1", "2001:db8:1:3::1"));
    }

    #[test]
    fn bounded_where_an_address_stands_for_many_each_connection_is_a_peer() {
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1"] {
            assert!(!same(address, address), "{address}");
        }
    }

    #[test]
    fn bounded_a_name_is_one_peer_from_wherever() {
        let peers = peers();
        let named = |name: &str| peers.named(&Principal::new(name));
        let alice = named("alice");
        assert!(Arc::ptr_eq(&alice, &named("alice")));
        assert!(!Arc::ptr_eq(&alice, &named("bob")));
    }

    #[test]
    fn bounded_peers_that_are_gone_are_forgotten() {
        let peers = peers();
        let stays = peers.named(&Principal::new("stays"));
        for number in 0..1000 {
            peers.named(&Principal::new(number.to_string()));
        }
        assert!(peers.known.lock().peers.len() <= 64);
        let again = peers.named(&Principal::new("stays"));
        assert!(Arc::ptr_eq(&stays, &again));
    }
}
