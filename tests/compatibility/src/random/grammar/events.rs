//! Calls on what tells of events.

use super::{fd, name, one};
use rand::{RngExt as _, rngs::SmallRng};

/// A call on epoll, counters, timers and watches.
pub(crate) fn call(rng: &mut SmallRng) -> String {
    let (a, b) = (fd(rng), fd(rng));
    let name = name(rng);
    match rng.random_range(0..22) {
        0 | 1 => format!("epoll {}", one(rng, &[0, 0o2_000_000, 1])),
        2..5 => format!(
            "epoll_ctl {a} {} {b} {}",
            one(rng, &[1, 1, 1, 2, 3, 4]),
            one(rng, &[1_u32, 4, 5, 0x2005, 0x8000_0001, 0x4000_0005, 0x1000_0001])
        ),
        5 | 6 => format!("epoll_wait {a}"),
        7 => format!("eventfd {} {}", one(rng, &[0, 1, 5]), one(rng, &[0, 1, 0o2_000_000])),
        8 => format!("count {a} {}", one(rng, &[0, 1, 7, -1, -2])),
        9 => format!("timerfd {}", one(rng, &[0, 1, 7, 99])),
        10 => format!("settimer {a} {} {}", rng.random_range(0..2), one(rng, &[0, 0, 1, 8])),
        11 => "signalfd".into(),
        12 => format!("poll {a} {}", one(rng, &[1, 4, 5, 0x2005])),
        13 => format!("select {a}"),
        14 | 15 => format!("watcher {}", one(rng, &[0, 0, 0o2_000_000, 1])),
        16 | 17 => format!(
            "watch {a} {} {}",
            one(rng, &[".", ".", "d", "a", "b", "l", "d/f", name]),
            one(
                rng,
                &[0xfff_u32, 0xfff, 0x100, 0x300, 0x8, 0x2000_0fff, 0x1000_0fff, 0x0100_0fff, 0]
            )
        ),
        18 => format!("unwatch {a} {}", one(rng, &[1, 1, 2, 0, -1])),
        _ => format!("watched {a}"),
    }
}
