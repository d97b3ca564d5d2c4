//! openat2: an open whose arguments lie in memory, with limits on the way to the file. They are
//! copied, the open is decided, and made on the program's behalf with the same limits.

use super::{FileAsker, object::Seen, open::Open};
use flask::{Class, perm};
use mediation::call::Asker;
use realpath::MOST_LINKS;
use rustix::{
    fs::{Mode, OFlags, ResolveFlags, readlinkat},
    io::{Errno, Result},
};
use std::{
    ffi::OsStr,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
};
use supervisor::{Name, WalkedPath, resolve_within, walk_no_magiclinks};

/// `struct open_how` of `linux/openat2.h`: flags, mode, limits.
const HOW_BYTES: usize = 24;
/// `__O_TMPFILE` of `asm-generic/fcntl.h`.
pub(super) const TMPFILE: i32 = libc::O_TMPFILE & !libc::O_DIRECTORY;
/// `VALID_OPEN_FLAGS` of `linux/fcntl.h`; `O_LARGEFILE` is 0 to programs of 64 bits, and a number
/// to the kernel.
const KNOWN: i32 = libc::O_ACCMODE
    | libc::O_CREAT
    | libc::O_EXCL
    | libc::O_NOCTTY
    | libc::O_TRUNC
    | libc::O_APPEND
    | libc::O_NONBLOCK
    | libc::O_SYNC
    | libc::O_DSYNC
    | libc::O_ASYNC
    | libc::O_DIRECT
    | 0o100_000
    | libc::O_DIRECTORY
    | libc::O_NOFOLLOW
    | libc::O_NOATIME
    | libc::O_CLOEXEC
    | libc::O_PATH
    | TMPFILE;
/// `RESOLVE_*` of `linux/openat2.h`.
const KNOWN_LIMITS: u64 = 0x3f;
/// The flags that make sense beside `O_PATH`.
const OF_HANDLES: i32 = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
/// They say where the way may lead.
const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::IN_ROOT).union(ResolveFlags::NO_XDEV);

/// The arguments, copied and checked as the kernel does.
pub(super) fn arguments(asker: FileAsker<'_>) -> Result<Open> {
    let args = &asker.caller.call.args;
    let how: [u8; HOW_BYTES] = asker.caller.extensible(args[2], args[3])?;
    let word = |n: usize| u64::from_ne_bytes(how[8 * n..][..8].try_into().unwrap_or_default());
    let (flags, mode, limits) = checked(word(0), word(1), word(2))?;
    let (dirfd, path, paths) =
        (asker.caller.int(0), asker.caller.path(1)?, asker.files.paths.now());
    Ok(Open { dirfd, path, flags, mode, limits, paths })
}

/// Whether the flags make sense, which the kernel looks at first (`build_open_flags` of
/// `fs/open.c`).
pub(super) fn check(flags: OFlags) -> Result<()> {
    let creates = flags.contains(OFlags::CREATE);
    let temporary = flags.bits() & TMPFILE.cast_unsigned() != 0;
    let writes = flags & OFlags::RWMODE != OFlags::RDONLY;
    let invalid = (creates && flags.contains(OFlags::DIRECTORY))
        || (temporary && !(flags.contains(OFlags::DIRECTORY) && writes));
    if invalid && !flags.contains(OFlags::PATH) { Err(Errno::INVAL) } else { Ok(()) }
}

fn checked(flags: u64, mode: u64, limits: u64) -> Result<(OFlags, Mode, ResolveFlags)> {
    let bits = i32::try_from(flags).map_err(|_| Errno::INVAL)?;
    let limits = ResolveFlags::from_bits_retain(limits);
    let makes = bits & (libc::O_CREAT | TMPFILE) != 0;
    let flags = OFlags::from_bits_retain(bits.cast_unsigned());
    let invalid = bits & !KNOWN != 0
        || limits.bits() & !KNOWN_LIMITS != 0
        || mode & !0o7777 != 0
        || (!makes && mode != 0)
        || limits.contains(ResolveFlags::BENEATH | ResolveFlags::IN_ROOT)
        || (bits & libc::O_PATH != 0 && bits & !OF_HANDLES != 0)
        || check(flags).is_err();
    if invalid {
        return Err(Errno::INVAL);
    }
    if limits.contains(ResolveFlags::CACHED) && (makes || bits & libc::O_TRUNC != 0) {
        return Err(Errno::AGAIN);
    }
    Ok((flags, Mode::from_bits_retain(mode as u32), limits))
}

/// What the path of `open` leads to within its limits.
pub(super) fn find(asker: Asker<'_>, open: &Open) -> Result<WalkedPath> {
    let mut path = open.path.clone();
    for _ in 0..MOST_LINKS {
        if open.creates() && path.as_os_str().as_bytes().ends_with(b"/") {
            let parent = path.parent().unwrap_or(&path);
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            // With a slash, only a directory will do.
            let directory = Name { path: &parent.join(""), follow: true, ..open.name() };
            resolve_within(asker.caller, directory, open.limits)?;
            return Err(Errno::ISDIR);
        }
        let name = Name { path: &path, ..open.name() };
        let found = resolve_within(asker.caller, name, open.limits);
        if matches!(found, Err(Errno::LOOP | Errno::NOTDIR))
            && let Some(target) = target_to_create(asker, open, name)
        {
            path = target;
            continue;
        }
        match found {
            Ok(object) if !asker.state.targets.tree.is_proc(object.as_fd())? => {
                return Ok(existing(object));
            }
            // What would be found there is the monitor's, or nothing.
            Ok(_) => return find_own(asker, open),
            Err(Errno::NOENT) if !open.creates() => return find_own(asker, open),
            Err(Errno::NOENT) => {}
            // A link of `/proc` that the monitor has need not be the program's.
            Err(Errno::LOOP) if !open.limits.intersects(CONFINED | ResolveFlags::NO_SYMLINKS) => {
                let own =
                    walk_no_magiclinks(asker.caller, open.name()).and_then(WalkedPath::existing);
                return Err(own.err().unwrap_or(Errno::LOOP));
            }
            Err(error) => return Err(error),
        }
        let (parent, last) = split(&path).ok_or(Errno::NOENT)?;
        let directory = Name { path: parent, follow: true, ..name };
        let directory = match resolve_within(asker.caller, directory, open.limits) {
            Err(Errno::NOENT) => return find_own(asker, open),
            directory => directory?,
        };
        match readlinkat(&directory, last, Vec::new()) {
            // A link to what does not exist: that is what is made.
            Ok(target) if open.follows() => {
                path = parent.join(OsStr::from_bytes(target.as_bytes()));
            }
            Ok(_) => return Err(Errno::LOOP),
            Err(_) => {
                let entry = Some((directory, last.to_owned()));
                return Ok(WalkedPath { entry, ..WalkedPath::default() });
            }
        }
    }
    Err(Errno::LOOP)
}

/// Where the link at the end of `name` leads, for a file to be made. What a slash stands behind is
/// not looked at, so nothing that is wrong with it counts.
fn target_to_create(asker: Asker<'_>, open: &Open, name: Name<'_>) -> Option<PathBuf> {
    let leads =
        open.creates() && open.follows() && !open.limits.contains(ResolveFlags::NO_SYMLINKS);
    let (parent, last) = split(name.path).filter(|_| leads)?;
    let directory = Name { path: parent, follow: true, ..name };
    let directory = resolve_within(asker.caller, directory, open.limits).ok()?;
    // Links of `/proc` would be the monitor's.
    if asker.state.targets.tree.is_proc(directory.as_fd()).ok()? {
        return None;
    }
    let target = readlinkat(&directory, last, Vec::new()).ok()?;
    Some(parent.join(OsStr::from_bytes(target.as_bytes())))
}

/// What a program gets that asks openat2 for a handle (`O_PATH`). The kernel hands over no handles,
/// so it gets a descriptor that is open for reading, which serves as one, where that may be; else
/// the call does not exist, and programs use openat.
pub(super) fn handle(asker: Asker<'_>, object: &OwnedFd, flags: OFlags) -> Result<OwnedFd> {
    let seen = Seen::of(asker, object.as_fd())?;
    if flags.contains(OFlags::DIRECTORY) && seen.class != Class::Dir {
        return Err(Errno::NOTDIR);
    }
    if !matches!(seen.class, Class::File | Class::Dir) {
        return Err(Errno::NOSYS);
    }
    seen.allow(asker, perm::file::READ | perm::file::OPEN, object)?;
    let number = object.as_raw_fd().to_string();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened =
        rustix::fs::openat(&asker.state.targets.tree.own_fds, number, flags, Mode::empty());
    opened.map_err(|_| Errno::NOSYS)
}

fn existing(object: OwnedFd) -> WalkedPath {
    WalkedPath { object: Some(object), ..WalkedPath::default() }
}

/// The directory that a path leads to but for its last name, and that name.
fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    let last = path.file_name()?;
    // `file_name` overlooks what ends so.
    if !path.as_os_str().as_bytes().ends_with(last.as_bytes()) {
        return None;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Some((parent.unwrap_or(Path::new(".")), last))
}

/// A path as it leads on from the directory that is the root to it.
fn below_root(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    let slashes = bytes.iter().take_while(|byte| **byte == b'/').count();
    match &bytes[slashes..] {
        b"" => Path::new("."),
        rest => Path::new(OsStr::from_bytes(rest)),
    }
}

/// What lies in `/proc`, which is another thing to each process. There, limits that say where the
/// way may lead are heeded by refusing to go up.
fn find_own(asker: Asker<'_>, open: &Open) -> Result<WalkedPath> {
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let path = match open.limits.contains(ResolveFlags::IN_ROOT) {
        true => below_root(&open.path),
        false => &open.path,
    };
    if open.limits.intersects(CONFINED) {
        if path.is_absolute() {
            // The directory is not looked at, and no `/proc` is in the root's file system.
            return Err(Errno::NOENT);
        }
        let base = asker.caller.base(open.dirfd)?;
        if !asker.state.targets.tree.is_proc(base.as_fd())? {
            return Err(Errno::NOENT);
        }
        let plain: PathBuf = path.components().take_while(|it| is_plain(*it)).collect();
        if plain.components().count() < path.components().count() {
            // What is not there is said before where the way would have led.
            let name = Name { path: &plain, follow: true, ..open.name() };
            let is_there = plain.as_os_str().is_empty()
                || walk_no_magiclinks(asker.caller, name)?.object.is_some();
            return Err(if is_there { Errno::XDEV } else { Errno::NOENT });
        }
    }
    let found = walk_no_magiclinks(asker.caller, Name { path, ..open.name() })?;
    let Some(object) = &found.object else { return Ok(found) };
    let is_link =
        |part: Component<'_>| ["self", "thread-self"].map(OsStr::new).contains(&part.as_os_str());
    if open.limits.contains(ResolveFlags::NO_SYMLINKS) && open.path.components().any(is_link) {
        return Err(Errno::LOOP);
    }
    if asker.state.targets.tree.is_proc(object.as_fd())? { Ok(found) } else { Err(Errno::XDEV) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_checked_as_the_kernel_does() {
        let (creat, path, directory) = (libc::O_CREAT, libc::O_PATH, libc::O_DIRECTORY);
        for (flags, mode, limits, want) in [
            (0, 0, 0, Ok(())),
            (creat, 0o644, 8, Ok(())),
            (0, 0o644, 0, Err(Errno::INVAL)),
            (creat, 0o10_000, 0, Err(Errno::INVAL)),
            (1 << 30, 0, 0, Err(Errno::INVAL)),
            (path | creat, 0, 0, Err(Errno::INVAL)),
            (path | directory, 0, 0, Ok(())),
            (TMPFILE, 0, 0, Err(Errno::INVAL)),
            (libc::O_TMPFILE, 0, 0, Err(Errno::INVAL)),
            (libc::O_TMPFILE | libc::O_RDWR, 0o600, 0, Ok(())),
            (0, 0, 0x18, Err(Errno::INVAL)),
            (0, 0, 0x100, Err(Errno::INVAL)),
            (0, 0, 0x20, Ok(())),
            (creat, 0, 0x20, Err(Errno::AGAIN)),
        ] {
            let found = checked(flags as u64, mode, limits).map(drop);
            assert_eq!(found, want, "{flags:#o} {mode:#o} {limits:#x}");
        }
        assert_eq!(checked(1 << 32, 0, 0).map(drop), Err(Errno::INVAL));
    }

    #[test]
    fn a_path_below_a_root_begins_there() {
        for (path, want) in [("/", "."), ("//a/", "a/"), ("a//b", "a//b"), (".", ".")] {
            assert_eq!(below_root(Path::new(path)).as_os_str(), want, "{path}");
        }
    }

    #[test]
    fn a_path_that_ends_in_no_name_is_not_split() {
        for (path, want) in [
            ("a/b", Some(("a", "b"))),
            ("b", Some((".", "b"))),
            ("/b", Some(("/", "b"))),
            ("a/..", None),
            ("a/", None),
            ("a/.", None),
        ] {
            let found = split(Path::new(path));
            let want = want.map(|(parent, last)| (Path::new(parent), OsStr::new(last)));
            assert_eq!(found, want, "{path}");
        }
    }
}
