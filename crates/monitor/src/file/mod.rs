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

use crate::{gate::Answer, handler::decides, label::Labels, manager::Manager};

pub(crate) use beyond::{Attempt, Beyond, New};
pub(crate) use entry::{allow_new, with_umask};
pub(crate) use known::KnownPaths;
pub(crate) use object::{Seen, class_of};
pub(crate) use planted::Plantings;
pub use planted::{Planted, Watch, Why};
pub(crate) use repository::{Claims, known_as};

/// The file object manager: its access vector cache, and what it knows of files.
pub(crate) struct FileManager {
    pub(crate) avc: Manager,
    pub(crate) labels: Labels,
    pub(crate) paths: KnownPaths,
    /// Names that make a directory a repository.
    pub(crate) claims: Claims,
    /// What a program outside may execute later.
    pub(crate) plantings: Plantings,
    /// What the view keeps back: what is not found in it is explained.
    pub(crate) beyond: Beyond,
}

decides! { asker:
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
        asker.gate.files.paths.forget_directories();
        look::decide(asker)
    },
    fchdir => {
        asker.gate.files.paths.forget_directories();
        // Whoever holds a directory may start paths from it, here or by descriptor.
        Ok(Answer::Continue)
    },
}
