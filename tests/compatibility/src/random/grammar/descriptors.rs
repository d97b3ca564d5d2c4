//! Calls on descriptors.

use super::{LENGTHS, MODES, XATTR, changed_fd, fd, mostly, one};
use rand::{RngExt as _, rngs::SmallRng};

/// A call on one or two descriptors.
pub(crate) fn call(rng: &mut SmallRng) -> String {
    let (a, b, own) = (fd(rng), fd(rng), changed_fd(rng));
    let length = one(rng, LENGTHS);
    match rng.random_range(0..42) {
        0..3 => format!("close {a}"),
        3 => format!(
            "close_range {} {} {}",
            rng.random_range(3..9),
            rng.random_range(3..9),
            one(rng, &[0, 2, 4])
        ),
        4 | 5 => format!("read {a} {length}"),
        6 => format!("pread {a} {length} {}", one(rng, LENGTHS)),
        7..10 => format!("write {a} {length}"),
        10 => format!("pwrite {a} {length} {}", one(rng, &[0, 1, 100, -1])),
        11 => format!("lseek {a} {} {}", one(rng, &[0, 1, 100, -1]), rng.random_range(0..5)),
        12 => format!("ftruncate {a} {length}"),
        13 => {
            format!(
                "fallocate {a} {} {} {}",
                one(rng, &[0, 0, 1, 3, 8, 16, 17, 32, 64, 2]),
                one(rng, LENGTHS),
                length
            )
        }
        14 => format!("fstat {a}"),
        15 => "getcwd".into(),
        16 => format!("fchdir {a}"),
        17 => format!("umask {}", one(rng, &[0o022, 0, 0o777, 0o077])),
        18 => format!("names {a}"),
        19 => format!("mmap {a} {} {}", one(rng, &[1, 3, 5, 0, 2]), one(rng, &[1, 2, 3])),
        20 => format!("copy {a} {b} {length}"),
        21 => format!("sendfile {a} {b} {length}"),
        22 => format!("splice {a} {b} {length}"),
        23 => format!("dup {a}"),
        24 => format!("dup2 {a} {}", one(rng, &[3, 4, 5, 6, 600])),
        25 => format!("dup3 {a} {} {}", one(rng, &[3, 4, 5, 6]), one(rng, &[0, 0o2_000_000, 1])),
        26 => {
            let commands =
                [1, 2, 3, 4, 4, 0, 1030, 1034, 1033, 8, 9, 10, 11, 1025, 1031, 1031, 1032, 1036];
            let command = mostly(rng, &commands, &[99]);
            let argument = match command {
                // An owner is a PID: which exist is no matter of the program.
                8 => 0,
                // Whoever waits for ever takes seconds.
                4 => one(rng, &[0o4000, 0o6000, 0o44_000, 0o24_000, 0o1_004_000]),
                1031 => one(rng, &[0, 1, 4096, 8192, 65_536, 1 << 20, 1 << 30]),
                _ => one(rng, &[0, 1, 3, 5, 0o2000]),
            };
            format!("fcntl {a} {command} {argument}")
        }
        27 => format!(
            "lock {a} {} {} {} {length}",
            one(rng, &[6, 37, 6]),
            rng.random_range(0..4),
            rng.random_range(0..9)
        ),
        28 => format!("flock {a} {}", one(rng, &[1, 2, 8, 0])),
        29 => format!("memfd {}", one(rng, &[0, 1, 2, 3, 8, 16, 24, 64])),
        30 => format!("fchmod {own} {}", one(rng, MODES)),
        31 => format!("fchown {own} {} {}", one(rng, &[-1, 0, 12345]), one(rng, &[-1, 0])),
        32 => format!("fsetxattr {own} {} {}", one(rng, XATTR), rng.random_range(0..3)),
        33 => format!("fsync {a} {}", rng.random_range(0..2)),
        34..37 => moving(rng, a, b, length),
        37 => format!("ioctl {a} {} {b}", rng.random_range(0..10)),
        _ => mapping(rng, a),
    }
}

/// Data that moves: in pieces, and at places of its own.
fn moving(rng: &mut SmallRng, a: i32, b: i32, length: i64) -> String {
    let (from, to) = (one(rng, &[0, 0, 1, 5, -1]), one(rng, &[0, 0, 2, 100, -1]));
    // `RWF_HIPRI`, `DSYNC`, `SYNC`, `NOWAIT`, `APPEND`, `NOAPPEND`.
    let flags = one(rng, &[0, 0, 0, 1, 2, 4, 8, 16, 32, 0x1000]);
    match rng.random_range(0..12) {
        0 => format!("readv {a} {length} {from} {flags}"),
        1 | 2 => format!("writev {a} {length} {from} {flags}"),
        3 => format!("vmsplice {a} {length}"),
        4 => format!("tee {a} {b} {length}"),
        5 => format!("copyat {a} {b} {length} {from} {to} {}", one(rng, &[0, 0, 1])),
        6 => format!("sendfileat {a} {b} {length} {from}"),
        7 => format!("spliceat {a} {b} {length} {from} {}", one(rng, &[0, -1])),
        8 => format!("fadvise {a} {}", rng.random_range(0..7)),
        9 => format!("readahead {a} {length}"),
        10 => format!("syncrange {a} {}", one(rng, &[0, 1, 2, 4, 7, 8])),
        _ => format!(
            "lockget {a} {} {} {} {length}",
            one(rng, &[5, 36]),
            rng.random_range(0..3),
            rng.random_range(0..9)
        ),
    }
}

/// The mapping that stays.
fn mapping(rng: &mut SmallRng, a: i32) -> String {
    match rng.random_range(0..10) {
        0..3 => format!(
            "map {a} {} {} {}",
            one(rng, &[1, 3, 3, 5, 2, 0, 7]),
            one(rng, &[1, 1, 2, 3, 0]),
            one(rng, &[0, 0, 0, 4096, 1])
        ),
        3 | 4 => "map_read".into(),
        5 | 6 => format!("map_write {}", one(rng, &[0, 0, 4090, 8000])),
        7 => format!("map_protect {}", one(rng, &[0, 1, 3, 5, 7])),
        8 => format!("map_sync {}", one(rng, &[1, 4, 2, 6, 5, 8])),
        _ => match rng.random_range(0..2) {
            0 => format!("map_advise {}", one(rng, &[3, 4, 8, 9, 22, 23, 99])),
            _ => format!("map_resize {}", one(rng, &[4096, 8192, 16_384, 0])),
        },
    }
}
