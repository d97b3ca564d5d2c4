//! Calls that change what a file says of itself: mode, owner, times, flags, length.
//! Landlock does not know most of them, so all are made on the program's behalf.

use super::{
    FileAsker,
    memory::{is_program, stays_plain},
    missing_name::MissingName,
    object::{FileObject, Seen, has_name},
    place::place_of,
    terminals,
};
use avc::Hint;
use confine::launch::OpenAccess;
use flask::{AccessVector, Sid, perm};
use mediation::{
    call::{Answer, CallResult},
    subject::proc_files,
};
use rustix::{
    fs::{
        AtFlags, FileType, Gid, IFlags, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW,
        UTIME_OMIT, Uid,
    },
    io::{Errno, Result},
};
use std::os::fd::{AsFd, OwnedFd};
use supervisor::{Name, walk};
use syscalls::Sysno;

/// How a call names its file.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Path {
        dirfd: i32,
        n: usize,
        follow: bool,
    },
    /// An open descriptor; `O_PATH` does not open.
    Open(usize),
    /// Any descriptor, or the working directory.
    Descriptor(usize),
}

pub(super) fn decide(asker: FileAsker<'_>) -> CallResult {
    use Sysno::*;
    match asker.number {
        chmod | fchmod | fchmodat | fchmodat2 => change_mode(asker),
        chown | fchown | lchown | fchownat => change_owner(asker),
        utime | utimes | futimesat | utimensat => change_times(asker),
        truncate => cut(asker),
        ioctl => set_flags(asker),
        // Newer than any libc relies on; programs fall back to the calls above.
        _ => Err(Errno::NOSYS),
    }
}

/// Why the kernel refuses a call on what it found, whatever policy says.
pub(super) type Refusal<'a> = &'a dyn Fn(&Stat) -> Option<Errno>;

/// Whether only its owner may do this to a file, and this is another's.
fn of_another(asker: FileAsker<'_>, status: &Stat) -> bool {
    let is_own = status.st_uid == rustix::process::geteuid().as_raw();
    !is_own && !asker.has_capability(rustix::thread::CapabilitySet::FOWNER)
}

/// The file of a call, decided: an `O_PATH` descriptor of it. What the kernel would refuse is no
/// question to policy, save whether the file may be seen.
pub(super) fn target(
    asker: FileAsker<'_>,
    which: Which,
    requested: AccessVector,
    refusal: Refusal<'_>,
) -> Result<OwnedFd> {
    asker.same_ids()?;
    let (object, descriptor) = match which {
        Which::Open(n) => {
            let fd = asker.caller.int(n);
            let object = asker.caller.file(fd)?;
            if asker.caller.flags(fd)?.contains(OFlags::PATH) {
                return Err(Errno::BADF);
            }
            (object, None)
        }
        Which::Descriptor(n) => {
            let fd = asker.caller.int(n);
            (asker.caller.base(fd)?, Some(fd))
        }
        Which::Path { dirfd, n, follow } => {
            let path = asker.caller.path(n)?;
            let name = Name { dirfd, path: &path, follow };
            let ended = |errno| MissingName::of(name, requested).ended(asker, errno).errno;
            let found = walk(asker.caller, name).map_err(ended)?;
            proc_files::allow(*asker, &found)?;
            let descriptor = found.descriptor;
            (found.existing().map_err(ended)?, descriptor)
        }
    };
    if !has_name(*asker, &object)? {
        // A pipe, a socket or memory: its process holds it, and no path leads to it.
        let writes = requested.contains(perm::file::WRITE).then(|| OpenAccess::of(OFlags::WRONLY));
        proc_files::allow_held(*asker, descriptor, &object, writes)?;
        return Ok(object);
    }
    let seen = Seen::of(*asker, object.as_fd())?;
    if !seen.grants(*asker, requested)
        && seen.grants(*asker, perm::file::GETATTR)
        && let Some(errno) = refusal(&rustix::fs::fstat(&object)?)
    {
        return Err(errno);
    }
    seen.allow(*asker, requested, &object)?;
    let is_changed = requested.contains(perm::file::SETATTR);
    if is_changed && matches!(which, Which::Path { .. }) {
        terminals::allow(*asker, &object)?;
    }
    Ok(object)
}

pub(super) fn path_at(n: usize, follow: bool) -> Which {
    Which::Path { dirfd: libc::AT_FDCWD, n, follow }
}

/// A call with `dirfd`, a path and, at argument `n`, flags; an empty path names `dirfd` itself if
/// they say so.
pub(super) fn path_with_flags(asker: FileAsker<'_>, n: usize) -> Result<Which> {
    let flags = asker.caller.int(n);
    if flags & !(libc::AT_SYMLINK_NOFOLLOW | libc::AT_EMPTY_PATH) != 0 {
        return Err(Errno::INVAL);
    }
    if flags & libc::AT_EMPTY_PATH != 0
        && (asker.caller.call.args[1] == 0 || asker.caller.path(1)?.as_os_str().is_empty())
    {
        return Ok(Which::Descriptor(0));
    }
    let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
    Ok(Which::Path { dirfd: asker.caller.int(0), n: 1, follow })
}

fn change_mode(asker: FileAsker<'_>) -> CallResult {
    let (which, n) = match asker.number {
        Sysno::chmod => (path_at(0, true), 1),
        Sysno::fchmod => (Which::Open(0), 1),
        Sysno::fchmodat => (Which::Path { dirfd: asker.caller.int(0), n: 1, follow: true }, 2),
        _ => (path_with_flags(asker, 3)?, 2),
    };
    let mode = Mode::from_bits_retain(asker.caller.call.args[n] as u32 & 0o7777);
    let object = target(asker, which, perm::file::SETATTR, &|it| owners(asker, it))?;
    if is_program(mode) && stays_plain(*asker, &object)? {
        return Err(Errno::PERM);
    }
    let mode = allowed_mode(asker, &object, mode)?;
    opening(asker, &object, || {
        let path = asker.state.on_behalf.fs_state.path_of(&object);
        rustix::fs::chmodat(rustix::fs::CWD, path, mode, AtFlags::empty())
    })?;
    Ok(Answer::Return(0))
}

/// Makes a change of mode, and notes the directory that nobody could look into before.
pub(super) fn opening(
    asker: FileAsker<'_>,
    object: &OwnedFd,
    change: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let was_closed = asker.files.plantings.are_watched() && is_closed(object)?;
    asker.not_overtaken()?;
    change()?;
    if was_closed {
        asker.files.plantings.opened(|| place_of(*asker, object));
    }
    Ok(())
}

/// Whether it is a directory that its owner cannot list, or find anything in.
pub(super) fn is_closed(object: &OwnedFd) -> Result<bool> {
    let mode = rustix::fs::fstat(object)?.st_mode;
    let opens = Mode::from_raw_mode(mode).contains(Mode::RUSR | Mode::XUSR);
    Ok(FileType::from_raw_mode(mode) == FileType::Directory && !opens)
}

/// Why a call for the owner of a file alone fails.
fn owners(asker: FileAsker<'_>, status: &Stat) -> Option<Errno> {
    of_another(asker, status).then_some(Errno::PERM)
}

/// `mode` of a file that `asker` makes and that gets the label `sid`, without the bits that policy
/// does not let it set: as with chmod, the call succeeds without them.
pub(super) fn granted_mode(
    asker: FileAsker<'_>,
    sid: Sid,
    mode: Mode,
    object: &dyn Fn() -> String,
) -> Mode {
    let target = FileObject { tsid: sid, tclass: flask::Class::File, hint: &Hint::default() };
    let granted = !lends_ids(mode) || target.allow(*asker, perm::file::SETID, object).is_ok();
    if granted { mode } else { mode - (Mode::SUID | Mode::SGID) }
}

/// `mode` without the bits that policy does not let `asker` set on this file. The call succeeds
/// without them, as chmod(2) in POSIX provides for, so that programs which copy modes go on.
fn allowed_mode(asker: FileAsker<'_>, object: &OwnedFd, mode: Mode) -> Result<Mode> {
    let seen = Seen::of(*asker, object.as_fd())?;
    // On what cannot be executed, the bits mean something else or nothing.
    let harmless = seen.class != flask::Class::File || !lends_ids(mode);
    if harmless || seen.allow(*asker, perm::file::SETID, object).is_ok() {
        return Ok(mode);
    }
    Ok(mode - (Mode::SUID | Mode::SGID))
}

/// Whether a program with this mode would run for anybody with the IDs of its owner: the way from
/// the sandbox to everything that its user may do, with somebody else's help.
pub(super) fn lends_ids(mode: Mode) -> bool {
    mode.intersects(Mode::SUID | Mode::SGID)
}

fn change_owner(asker: FileAsker<'_>) -> CallResult {
    let (which, n) = match asker.number {
        Sysno::chown => (path_at(0, true), 1),
        Sysno::lchown => (path_at(0, false), 1),
        Sysno::fchown => (Which::Open(0), 1),
        _ => (path_with_flags(asker, 4)?, 2),
    };
    // An ID of -1 leaves the owner as it is.
    let id = |n: usize| Some(asker.caller.call.args[n] as u32).filter(|id| *id != u32::MAX);
    let (uid, gid) = (id(n).map(Uid::from_raw), id(n + 1).map(Gid::from_raw));
    let refused = |status: &Stat| {
        let other = uid.is_some_and(|uid| uid.as_raw() != status.st_uid);
        let lacks = !asker.has_capability(rustix::thread::CapabilitySet::CHOWN);
        let gives = other || (gid.is_some() && of_another(asker, status));
        (lacks && gives).then_some(Errno::PERM)
    };
    let object = target(asker, which, perm::file::SETATTR, &refused)?;
    match rustix::fs::chownat(&object, "", uid, gid, AtFlags::EMPTY_PATH) {
        // In a user namespace that has no such ID. Outside, the file may not be given to it.
        Err(Errno::INVAL) => return Err(Errno::PERM),
        done => done?,
    }
    Ok(Answer::Return(0))
}

fn change_times(asker: FileAsker<'_>) -> CallResult {
    let args = &asker.caller.call.args;
    let n = if matches!(asker.number, Sysno::utime | Sysno::utimes) { 1 } else { 2 };
    let address = args[n];
    let times = if address == 0 { now() } else { times(asker, address)? };
    let nanos = [times.last_access.tv_nsec, times.last_modification.tv_nsec];
    // There is nothing to do, and no path is looked at.
    if asker.number == Sysno::utimensat && nanos == [UTIME_OMIT; 2] {
        return Ok(Answer::Return(0));
    }
    let no_path = args[1] == 0;
    let which = match asker.number {
        Sysno::utime | Sysno::utimes => path_at(0, true),
        Sysno::utimensat if no_path && asker.caller.int(0) == libc::AT_FDCWD => {
            return path_with_flags(asker, 3).and(Err(Errno::FAULT));
        }
        Sysno::utimensat if no_path && asker.caller.int(3) != 0 => return Err(Errno::INVAL),
        _ if no_path && asker.caller.int(0) != libc::AT_FDCWD => Which::Open(0),
        Sysno::utimensat => path_with_flags(asker, 3)?,
        _ => Which::Path { dirfd: asker.caller.int(0), n: 1, follow: true },
    };
    let refused = |status: &Stat| match nanos.into_iter().all(is_fraction) {
        true => owners(asker, status).filter(|_| nanos != [UTIME_NOW; 2]),
        false => Some(Errno::INVAL),
    };
    let object = target(asker, which, perm::file::SETATTR, &refused)?;
    rustix::fs::utimensat(
        rustix::fs::CWD,
        asker.state.on_behalf.fs_state.path_of(&object),
        &times,
        AtFlags::empty(),
    )?;
    Ok(Answer::Return(0))
}

/// Whether the kernel takes it (`nsec_valid` of `fs/utimes.c`).
fn is_fraction(nanos: i64) -> bool {
    (0..1_000_000_000).contains(&nanos) || [UTIME_NOW, UTIME_OMIT].contains(&nanos)
}

fn now() -> Timestamps {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Timestamps { last_access: now, last_modification: now }
}

fn times(asker: FileAsker<'_>, address: u64) -> Result<Timestamps> {
    let word = |bytes: &[u8]| i64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let at = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
    if asker.number == Sysno::utime {
        let raw = asker.caller.bytes::<16>(address)?;
        let (access, modified) = (at(word(&raw[..8]), 0), at(word(&raw[8..]), 0));
        return Ok(Timestamps { last_access: access, last_modification: modified });
    }
    let raw = asker.caller.bytes::<32>(address)?;
    let fraction = |value: i64| match asker.number {
        Sysno::utimensat => Ok(value),
        _ if (0..1_000_000).contains(&value) => Ok(value * 1000),
        _ => Err(Errno::INVAL),
    };
    Ok(Timestamps {
        last_access: at(word(&raw[..8]), fraction(word(&raw[8..16]))?),
        last_modification: at(word(&raw[16..24]), fraction(word(&raw[24..]))?),
    })
}

fn cut(asker: FileAsker<'_>) -> CallResult {
    let length = asker.caller.call.args[1];
    if length > i64::MAX as u64 {
        return Err(Errno::INVAL);
    }
    let refused = |status: &Stat| match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => None,
        FileType::Directory => Some(Errno::ISDIR),
        _ => Some(Errno::INVAL),
    };
    let requested = perm::file::WRITE | perm::file::OPEN;
    let object = target(asker, path_at(0, true), requested, &refused)?;
    if let Some(errno) = refused(&rustix::fs::fstat(&object)?) {
        return Err(errno);
    }
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(
        rustix::fs::CWD,
        asker.state.on_behalf.fs_state.path_of(&object),
        flags,
        Mode::empty(),
    )?;
    if length > rustix::fs::fstat(&file)?.st_size as u64 && length > longest(asker)? {
        asker.caller.signal(libc::SIGXFSZ);
        return Err(Errno::FBIG);
    }
    rustix::fs::ftruncate(file, length)?;
    asker.files.plantings.note_at(|| place_of(*asker, &object), false);
    Ok(Answer::Return(0))
}

/// How long the caller may make a file (`RLIMIT_FSIZE`).
fn longest(asker: FileAsker<'_>) -> Result<u64> {
    let limit = asker.caller.tree.proc.limit(asker.caller.call.tid, "Max file size");
    asker.caller.certain(limit)
}

/// ioctl(2) with `FS_IOC_SETFLAGS`, the one that comes here.
fn set_flags(asker: FileAsker<'_>) -> CallResult {
    let flags = asker.caller.bytes::<4>(asker.caller.call.args[2])?;
    let flags = IFlags::from_bits_retain(u32::from_ne_bytes(flags));
    asker.same_ids()?;
    let file = asker.duplicate(asker.caller.int(0))?;
    Seen::of(*asker, file.as_fd())?.allow(*asker, perm::file::SETATTR, &file)?;
    rustix::fs::ioctl_setflags(&file, flags)?;
    Ok(Answer::Return(0))
}
