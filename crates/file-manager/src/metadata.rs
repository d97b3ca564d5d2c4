//! Calls that read metadata by name (`stat`, `access`, `getxattr`, watches): decided where policy
//! hides something.

use super::{
    FileAsker,
    missing_name::MissingName,
    object::{Seen, has_name},
    terminals,
};
use flask::{AccessVector, Class, perm};
use mediation::{
    call::{Answer, CallResult},
    subject::proc_files,
};
use proc::path_of;
use rustix::{
    fs::{
        OFlags,
        inotify::{WatchFlags, add_watch},
    },
    io::Errno,
};
use std::os::fd::AsFd;
use supervisor::{Name, WalkedPath, resolve_for_caller, walk};
use syscalls::Sysno;

/// `ALL_INOTIFY_BITS` of `linux/inotify.h`: a mask without any of them means nothing.
const ALL_INOTIFY_BITS: u32 = 0xf700_efff;

/// Where the path stands in the arguments, whether a link at its end is followed, and what is asked
/// for.
struct MetadataCall {
    dirfd: i32,
    path: usize,
    follow: bool,
    requested: AccessVector,
}

pub(super) fn decide(asker: FileAsker<'_>) -> CallResult {
    let (what, paths) = (arguments(asker), asker.files.paths.now());
    // A descriptor that the program holds, by `AT_EMPTY_PATH`; since Linux 6.11 without a path,
    // too.
    if asker.caller.call.args[what.path] == 0 && may_be_empty(asker) {
        return Ok(Answer::Continue);
    }
    let path = asker.caller.path(what.path)?;
    if path.as_os_str().is_empty() {
        return Ok(Answer::Continue);
    }
    let name = Name { dirfd: what.dirfd, path: &path, follow: what.follow };
    let searches = asker.number == Sysno::chdir;
    let requested = |class| match class {
        Class::Dir if searches => what.requested | perm::dir::SEARCH,
        _ => what.requested,
    };
    let keeps = !asker.is_inside();
    if keeps && let Some(known) = paths.get(name) {
        known.allow(*asker, requested)?;
        return Ok(Answer::Continue);
    }
    let (found, is_own) = resolve_for_caller(asker.caller, name);
    match found.and_then(WalkedPath::existing) {
        Ok(fd) => {
            let seen = match Seen::of(*asker, fd.as_fd()) {
                // Nothing is in a directory of a process that has ended, nor will be.
                Err(Errno::NOENT) if asker.state.targets.tree.is_proc(fd.as_fd())? => {
                    return Ok(Answer::Continue);
                }
                seen => seen?,
            };
            if keeps && !is_own {
                paths.found(asker.state, name, &fd, &seen)?;
            }
            seen.allow(*asker, requested(seen.class), fd)?;
        }
        Err(errno) => {
            let missing_name = MissingName::of(name, what.requested);
            let ended = missing_name.ended(asker, errno);
            if ended.errno != errno {
                return Err(ended.errno);
            }
            if keeps && errno == Errno::NOENT && !is_own && !ended.refused {
                paths.missing(asker.state, name);
            }
        }
    }
    // The program makes the call itself. A path swapped meanwhile shows at most that a hidden name
    // exists; its content stays behind open, which is decided, and behind the envelope.
    Ok(Answer::Continue)
}

/// Watches the very object that was decided: no envelope knows watches, and a path swapped
/// meanwhile would tell the names of everything in a directory that nothing grants.
pub(super) fn watch(asker: FileAsker<'_>) -> CallResult {
    let mask = WatchFlags::from_bits_retain(asker.caller.call.args[2] as u32);
    if mask.bits() & ALL_INOTIFY_BITS == 0 {
        return Err(Errno::INVAL);
    }
    let fd = asker.caller.int(0);
    let inotify = asker.duplicate(fd)?;
    if asker.caller.flags(fd)?.contains(OFlags::PATH) {
        return Err(Errno::BADF);
    }
    if mask.contains(WatchFlags::MASK_ADD | WatchFlags::MASK_CREATE) {
        return Err(Errno::INVAL);
    }
    if path_of(&asker.state.targets.tree, &inotify)?.as_os_str() != "anon_inode:inotify" {
        return Err(Errno::INVAL);
    }
    let path = asker.caller.path(1)?;
    let follow = !mask.contains(WatchFlags::DONT_FOLLOW);
    let name = Name { dirfd: libc::AT_FDCWD, path: &path, follow };
    let found = walk(asker.caller, name);
    let found = found.and_then(|found| {
        proc_files::allow(*asker, &found)?;
        let descriptor = found.descriptor;
        Ok((found.existing()?, descriptor))
    });
    let requested = perm::file::GETATTR | perm::file::WATCH;
    let missing_name = MissingName::of(name, requested);
    let (object, descriptor) = found.map_err(|errno| missing_name.ended(asker, errno).errno)?;
    let seen = Seen::of(*asker, object.as_fd())?;
    if seen.class != Class::Dir
        && mask.contains(WatchFlags::ONLYDIR)
        && seen.grants(*asker, perm::file::GETATTR)
    {
        return Err(Errno::NOTDIR);
    }
    if has_name(*asker, &object)? {
        seen.allow(*asker, requested, &object)?;
        // When it was typed there, and when it was read.
        terminals::allow(*asker, &object)?;
    } else {
        proc_files::allow_held(*asker, descriptor, &object, None)?;
    }
    let name = asker.state.on_behalf.fs_state.path_of(&object);
    let watch = add_watch(&inotify, name, mask.difference(WatchFlags::DONT_FOLLOW))?;
    Ok(Answer::Return(watch.into()))
}

/// Whether the flags say `AT_EMPTY_PATH`.
fn may_be_empty(asker: FileAsker<'_>) -> bool {
    use Sysno::*;
    let n = match asker.number {
        statx | getxattrat | listxattrat => 2,
        newfstatat | faccessat2 => 3,
        file_getattr | name_to_handle_at => 4,
        _ => return false,
    };
    asker.caller.int(n) & libc::AT_EMPTY_PATH != 0
}

fn arguments(asker: FileAsker<'_>) -> MetadataCall {
    use Sysno::*;
    let flag = |n: usize, flag: libc::c_int| asker.caller.int(n) & flag != 0;
    let nofollow = libc::AT_SYMLINK_NOFOLLOW;
    let at = |path: usize, follow: bool| {
        let dirfd = if path == 1 { asker.caller.int(0) } else { libc::AT_FDCWD };
        MetadataCall { dirfd, path, follow, requested: perm::file::GETATTR }
    };
    match asker.number {
        lstat | readlink | lgetxattr | llistxattr => at(0, false),
        newfstatat | faccessat2 => at(1, !flag(3, nofollow)),
        statx | getxattrat | listxattrat => at(1, !flag(2, nofollow)),
        file_getattr => at(1, !flag(4, nofollow)),
        faccessat => at(1, true),
        readlinkat => at(1, false),
        name_to_handle_at => at(1, flag(4, libc::AT_SYMLINK_FOLLOW)),
        _ => at(0, true),
    }
}
