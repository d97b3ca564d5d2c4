//! Calls on what a process is.

use super::{mostly, name, one};
use rand::{RngExt as _, rngs::SmallRng};

/// Options of prctl(2) that answer in numbers.
const OPTIONS: &[u32] = &[3, 4, 38, 39, 1, 2, 36, 37, 7, 24, 29, 30, 41, 42, 47, 99];
/// Those that tell of what keeps a program in.
const TELLING: &[u32] = &[8, 21, 23, 27];
/// Limits that change what the program itself can do later, or nothing.
const LIMITS: &[u32] = &[0, 4, 7, 11, 12, 13, 14, 15, 99];
/// `RLIMIT_LOCKS`.
const LOCKS: &[u32] = &[10];

/// A call on the IDs, limits, priorities and options of the process itself.
pub(crate) fn call(rng: &mut SmallRng) -> String {
    let flag = rng.random_range(0..2);
    match rng.random_range(0..24) {
        0..3 => one(rng, &["setsid", "setpgid", "ids", "groups", "personality", "capget"]).into(),
        3 | 4 => format!("unshare {}", one(rng, &[0x200, 0x400, 0x600, 0x10_000, 0])),
        5..9 => format!("prctl {} {flag}", mostly(rng, OPTIONS, TELLING)),
        9 | 10 => format!("setrlimit {} {}", one(rng, &[7, 1]), one(rng, &[5, 8, 100, 5000])),
        11 => format!("soft {} {}", mostly(rng, LIMITS, LOCKS), one(rng, &[0, 20, 1000])),
        12 | 13 => format!("getrlimit {}", mostly(rng, LIMITS, LOCKS)),
        14 => format!("setuid {}", one(rng, &[0, 1, 12345])),
        15 => format!("setgid {}", one(rng, &[0, 1, -1])),
        16 => format!("setfsuid {}", one(rng, &[0, 12345])),
        17 => format!("priority {}", one(rng, &[0, 5, 19])),
        18 => match rng.random_range(0..3) {
            0 => format!("getpriority {}", one(rng, &[0, 1, 9])),
            1 => "getpolicy".into(),
            _ => "getioprio".into(),
        },
        19 => format!("policy {} {}", one(rng, &[0, 1, 3, 5, 9]), flag),
        20 => format!("affinity {}", one(rng, &[-1, 0, 1, 900])),
        21 => format!("ioprio {}", one(rng, &[0, 16_388, 24_576, 8192])),
        // Refused to everybody, which ends what is compared.
        22 if rng.random_ratio(1, 8) => {
            format!("{} {} 0", one(rng, &["chroot", "mount", "umount"]), name(rng))
        }
        _ => format!("umask {}", one(rng, &[0o022, 0, 0o077])),
    }
}
