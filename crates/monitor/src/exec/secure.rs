//! A program that runs with other rights than who has executed it takes no code from there.

use rustix::io::{Errno, Result};
use std::ffi::OsStr;
use supervisor::{memory, ptrace::Registers};

/// Variables that the loader forgets in such a program (`unsecure-envvars.h` of glibc), beside
/// those that begin with `LD_`; `TMPDIR`, which names no code, is told apart.
const UNSAFE: [&[u8]; 13] = [
    b"GCONV_PATH",
    b"GETCONF_DIR",
    b"GLIBC_TUNABLES",
    b"HOSTALIASES",
    b"LOCALDOMAIN",
    b"LOCPATH",
    b"MALLOC_CHECK_",
    b"MALLOC_TRACE",
    b"NIS_PATH",
    b"NLSPATH",
    b"RESOLV_HOST_CONF",
    b"RES_OPTIONS",
    b"TZDIR",
];

/// A variable that a program loses though it names no code.
const PLACE: &[u8] = b"TMPDIR";

/// Words of a stack that are looked at.
const MOST_WORDS: u64 = 1 << 20;

/// Tells the new program that it runs with other rights than its caller (`AT_SECURE` of
/// getauxval(3)), so that its loader takes no libraries from the caller's environment. A program
/// without a loader would hand these variables on to others that have one: they lose their names
/// here. So does `TMPDIR` where the program is a loader itself, as it takes that out of its
/// environment, too, and then does not find what lies behind.
///
/// The program's stack, as the kernel has just laid it out: the number of arguments, arguments, 0,
/// environment, 0, auxiliary vector.
///
/// # Errors
///
/// Whatever reading and writing its memory says; `FAULT` if it lies otherwise.
pub(super) fn make(pid: u32, is_loader: bool) -> Result<()> {
    let stack = Registers::of(pid)?.stack_pointer();
    let mut at = stack + 8 * (word(pid, stack)?.min(MOST_WORDS) + 2);
    let end = at + 8 * MOST_WORDS;
    while at < end {
        let variable = word(pid, at)?;
        at += 8;
        if variable == 0 {
            return set_secure(pid, at, end);
        }
        let mut start = [0; 24];
        let len = memory::read(pid, variable, &mut start)?;
        if is_unsafe(&start[..len]) || is_loader && is_named(&start[..len], PLACE) {
            memory::write(pid, variable, b"_")?;
        }
    }
    Err(Errno::FAULT)
}

/// Sets `AT_SECURE` in the auxiliary vector that begins at `at`.
fn set_secure(pid: u32, mut at: u64, end: u64) -> Result<()> {
    while at < end {
        match word(pid, at)? {
            libc::AT_SECURE => return memory::write(pid, at + 8, &1_u64.to_ne_bytes()),
            libc::AT_NULL => break,
            _ => at += 16,
        }
    }
    Err(Errno::FAULT)
}

fn word(pid: u32, at: u64) -> Result<u64> {
    let mut bytes = [0; 8];
    match memory::read(pid, at, &mut bytes)? {
        8 => Ok(u64::from_ne_bytes(bytes)),
        _ => Err(Errno::FAULT),
    }
}

/// Whether a variable that begins like this has a program execute something else.
fn is_unsafe(start: &[u8]) -> bool {
    start.starts_with(b"LD_") || UNSAFE.iter().any(|name| is_named(start, name))
}

fn is_named(start: &[u8], name: &[u8]) -> bool {
    start.strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="))
}

/// Whether a program of that name is a loader.
pub(super) fn is_loader(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(b"ld") && name.windows(3).any(|part| part == b".so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_loader_are_known_by_their_whole_names() {
        for (name, want) in [("ld-linux-x86-64.so.2", true), ("ld.so", true), ("ld", false)] {
            assert_eq!(is_loader(OsStr::new(name)), want, "{name}");
        }
        for (start, want) in [
            (&b"LD_PRELOAD=/x"[..], true),
            (b"GCONV_PATH=/x", true),
            (b"RESOLV_HOST_CONF=/etc/x", true),
            (b"GCONV_PATHS=/x", false),
            (b"LOCPAT", false),
            (b"PATH=/bin", false),
            (b"", false),
        ] {
            assert_eq!(is_unsafe(start), want, "{}", String::from_utf8_lossy(start));
        }
    }
}
