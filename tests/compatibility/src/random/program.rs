//! Random programs of system calls: made from a seed, written as text, made smaller.

use rand::{RngExt as _, SeedableRng as _, rngs::SmallRng, seq::IndexedRandom as _};
use std::fmt::Write as _;

/// A line of a program, or a block of lines that runs elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A call and its arguments. `%` stands for the directory of the program.
    Call(String),
    /// `fork` or `thread`, and what happens in there.
    Block(&'static str, Vec<Step>),
}

/// A program: what `performer.c` performs.
pub(crate) type Program = Vec<Step>;

/// Names of one program: it makes them, moves them and finds them again.
const NAMES: &[&str] = &[
    "a",
    "a",
    "b",
    "b",
    "c",
    "d",
    "d",
    "d/f",
    "d/f",
    "d/a",
    "d/b",
    "d/e",
    "d/e/a",
    "l",
    "l/f",
    "l/a",
    "t",
    "s",
    "s",
    "d/s",
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
    "m/n",
    "%/a",
    "%/d/f",
    "%/d",
    "%",
    "/dev/null",
    "/dev/full",
    "/proc/self/fd/3",
    "/proc/self/fd/4",
    "/proc/self/cwd/a",
    "/proc/self/cwd/d/f",
    "/dev/fd/3",
    "..//w/a",
    "@a",
];
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
const MODES: &[u32] =
    &[0o755, 0o644, 0o600, 0o777, 0o700, 0o000, 0o444, 0o500, 0o4755, 0o2755, 0o1777, 0o666];
const LENGTHS: &[i64] = &[0, 1, 2, 3, 5, 8, 100, 4096];
const NAMED_AT: &[u32] = &[0, 0, 0, 0x100, 0x200, 0x400, 0x1000, 0x1100, 0x800];
const XATTR: &[&str] =
    &["user.a", "user.b", "user.", "trusted.a", "security.a", "system.posix_acl_access", "x", "''"];

/// The program of a seed.
pub(crate) fn generate(seed: u64) -> Program {
    let mut rng = SmallRng::seed_from_u64(seed);
    let length = rng.random_range(4..40);
    steps(&mut rng, length, 0)
}

fn steps(rng: &mut SmallRng, length: usize, depth: u32) -> Vec<Step> {
    let mut steps = Vec::with_capacity(length);
    while steps.len() < length {
        let dice = rng.random_range(0..100);
        let inner = rng.random_range(1..8);
        steps.push(match dice {
            0..4 if depth < 2 => Step::Block("fork", self::steps(rng, inner, depth + 1)),
            4..6 if depth < 2 => Step::Block("thread", self::steps(rng, inner, depth + 1)),
            6..46 => Step::Call(by_name(rng)),
            46..76 => Step::Call(by_descriptor(rng)),
            76..92 => Step::Call(on_socket(rng)),
            _ => Step::Call(on_process(rng)),
        });
    }
    steps
}

fn name(rng: &mut SmallRng) -> &'static str {
    NAMES.choose(rng).expect("a name")
}

fn one<T: Copy>(rng: &mut SmallRng, of: &[T]) -> T {
    *of.choose(rng).expect("a choice")
}

fn fd(rng: &mut SmallRng) -> i32 {
    one(rng, &[3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 0, 1, -1, 600])
}

/// A directory descriptor, or the working directory.
fn at(rng: &mut SmallRng) -> i32 {
    one(rng, &[-100, -100, -100, -100, 3, 4, 5, -1])
}

fn by_name(rng: &mut SmallRng) -> String {
    let (a, b) = (name(rng), name(rng));
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
            "openat2 {from} {a} {open} {} {}",
            if open & 0o100 != 0 { mode & 0o777 } else { 0 },
            one(rng, &[0, 0, 1, 2, 4, 8, 16, 32, 64])
        ),
        11 => format!("creat {a} {mode}"),
        12 => format!("truncate {a} {length}"),
        13 => format!("stat {a}"),
        14 => format!("lstat {a}"),
        15 => format!("fstatat {from} {a} {flags}"),
        16 => format!("statx {from} {a} {flags}"),
        17 => format!("access {a} {}", rng.random_range(0..9)),
        18 => format!("faccessat2 {from} {a} {} {flags}", rng.random_range(0..8)),
        19 => format!("readlink {from} {a} {}", one(rng, &[0, 1, 4096])),
        20 => format!("chdir {a}"),
        21 | 22 => format!("mkdirat {from} {a} {mode}"),
        23 => format!("rmdir {a}"),
        24 => format!("unlinkat {from} {a} {}", one(rng, &[0, 0, 0x200, 1])),
        25 | 26 => format!("rename {a} {b}"),
        27 => format!("renameat2 {from} {a} {to} {b} {}", one(rng, &[0, 1, 2, 3, 8])),
        28 => format!("link {a} {b}"),
        29 => format!("linkat {from} {a} {to} {b} {flags}"),
        30 | 31 => format!("symlinkat {a} {to} {b}"),
        32 => format!(
            "mknod {from} {a} {}",
            mode | one(rng, &[0o010_000, 0o010_000, 0o100_000, 0, 0o140_000, 0o020_000])
        ),
        33 => format!("chmod {a} {mode}"),
        34 => format!("fchmodat2 {from} {a} {mode} {flags}"),
        35 => format!(
            "chown {from} {a} {} {} {flags}",
            one(rng, &[-1, 0, 1, 12345]),
            one(rng, &[-1, 0, 12345])
        ),
        36 => format!("utimes {from} {a} {} {flags}", one(rng, &[1, 1_000_000_000, -1])),
        37 => format!("setxattr {a} {xattr} {} {}", rng.random_range(0..4), rng.random_range(0..2)),
        38 => format!("getxattr {a} {xattr} {}", one(rng, &[0, 1, 100])),
        _ => match rng.random_range(0..3) {
            0 => format!("removexattr {a} {xattr}"),
            1 => format!("listxattr {a} {}", one(rng, &[0, 1, 100])),
            _ => format!("inotify {a} {}", one(rng, &[0x100, 0xfff, 0, 0x0100_0100])),
        },
    }
}

fn by_descriptor(rng: &mut SmallRng) -> String {
    let (a, b) = (fd(rng), fd(rng));
    let length = one(rng, LENGTHS);
    match rng.random_range(0..34) {
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
            format!("fallocate {a} {} {} {}", one(rng, &[0, 0, 1, 3, 8]), one(rng, LENGTHS), length)
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
            let command = one(rng, &[1, 2, 3, 4, 0, 1030, 1034, 1033, 8, 9]);
            let argument = one(rng, &[0, 1, 3, 5, 0o2000]);
            // An owner is a PID: which exist is no matter of the program.
            format!("fcntl {a} {command} {}", if command == 8 { 0 } else { argument })
        }
        27 => format!(
            "lock {a} {} {} {} {length}",
            one(rng, &[6, 37, 6]),
            rng.random_range(0..4),
            rng.random_range(0..9)
        ),
        28 => format!("flock {a} {}", one(rng, &[1, 2, 8, 0])),
        29 => format!("memfd {}", one(rng, &[0, 1, 2, 8, 64])),
        30 => format!("fchmod {a} {}", one(rng, MODES)),
        31 => format!("fchown {a} {} {}", one(rng, &[-1, 0, 12345]), one(rng, &[-1, 0])),
        32 => format!("fsetxattr {a} {} {}", one(rng, XATTR), rng.random_range(0..3)),
        _ => format!("fsync {a}"),
    }
}

fn on_socket(rng: &mut SmallRng) -> String {
    let (a, b) = (fd(rng), fd(rng));
    let address = one(rng, &["s", "s", "d/s", "@%NAME", "@%NAME", "m/s", "a", "%/s", "''"]);
    match rng.random_range(0..17) {
        0 | 1 => format!("socket 1 {} 0", one(rng, &[1, 1, 2, 5, 3])),
        2 | 3 => format!("socketpair {}", one(rng, &[1, 1, 2, 5])),
        4 | 5 => format!("pipe {}", one(rng, &[0, 0o2_000_000, 0o40_000])),
        6 | 7 => format!("bind {a} {address}"),
        8 | 9 => format!("connect {a} {address}"),
        10 => format!("listen {a} {}", one(rng, &[0, 1, 5])),
        11 => format!("accept {a}"),
        12 => format!("send {a} {}", rng.random_range(0..5)),
        13 => match rng.random_range(0..3) {
            0 => format!("sendto {a} {address}"),
            1 => format!("sockname {a}"),
            _ => format!("shutdown {a} {}", rng.random_range(0..4)),
        },
        14 => format!("recv {a} {}", one(rng, &[0, 1, 10])),
        15 => {
            if rng.random() {
                format!("send_fd {a} {b}")
            } else {
                format!("receive_fd {a}")
            }
        }
        _ => match rng.random_range(0..2) {
            0 => format!(
                "setsockopt {a} 1 {} {}",
                one(rng, &[2, 6, 7, 8, 9, 15, 16, 20]),
                rng.random_range(0..2)
            ),
            _ => format!("getsockopt {a} 1 {}", one(rng, &[2, 3, 4, 9, 16, 30, 38, 39])),
        },
    }
}

fn on_process(rng: &mut SmallRng) -> String {
    match rng.random_range(0..16) {
        0..3 => format!("execve {} {} {}", at(rng), name(rng), one(rng, &[0, 0, 0x100, 0x1000])),
        3 => "execve -100 t 0".into(),
        4 | 5 => format!("fexec {}", fd(rng)),
        6 => format!("kill {}", rng.random_range(0..2)),
        7 => format!("kill_child {}", rng.random_range(0..2)),
        8 => "pidfd".into(),
        9 => "wait".into(),
        10 => one(rng, &["setsid", "setpgid", "ids"]).into(),
        11 => format!("unshare {}", one(rng, &[0x200, 0x400, 0x600, 0x10_000, 0])),
        12 => {
            format!("prctl {} {}", one(rng, &[3, 4, 38, 39, 1, 2, 36, 37]), rng.random_range(0..2))
        }
        13 => format!("setrlimit {} {}", one(rng, &[7, 1]), one(rng, &[5, 8, 100, 5000])),
        14 => format!("setuid {}", one(rng, &[0, 1, 12345])),
        _ => format!("priority {}", one(rng, &[0, 5, 19])),
    }
}

/// The text that the performer reads, for the program that it counts as `number` in `directory`.
pub(crate) fn write(program: &[Step], directory: &str, number: usize) -> String {
    let mut text = String::new();
    write_steps(program, &mut text);
    text.push_str("end\n");
    // An abstract name must be this program's own.
    let own = directory.rsplit('/').next().unwrap_or_default();
    text.replace("@%NAME", &format!("@{own}-{number}"))
        .replace('%', &format!("{directory}/{number}/w"))
}

fn write_steps(steps: &[Step], text: &mut String) {
    for step in steps {
        match step {
            Step::Call(call) => text.push_str(&format!("{call}\n")),
            Step::Block(kind, inner) => {
                let _ = writeln!(text, "{kind}");
                write_steps(inner, text);
                text.push_str("end\n");
            }
        }
    }
}

/// Programs with one step less, or with a block's steps in its place.
pub(crate) fn smaller(program: &[Step]) -> Vec<Program> {
    let mut found = Vec::new();
    // Halves first: what is left out does not have to be tried step by step.
    if program.len() > 3 {
        found.push(program[program.len() / 2..].to_vec());
        found.push(program[..program.len() / 2].to_vec());
    }
    for (n, step) in program.iter().enumerate().rev() {
        let with = |inner: &[Step]| [&program[..n], inner, &program[n + 1..]].concat();
        found.push(with(&[]));
        if let Step::Block(kind, inner) = step {
            found.push(with(inner));
            found.extend(smaller(inner).into_iter().map(|inner| with(&[Step::Block(kind, inner)])));
        }
    }
    found
}
