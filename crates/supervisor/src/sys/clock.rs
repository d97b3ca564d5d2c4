//! The clock by which file systems say when a file was made.
#![allow(unsafe_code)]

/// The time of the last tick, in seconds and nanoseconds: no file that is made from now on is
/// older.
pub fn last_tick() -> (i64, i64) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, which `time` is. Of a clock that every kernel has, it
    // does not fail.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
    (time.tv_sec, time.tv_nsec)
}
