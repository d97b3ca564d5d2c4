//! Calls that only look at a name: decided where policy hides something.

use super::object::{Seen, missing_name};
use crate::{
    gate::{Answer, Asker, Outcome},
    resolve::{Name, look},
};
use flask::{AccessVector, Class, perm};
use rustix::io::{Errno, Result};
use std::os::fd::AsFd;
use syscalls::Sysno;

/// Where the path stands in the arguments, whether a link at its end is followed, and what is asked for.
struct Look {
    dirfd: i32,
    path: usize,
    follow: bool,
    requested: AccessVector,
}

pub(super) fn decide(asker: Asker<'_>) -> Outcome {
    let found = arguments(asker);
    let path = asker.caller.path(found.path)?;
    if path.as_os_str().is_empty() {
        // A descriptor that the program holds, by `AT_EMPTY_PATH`.
        return Ok(Answer::Continue);
    }
    let name = Name { dirfd: found.dirfd, path: &path, follow: found.follow };
    match look(asker.caller, name) {
        Ok(fd) => allow(asker, &found, &fd)?,
        Err(Errno::NOENT) => missing_name(asker, found.dirfd, &path, found.requested),
        Err(_) => {}
    }
    // The program makes the call itself. A path swapped meanwhile shows at most that a hidden name exists; its
    // content stays behind open, which is decided, and behind the envelope.
    Ok(Answer::Continue)
}

fn allow(asker: Asker<'_>, found: &Look, fd: &std::os::fd::OwnedFd) -> Result<()> {
    let seen = Seen::of(asker, fd.as_fd())?;
    let search = if seen.class == Class::Dir && asker.number == Sysno::chdir {
        perm::dir::SEARCH
    } else {
        AccessVector::NONE
    };
    seen.allow(asker, found.requested | search, fd)
}

fn arguments(asker: Asker<'_>) -> Look {
    use Sysno::*;
    let flag = |n: usize, flag: libc::c_int| asker.caller.int(n) & flag != 0;
    let nofollow = libc::AT_SYMLINK_NOFOLLOW;
    let look = |path: usize, follow: bool| {
        let dirfd = if path == 1 { asker.caller.int(0) } else { libc::AT_FDCWD };
        Look { dirfd, path, follow, requested: perm::file::GETATTR }
    };
    match asker.number {
        lstat | readlink | lgetxattr | llistxattr => look(0, false),
        newfstatat | faccessat2 => look(1, !flag(3, nofollow)),
        statx | getxattrat | listxattrat => look(1, !flag(2, nofollow)),
        file_getattr => look(1, !flag(4, nofollow)),
        faccessat => look(1, true),
        readlinkat => look(1, false),
        name_to_handle_at => look(1, flag(4, libc::AT_SYMLINK_FOLLOW)),
        inotify_add_watch => {
            let dirfd = libc::AT_FDCWD;
            Look {
                dirfd,
                path: 1,
                follow: true,
                requested: perm::file::GETATTR | perm::file::WATCH,
            }
        }
        _ => look(0, true),
    }
}
