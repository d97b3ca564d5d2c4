//! The slots, found by hash. A key lies in its own slot, or else anywhere in either of two buckets
//! of four: an entry is found by reading one cache line, or at most two pairs of them, however many
//! entries there are.

use crate::{
    slot::{Key, Slot},
    sync::Hasher,
};
use flask::{Decision, Seqno};
use std::{hash::BuildHasher, iter::once};

/// Slots in a bucket.
const WAYS: usize = 4;

/// Buckets may be half full on average; then all but a few of 1,000 entries find room.
const SPARE: usize = 2;

/// The fewest entries: with fewer buckets, chance would fill some of them too often.
const FEWEST: usize = 32;

/// Two cache lines, side by side.
#[derive(Default)]
#[repr(align(128))]
struct Bucket([Slot; WAYS]);

/// A fixed number of slots.
pub(crate) struct Table {
    buckets: Box<[Bucket]>,
    hasher: Hasher,
}

impl Table {
    /// Room for about `entries`, in twice as many slots of 32 bytes.
    pub(crate) fn new(entries: usize) -> Self {
        let buckets = (entries.clamp(FEWEST, 1 << 28) * SPARE / WAYS).next_power_of_two();
        Self {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            hasher: Hasher::default(),
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
        let home = self.home(key);
        if let Some(decision) = self.slot(home.slot).answer(key, current) {
            return Some((home.slot as u32, decision));
        }
        home.buckets.iter().find_map(|bucket| self.find_in(*bucket, key, current))
    }

    fn find_in(&self, bucket: usize, key: Key, current: Seqno) -> Option<(u32, Decision)> {
        let slots = &self.buckets[bucket].0;
        // All four are compared before the first branch: which one matches cannot be predicted.
        let mut matches = 0_u32;
        for (way, slot) in slots.iter().enumerate() {
            matches |= u32::from(slot.names(key)) << way;
        }
        while matches != 0 {
            let way = matches.trailing_zeros() as usize;
            if let Some(decision) = slots[way % WAYS].answer(key, current) {
                return Some(((bucket * WAYS + way) as u32, decision));
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

    /// Where `key` goes: over its own older entry, else where nothing of use lies, else over the
    /// oldest of its first bucket.
    fn room(&self, key: Key, current: Seqno) -> usize {
        let home = self.home(key);
        let [first, second] = home.buckets.map(|bucket| bucket * WAYS..(bucket + 1) * WAYS);
        let places = || once(home.slot).chain(first.clone()).chain(second.clone());
        places()
            .find(|place| self.slot(*place).names(key))
            .or_else(|| places().find(|place| self.slot(*place).is_free(current)))
            .or_else(|| first.clone().min_by_key(|place| self.slot(*place).version()))
            .unwrap_or(home.slot)
    }

    #[inline]
    fn slot(&self, place: usize) -> &Slot {
        &self.buckets[place / WAYS].0[place % WAYS]
    }

    /// Where `key` may lie. The hash is seeded at random, so that no program can choose labels that
    /// meet.
    #[inline]
    fn home(&self, key: Key) -> Home {
        let hash = self.hasher.hash_one(key.sids ^ u64::from(key.class) << 24);
        let mask = self.buckets.len() - 1;
        let first = hash as usize & mask;
        let second = first ^ ((hash >> 32) as usize & mask | 1);
        Home { slot: first * WAYS + (hash >> 62) as usize, buckets: [first, second] }
    }
}

/// The places of one key.
struct Home {
    /// The place it takes if it can.
    slot: usize,
    /// The buckets it may lie in else; the first holds `slot`.
    buckets: [usize; 2],
}
