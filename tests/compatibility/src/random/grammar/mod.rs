//! Of what calls random programs are made, and with what arguments.

pub(crate) mod attributes;
pub(crate) mod descriptors;
pub(crate) mod events;
pub(crate) mod identity;
pub(crate) mod names;
pub(crate) mod processes;
pub(crate) mod sockets;

use rand::{RngExt as _, rngs::SmallRng, seq::IndexedRandom as _};

/// Names of one program: it makes them, moves them and finds them again.
const NAMES: &[&str] = &[
    "a",
    "a",
    "a",
    "b",
    "b",
    "b",
    "c",
    "c",
    "d",
    "d",
    "d",
    "d/f",
    "d/f",
    "d/f",
    "d/a",
    "d/a",
    "d/b",
    "d/e",
    "d/e",
    "d/e/a",
    "l",
    "l",
    "l/f",
    "l/a",
    "t",
    "x",
    "s",
    "s",
    "d/s",
    ".",
    ".",
    "..",
    "''",
    "d/",
    "a/",
    "l/",
    "./a",
    "d/../a",
    "d/./f",
    "a/../b",
    "d/e/../f",
    "l/../a",
    "m/n",
    "%/a",
    "%/d/f",
    "%/d",
    "%",
    "@LONG",
    "d/@LONG",
    "/dev/null",
    "/dev/full",
    "/dev/zero",
    "/proc/self/fd/3",
    "/proc/self/fd/4",
    "/proc/self/fd/5",
    "/proc/self/cwd/a",
    "/proc/self/cwd/d/f",
    "/proc/self/cwd",
    "/proc/self/root%/a",
    "/proc/self/exe",
    "/proc/self/fd",
    "/proc/thread-self/fd/3",
    "/proc/thread-self/cwd/a",
    "/dev/fd/3",
    "..//w/a",
    "@a",
];
const LENGTHS: &[i64] = &[0, 1, 2, 3, 5, 8, 100, 4096];
const MODES: &[u32] =
    &[0o755, 0o644, 0o600, 0o777, 0o700, 0o000, 0o444, 0o500, 0o4755, 0o2755, 0o1777, 0o666];
/// `AT_SYMLINK_NOFOLLOW`, `AT_REMOVEDIR`, `AT_SYMLINK_FOLLOW`, `AT_EMPTY_PATH`, `AT_NO_AUTOMOUNT`.
const NAMED_AT: &[u32] = &[0, 0, 0, 0x100, 0x200, 0x400, 0x1000, 0x1100, 0x800];
const XATTR: &[&str] =
    &["user.a", "user.b", "user.", "trusted.a", "security.a", "system.posix_acl_access", "x", "''"];

fn name(rng: &mut SmallRng) -> &'static str {
    NAMES.choose(rng).expect("a name")
}

/// One of what is usual, and rarely one of what is `odd`: of what every program is told another
/// answer, which ends what is compared.
fn mostly<T: Copy>(rng: &mut SmallRng, usual: &[T], odd: &[T]) -> T {
    let is_odd = rng.random_ratio(1, 16);
    one(rng, if is_odd { odd } else { usual })
}

/// A name whose attributes are changed: rarely that of a device.
fn changed(rng: &mut SmallRng) -> &'static str {
    let chosen = name(rng);
    if in_file_system(chosen) == 2 {
        mostly(rng, &["a", "b", "d", "d/f"], &[chosen])
    } else {
        chosen
    }
}

/// A descriptor whose file's attributes are changed: rarely 0 or 1, which are devices.
fn changed_fd(rng: &mut SmallRng) -> i32 {
    mostly(rng, &[3, 3, 3, 4, 4, 5, 5, 6, 7, 8, -1, 600], &[0, 1])
}

/// A second name for `first`: rarely one of another file system.
fn other(rng: &mut SmallRng, first: &str) -> &'static str {
    let chosen = name(rng);
    if in_file_system(first) == in_file_system(chosen) {
        return chosen;
    }
    match in_file_system(first) {
        0 => mostly(rng, &["a", "b", "d", "d/f", "d/a", "l", "d/e", "s", "c"], &[chosen]),
        1 => mostly(rng, &["/proc/self/fd/3", "/proc/self/fd", "/proc/self/cwd"], &[chosen]),
        _ => mostly(rng, &["/dev/null", "/dev/full", "/dev/zero"], &[chosen]),
    }
}

/// The file system that holds a name: the program's own, that of processes, that of devices.
fn in_file_system(name: &str) -> u32 {
    let own = ["/proc/self/cwd/", "/proc/thread-self/cwd/", "/proc/self/root"];
    match name {
        _ if own.iter().any(|it| name.starts_with(it)) => 0,
        _ if name.starts_with("/proc/") || name.starts_with("/dev/fd/") => 1,
        _ => {
            if name.starts_with("/dev/") {
                2
            } else {
                0
            }
        }
    }
}

fn one<T: Copy>(rng: &mut SmallRng, of: &[T]) -> T {
    *of.choose(rng).expect("a choice")
}

fn fd(rng: &mut SmallRng) -> i32 {
    one(rng, &[3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 6, 7, 8, 0, 1, -1, 600])
}

/// A directory descriptor, or the working directory.
fn at(rng: &mut SmallRng) -> i32 {
    one(rng, &[-100, -100, -100, -100, 3, 4, 5, -1])
}
