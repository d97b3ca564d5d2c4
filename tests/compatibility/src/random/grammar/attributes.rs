//! Calls on attributes of files: times, owners, extended attributes.

use super::{LENGTHS, MODES, NAMED_AT, XATTR, at, changed, changed_fd, fd, name, one, other};
use rand::{RngExt as _, rngs::SmallRng};

/// `UTIME_NOW` and `UTIME_OMIT` of utimensat(2), and what is none.
const NANOSECONDS: &[i64] = &[0, 5, 0x3fff_ffff, 0x3fff_fffe, 1_000_000_000, -1];

/// A call on the attributes of a file, by name or descriptor.
pub(crate) fn call(rng: &mut SmallRng) -> String {
    let (a, fd) = (name(rng), fd(rng));
    let (b, own, own_fd) = (other(rng, a), changed(rng), changed_fd(rng));
    let (from, to) = (at(rng), at(rng));
    let (mode, flags, xattr) = (one(rng, MODES), one(rng, NAMED_AT), one(rng, XATTR));
    let size = one(rng, &[0, 1, 5, 100]);
    match rng.random_range(0..22) {
        0..3 => format!(
            "utimens {from} {} {} {} {} {flags} {}",
            if rng.random_ratio(1, 4) { "-" } else { own },
            one(rng, &[1, 2, 1_000_000_000]),
            one(rng, NANOSECONDS),
            one(rng, NANOSECONDS),
            u8::from(rng.random_ratio(1, 4))
        ),
        3 => {
            format!("utimens {own_fd} - 3 {} {} 0 0", one(rng, NANOSECONDS), one(rng, NANOSECONDS))
        }
        4 => format!("utime {own} {}", one(rng, &[0, 1, 1_000_000])),
        5 => {
            format!("futimesat {from} {own} {} {}", one(rng, &[1, 7]), one(rng, &[0, 5, 1_000_000]))
        }
        6 => format!("lchown {own} {} {}", one(rng, &[-1, 0, 12345]), one(rng, &[-1, 0])),
        7 => format!("fchmodat {from} {own} {mode}"),
        8 => format!("fgetxattr {fd} {xattr} {size}"),
        9 => format!("lgetxattr {a} {xattr} {size}"),
        10 => format!("flistxattr {fd} {size}"),
        11 => format!("llistxattr {a} {size}"),
        12 => format!("fremovexattr {own_fd} {xattr}"),
        13 => format!("lremovexattr {own} {xattr}"),
        // Not there, which ends what is compared.
        14 if rng.random_ratio(1, 8) => match rng.random() {
            true => {
                format!("setxattrat {from} {a} {xattr} {flags} {size} {}", rng.random_range(0..4))
            }
            false => format!("removexattrat {from} {a} {xattr} {flags}"),
        },
        15 => format!("getxattrat {from} {a} {xattr} {flags} {size} 0"),
        16 => format!("listxattrat {from} {a} - {flags} {size}"),
        17 | 18 => {
            format!("mknod_old {a} {}", mode | one(rng, &[0o010_000, 0o100_000, 0, 0o140_000]))
        }
        19 => match rng.random() {
            true => format!("statfs {a}"),
            false => format!("fstatfs {fd}"),
        },
        20 => format!(
            "handle {from} {a} {} {}",
            one(rng, &[0, 0x400, 0x1000, 0x200, 8]),
            one(rng, &[0, 128, 4])
        ),
        _ => match rng.random_range(0..3) {
            0 => format!("renameat {from} {a} {to} {b}"),
            1 => format!("truncate {a} {}", one(rng, LENGTHS)),
            _ => format!("statx {from} {a} {flags} 2047"),
        },
    }
}
