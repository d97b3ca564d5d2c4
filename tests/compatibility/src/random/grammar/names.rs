//! Calls on names.

use super::{LENGTHS, MODES, NAMED_AT, XATTR, at, changed, mostly, name, one, other};
use rand::{RngExt as _, rngs::SmallRng};

/// Flags of `open`: how, and what else.
const ACCESS: &[u32] = &[0, 0, 1, 2, 2, 3];
const OPEN: &[u32] = &[
    0,
    0,
    0o100,
    0o100,
    0o100,
    0o300,
    0o1000,
    0o1100,
    0o2000,
    0o2100,
    0o200_000,
    0o200_000,
    0o400_000,
    0o10_000_000,
    0o10_200_000,
    0o20_200_000,
    0o2_000_000,
    0o4_010_000,
    0o1_000_100,
    0o40_000,
    0o400_100,
];
/// A call on one or two names.
pub(crate) fn call(rng: &mut SmallRng) -> String {
    let a = name(rng);
    let (b, own) = (other(rng, a), changed(rng));
    let (from, to) = (at(rng), at(rng));
    let mode = one(rng, MODES);
    let flags = one(rng, NAMED_AT);
    let open =
        one(rng, ACCESS) | one(rng, OPEN) | if rng.random_ratio(1, 8) { one(rng, OPEN) } else { 0 };
    let length = one(rng, LENGTHS);
    let xattr = one(rng, XATTR);
    match rng.random_range(0..40) {
        0..6 => format!("openat {from} {a} {open} {mode}"),
        6..9 => format!("open {a} {open} {mode}"),
        9..11 => format!(
            "openat2 {from} {a} {} {} {} {}",
            u64::from(open) | if rng.random_ratio(1, 20) { 1 << 33 } else { 0 },
            if open & 0o100 != 0 { mode & 0o777 } else { 0 },
            one(rng, &[0, 0, 1, 2, 4, 8, 16, 32, 64, 12, 6, 10, 18, 24, 128]),
            one(rng, &[24, 24, 24, 24, 24, 24, 24, 32, 40, 16, 0])
        ),
        11 => format!("creat {a} {mode}"),
        12 => format!("truncate {a} {length}"),
        13 => format!("stat {a}"),
        14 => format!("lstat {a}"),
        15 => format!("fstatat {from} {a} {flags}"),
        16 => format!(
            "statx {from} {a} {} {}",
            flags | one(rng, &[0, 0, 0x2000, 0x4000, 0x6000]),
            one(rng, &[0x7ff, 0x7ff, 0, 0x1, 0x240, 0xfff, 0x1_0000, 0x8000_0000_u32])
        ),
        17 => format!("access {a} {}", rng.random_range(0..9)),
        18 => format!("faccessat2 {from} {a} {} {flags}", rng.random_range(0..8)),
        19 => format!("readlink {from} {a} {}", one(rng, &[0, 1, 4096])),
        20 => format!("chdir {a}"),
        21 | 22 => format!("mkdirat {from} {a} {mode}"),
        23 => format!("rmdir {a}"),
        24 => format!("unlinkat {from} {a} {}", one(rng, &[0, 0, 0x200, 1])),
        25 | 26 => format!("rename {a} {b}"),
        27 => {
            format!(
                "renameat2 {from} {a} {to} {b} {}",
                mostly(rng, &[0, 1, 2, 3, 8, 0, 1, 2], &[4, 5])
            )
        }
        28 => format!("link {a} {b}"),
        29 => format!("linkat {from} {a} {to} {b} {flags}"),
        30 | 31 => format!("symlinkat {a} {to} {b}"),
        32 => format!(
            "mknod {from} {a} {}",
            mode | mostly(rng, &[0o010_000, 0o010_000, 0o100_000, 0, 0o140_000], &[0o020_000])
        ),
        33 => format!("chmod {own} {mode}"),
        34 => format!("fchmodat2 {from} {own} {mode} {flags}"),
        35 => format!(
            "chown {from} {own} {} {} {flags}",
            one(rng, &[-1, 0, 1, 12345]),
            one(rng, &[-1, 0, 12345])
        ),
        36 => format!("utimes {from} {own} {} {flags}", one(rng, &[1, 1_000_000_000, -1])),
        37 => {
            format!("setxattr {own} {xattr} {} {}", rng.random_range(0..4), rng.random_range(0..2))
        }
        38 => format!("getxattr {a} {xattr} {}", one(rng, &[0, 1, 100])),
        _ => match rng.random_range(0..4) {
            0 => format!("removexattr {own} {xattr}"),
            1 => format!("listxattr {a} {}", one(rng, &[0, 1, 100])),
            2 => format!("renameat {from} {a} {to} {b}"),
            _ => format!("inotify {own} {}", one(rng, &[0x100, 0xfff, 0, 0x0100_0100])),
        },
    }
}
