//! Calls on other processes.

use super::{at, fd, name, one};
use rand::{RngExt as _, rngs::SmallRng};

/// A call that executes, signals or waits.
pub(crate) fn call(rng: &mut SmallRng) -> String {
    let flag = rng.random_range(0..2);
    match rng.random_range(0..24) {
        0..4 => format!("execve {} {} {}", at(rng), name(rng), one(rng, &[0, 0, 0x100, 0x1000])),
        4 | 5 => format!("execve -100 {} 0", one(rng, &["t", "x"])),
        6..8 => format!("fexec {}", fd(rng)),
        8 => format!("kill {flag}"),
        9 => format!("tgkill {flag}"),
        10 => "kill_parent".into(),
        11 | 12 => format!("kill_child {flag}"),
        13 => "pidfd".into(),
        14 => "wait".into(),
        15 | 16 => format!("stop_child {}", one(rng, &[0, 2, 8, 0x2000_0000, 0x4000_0000])),
        17 | 18 => {
            format!("waitid {}", one(rng, &[4, 12, 0x0100_0004, 0x4000_0004, 0, 0x2000_0004]))
        }
        19 => format!("kill_group {flag}"),
        20 => format!("look_into_child {}", fd(rng)),
        21 => format!("trace_child {flag}"),
        _ => format!("queue {}", one(rng, &[0, 7])),
    }
}
