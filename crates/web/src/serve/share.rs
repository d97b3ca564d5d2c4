//! What may wait in memory. Each address and each connection has a share of what is free, so that
//! whoever fills it is who waits, and others find room.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// Of what is free, the part that one address may have, and that one connection may have. The
/// latter is what all streams of a connection have under way when they take files.
const ADDRESS: usize = 8;
const CONNECTION: usize = 16;

/// Bytes that wait, at one place.
pub(super) type Tally = Arc<AtomicUsize>;

/// The tallies of one thread: of all its clients, and of each address.
#[derive(Default)]
pub(super) struct Tallies {
    all: Tally,
    addresses: HashMap<Option<IpAddr>, Weak<AtomicUsize>>,
}

/// The share of one connection.
#[derive(Debug)]
pub(super) struct Share {
    all: Tally,
    address: Tally,
    connection: AtomicUsize,
}

impl Tallies {
    pub(super) fn share(&mut self, peer: Option<IpAddr>) -> Arc<Share> {
        if self.addresses.len() == self.addresses.capacity() {
            self.addresses.retain(|_, tally| tally.strong_count() > 0);
        }
        let known = self.addresses.entry(peer.map(network)).or_default();
        let address = known.upgrade().unwrap_or_default();
        *known = Arc::downgrade(&address);
        Arc::new(Share { all: Arc::clone(&self.all), address, connection: AtomicUsize::default() })
    }
}

/// Where one client may have any address, the network.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        address => address,
    }
}

impl Share {
    /// Whether more waits than should, of `most` for the whole thread; `least` may always, while
    /// anything is free.
    pub(super) fn is_over(&self, most: usize, least: usize) -> bool {
        let free = most.saturating_sub(self.all.load(Relaxed));
        free == 0
            || self.address.load(Relaxed) > least.max(free / ADDRESS)
            || self.connection.load(Relaxed) > least.max(free / CONNECTION)
    }

    /// Whether nothing waits for this connection.
    pub(super) fn is_empty(&self) -> bool {
        self.connection.load(Relaxed) == 0
    }
}

/// Counts bytes for as long as they wait.
pub(super) struct Waiting {
    pub(super) share: Arc<Share>,
    bytes: usize,
}

impl Waiting {
    pub(super) fn new(share: &Arc<Share>, bytes: usize) -> Self {
        let mut made = Self { share: Arc::clone(share), bytes: 0 };
        made.grow(bytes);
        made
    }

    /// More has come.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        for tally in [&*self.share.all, &*self.share.address, &self.share.connection] {
            tally.fetch_add(bytes, Relaxed);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        for tally in [&*self.share.all, &*self.share.address, &self.share.connection] {
            tally.fetch_sub(self.bytes, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 128 << 20;

    #[test]
    fn whoever_fills_its_share_leaves_room_for_others() {
        let mut tallies = Tallies::default();
        let mut own = |address: &str| tallies.share(Some(address.parse().unwrap()));
        let mut held = Vec::new();
        let mut fill = |share: &Arc<Share>| {
            while !share.is_over(MOST, 0) {
                held.push(Waiting::new(share, 64 << 10));
            }
        };
        let first = own("192.0.2.1");
        fill(&first);
        let of_one = first.connection.load(Relaxed) >> 20;
        assert!((7..=8).contains(&of_one), "{of_one} MiB");
        for _ in 0..100 {
            fill(&own("::ffff:192.0.2.1"));
        }
        let of_address = first.address.load(Relaxed) >> 20;
        assert!((13..=16).contains(&of_address), "{of_address} MiB");
        for at in 0..10 {
            fill(&own(&format!("2001:db8::{at}")));
        }
        let next = own("2001:db8:0:1::");
        assert!(!next.is_over(MOST, 0) && own("2001:db8::ffff").address.load(Relaxed) > 0);
        drop(held);
        assert_eq!(first.all.load(Relaxed), 0);
        assert!(!first.is_over(MOST, 0) && first.is_empty());
    }

    #[test]
    fn what_is_full_takes_nothing_and_addresses_that_left_are_forgotten() {
        let mut tallies = Tallies::default();
        let share = tallies.share(None);
        assert!(share.is_over(0, 1));
        for at in 0..10_000_u32 {
            drop(tallies.share(Some(std::net::Ipv4Addr::from_bits(at).into())));
        }
        assert!(tallies.addresses.capacity() < 100, "{}", tallies.addresses.capacity());
    }
}
