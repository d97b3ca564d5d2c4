//! Descriptors that are left for control and changes, whatever the monitor holds for the program.

use rustix::{
    fs::{Dir, fstat},
    io::Result,
    process::{Resource, getrlimit},
};
use std::{
    os::fd::AsFd,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

/// So many are left, or a quarter where the limit (`RLIMIT_NOFILE`) is low.
const LEFT: u64 = 256;
/// What the monitor can hold for the program is less: where the limit is higher, nobody counts.
const PLENTY: u64 = 8192;
/// Between two looks while there is room; no call holds more than a few.
const CALLS: u32 = 16;

/// Whether there is room for what calls on the program's behalf need.
#[derive(Debug)]
pub struct Room {
    /// So many may be open.
    most: u64,
    calls: AtomicU32,
    is_short: AtomicBool,
}

impl Room {
    /// In the table of this process, as its limit is now.
    #[must_use]
    pub fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::of(limit - LEFT.min(limit / 4))
    }

    fn of(most: u64) -> Self {
        Self { most, calls: AtomicU32::new(0), is_short: AtomicBool::new(false) }
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
        let room = Room::of(open(&own_fds).unwrap() + 200);
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
}
