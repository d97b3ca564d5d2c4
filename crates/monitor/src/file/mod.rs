//! The file object manager: labels files by inode, decides every call that reaches one by name, and makes on the
//! program's behalf whatever the envelope does not refuse exactly as policy does.

mod attribute;
mod beyond;
mod change;
mod entry;
mod known;
mod limited;
mod look;
mod memory;
mod object;
mod open;
mod planted;
mod rename;
mod reopen;
mod repository;

use crate::gate::{Answer, Asker, Outcome};
use syscalls::Sysno;

pub(crate) use beyond::{Attempt, Beyond, New};
pub(crate) use entry::allow_new;
pub(crate) use known::KnownPaths;
pub(crate) use object::{Seen, class_of};
pub(crate) use open::with_umask;
pub(crate) use planted::Plantings;
pub use planted::{Planted, Watch, Why};
pub(crate) use repository::{Claims, known_as};

/// Answers the calls of this object manager; `None` for those of others.
pub(crate) fn decide(asker: Asker<'_>) -> Option<Outcome> {
    use Sysno::*;
    Some(match asker.number {
        open | openat | creat | openat2 => self::open::decide(asker),
        mkdir | mkdirat | rmdir | unlink | unlinkat | rename | renameat | renameat2 | link
        | linkat | symlink | symlinkat | mknod | mknodat => change::decide(asker),
        chmod | fchmod | fchmodat | fchmodat2 | chown | fchown | lchown | fchownat | utime
        | utimes | futimesat | utimensat | truncate | setxattr | lsetxattr | fsetxattr
        | removexattr | lremovexattr | fremovexattr | setxattrat | removexattrat | file_setattr
        | ioctl => attribute::decide(asker),
        stat | lstat | newfstatat | statx | access | faccessat | faccessat2 | readlink
        | readlinkat | statfs | getxattr | lgetxattr | getxattrat | listxattr | llistxattr
        | listxattrat | file_getattr | name_to_handle_at => look::decide(asker),
        inotify_add_watch => look::watch(asker),
        memfd_create => memory::decide(asker),
        chdir => {
            asker.gate.paths.forget_directories();
            look::decide(asker)
        }
        fchdir => {
            asker.gate.paths.forget_directories();
            // Whoever holds a directory may start paths from it, here or by descriptor.
            Ok(Answer::Continue)
        }
        _ => return None,
    })
}
