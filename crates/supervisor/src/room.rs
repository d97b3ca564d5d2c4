//! Descriptors that are left for control and changes, whatever the monitor holds for the program.

use rustix::{
    fs::{Dir, fstat},
    io::Result,
    process::{Resource, getrlimit},
};
use std::{
    os::fd::AsFd,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

/// So many are left, or a quarter where the limit (`RLIMIT_NOFILE`) is low.
const LEFT: u64 = 256;
/// Messages that are being sent hold so many together of those that they pass on, or a quarter
/// where the limit is low.
const MOST_PASSED: u64 = 1024;
/// What else the monitor can hold for the program is less: files of sockets, terminals and sockets,
/// 512 of each, and what 128 calls that wait, and 256 that do not, have opened. Where the limit is
/// higher, nobody counts.
const PLENTY: u64 = 8192;
/// Between two looks while there is room; no call holds more than a few, but for what it passes on.
const CALLS: u32 = 16;

/// Whether there is room for what calls on the program's behalf need.
#[derive(Debug)]
pub struct Room {
    /// So many may be open, beside those that are passed on.
    most: u64,
    calls: AtomicU32,
    is_short: AtomicBool,
    most_passed: u64,
    passed: AtomicU64,
}

/// Room for descriptors that a message passes on, until this is dropped.
#[derive(Debug)]
pub struct Passing<'a> {
    room: &'a Room,
    count: u64,
}

impl Room {
    /// In the table of this process, as its limit is now.
    #[must_use]
    pub fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most_passed = MOST_PASSED.min(limit / 4);
        Self::of(limit - LEFT.min(limit / 4) - most_passed, most_passed)
    }

    fn of(most: u64, most_passed: u64) -> Self {
        let (calls, is_short) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { most, calls, is_short, most_passed, passed: AtomicU64::new(0) }
    }

    /// Room for `count` descriptors that a message passes on, asked for before they are duplicated;
    /// `None` if those that are being sent hold too many.
    pub fn pass(&self, count: usize) -> Option<Passing<'_>> {
        let count = count as u64;
        let more = |passed: u64| passed.checked_add(count).filter(|it| *it <= self.most_passed);
        let taken = self.passed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.ok().map(|_| Passing { room: self, count })
    }

    /// Whether one more call may be decided. `own_fds` is the `/proc/self/fd` of this process.
    pub fn has_more(&self, own_fds: impl AsFd) -> bool {
        if self.most >= PLENTY {
            return true;
        }
        let count = self.calls.fetch_add(1, Ordering::Relaxed);
        if !self.is_short.load(Ordering::Relaxed) && !count.is_multiple_of(CALLS) {
            return true;
        }
        // Whoever cannot count has none left.
        let has_more = open(own_fds).is_ok_and(|open| open < self.most);
        self.is_short.store(!has_more, Ordering::Relaxed);
        has_more
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.room.passed.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// How many descriptors are open.
fn open(own_fds: impl AsFd) -> Result<u64> {
    match fstat(&own_fds)?.st_size {
        // Before Linux 6.2 the directory has no size.
        0 => {
            let entries = Dir::read_from(own_fds)?.filter_map(std::result::Result::ok);
            let is_one = |name: &[u8]| !name.starts_with(b".");
            Ok(entries.filter(|entry| is_one(entry.file_name().to_bytes())).count() as u64)
        }
        count => Ok(count.cast_unsigned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_is_left_is_not_used_and_there_is_room_again_once_something_is_closed() {
        let own_fds = File::open("/proc/self/fd").unwrap();
        // Of numbers that are free between others, too.
        let between: Vec<File> = (0..50).map(|_| own_fds.try_clone().unwrap()).collect();
        let room = Room::of(open(&own_fds).unwrap() + 200, 0);
        let mut held = vec![own_fds.try_clone().unwrap()];
        drop(between);
        while room.has_more(&own_fds) {
            held.push(own_fds.try_clone().unwrap());
            assert!(held.len() < 400, "nothing is left");
        }
        assert!(!room.has_more(&own_fds));
        drop(held);
        assert!(room.has_more(&own_fds));
    }

    #[test]
    fn what_messages_pass_on_is_bounded_together_until_they_are_sent() {
        let room = Room::of(0, 300);
        let first = room.pass(253).unwrap();
        assert!(room.pass(48).is_none() && room.pass(usize::MAX).is_none());
        let second = room.pass(47).unwrap();
        assert!(room.pass(1).is_none());
        drop((first, second));
        assert!(room.pass(300).is_some());
    }
}
