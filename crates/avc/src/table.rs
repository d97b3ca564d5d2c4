//! The slots, found by hash: a key may lie in either of two buckets of four, so that an entry is found by
//! reading at most two pairs of cache lines however many there are.

use crate::slot::{Key, Slot};
use flask::{Decision, Seqno};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// Slots in a bucket.
const WAYS: usize = 4;

/// Buckets may be half full on average; then all but a few of 10,000 entries find room.
const SPARE: usize = 2;

/// Two cache lines, side by side.
#[derive(Default)]
#[repr(align(128))]
struct Bucket([Slot; WAYS]);

/// A fixed number of slots.
pub(crate) struct Table {
    buckets: Box<[Bucket]>,
    hasher: RandomState,
}

impl Table {
    /// Room for about `entries`, in twice as many slots of 32 bytes.
    pub(crate) fn new(entries: usize) -> Self {
        let buckets = (entries.clamp(WAYS, 1 << 28) * SPARE / WAYS).next_power_of_two();
        Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            hasher: RandomState::default(),
        }
    }

    /// The answer at `place`, if it is one to `key` and not older than `current`.
    #[inline]
    pub(crate) fn at(&self, place: u32, key: Key, current: Seqno) -> Option<Decision> {
        let place = place as usize;
        self.buckets.get(place / WAYS)?.0[place % WAYS].answer(key, current)
    }

    /// The answer to `key` and its place, if there is one not older than `current`.
    #[inline]
    pub(crate) fn find(&self, key: Key, current: Seqno) -> Option<(u32, Decision)> {
        let [first, second] = self.homes(key);
        self.find_in(first, key, current).or_else(|| self.find_in(second, key, current))
    }

    #[inline]
    fn find_in(&self, home: usize, key: Key, current: Seqno) -> Option<(u32, Decision)> {
        let slots = &self.buckets[home].0;
        // All four are compared before the first branch: which one matches cannot be predicted.
        let mut matches = 0_u32;
        for (way, slot) in slots.iter().enumerate() {
            matches |= u32::from(slot.names(key)) << way;
        }
        while matches != 0 {
            let way = matches.trailing_zeros() as usize;
            if let Some(decision) = slots[way % WAYS].answer(key, current) {
                return Some(((home * WAYS + way) as u32, decision));
            }
            matches &= matches - 1;
        }
        None
    }

    /// Keeps an answer; returns its place, or `None` if another thread was writing there.
    pub(crate) fn insert(&self, key: Key, decision: Decision, current: Seqno) -> Option<u32> {
        let place = self.room(key, current);
        self.slot(place).write(key, decision).then_some(place as u32)
    }

    /// Where `key` goes: over its own older entry, else where nothing of use lies, else over the oldest of
    /// its first bucket.
    fn room(&self, key: Key, current: Seqno) -> usize {
        let places = || self.homes(key).into_iter().flat_map(|home| home * WAYS..(home + 1) * WAYS);
        let oldest = || places().take(WAYS).min_by_key(|place| self.slot(*place).version());
        places()
            .find(|place| self.slot(*place).names(key))
            .or_else(|| places().find(|place| self.slot(*place).is_free(current)))
            .or_else(oldest)
            .unwrap_or_default()
    }

    fn slot(&self, place: usize) -> &Slot {
        &self.buckets[place / WAYS].0[place % WAYS]
    }

    /// The two buckets that `key` may lie in. The hash is seeded at random, so that no program can choose
    /// labels that meet in one bucket.
    #[inline]
    fn homes(&self, key: Key) -> [usize; 2] {
        let hash = self.hasher.hash_one(key.sids ^ u64::from(key.class) << 24);
        let mask = self.buckets.len() - 1;
        [hash as usize & mask, (hash >> 32) as usize & mask]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        Key { sids: 1 << 32 | number as u64, class: 1 }
    }

    fn kept(table: &Table, entries: usize) -> usize {
        for number in 0..entries {
            table.insert(key(number), Decision::DENY_ALL, Seqno(0));
        }
        (0..entries).filter(|n| table.find(key(*n), Seqno(0)).is_some()).count()
    }

    #[test]
    fn as_many_entries_as_promised_find_room_but_for_a_hundredth() {
        for entries in [10, 1_000, 65_536, 1_000_000] {
            let kept = kept(&Table::new(entries), entries);
            assert!(kept * 100 >= entries * 99, "{kept} of {entries}");
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_labels() {
        let table = Table::new(64);
        let slots = table.buckets.len() * WAYS;
        assert!(kept(&table, 10_000) <= slots);
        assert_eq!(table.buckets.len() * WAYS, slots);
    }

    #[test]
    fn the_same_pair_of_sids_is_kept_apart_by_class() {
        let table = Table::new(64);
        for class in 1..=20_u8 {
            let allowed = flask::AccessVector(u32::from(class));
            let decision = Decision { allowed, ..Decision::DENY_ALL };
            table.insert(Key { sids: 7, class }, decision, Seqno(0));
        }
        for class in 1..=20_u8 {
            let found = table.find(Key { sids: 7, class }, Seqno(0));
            assert!(found.is_none_or(|(_, d)| d.allowed.0 == u32::from(class)), "{class}");
        }
    }
}
