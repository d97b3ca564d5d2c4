//! The file object manager: labels files by inode, decides every call that reaches one by name, and
//! makes on the program's behalf whatever the envelope does not refuse exactly as policy does.
//!
//! ```text
//!  Name ──▶ walk ──▶ inode, held by O_PATH ──▶ label ──▶ Asker::ask ──▶ the held inode is used
//!              │                                             └─▶ denied: errno, and a record
//!              └─▶ nothing there: Outside says what the view keeps back
//! ```
//!
//! [`decide`] takes one call of [`CALLS`], the very ones that the filter traps for it.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![forbid(unsafe_code)]

mod acl;
mod asker;
mod attribute;
mod change;
mod confined;
mod continued;
mod entry;
mod kinds;
mod limited;
mod manager;
mod memory;
mod metadata;
mod missing_name;
mod object;
mod open;
mod outside;
mod path_cache;
mod place;
mod removal;
mod rename;
mod reopen;
mod terminals;
mod working_directories;
mod xattr;

use mediation::{call::Answer, decides};

pub use asker::FileAsker;
pub use confined::confined;
pub use entry::allow_new;
pub use manager::FileManager;
pub use memory::stays_plain;
pub use missing_name::{MissingName, New};
pub use object::{FileObject, Seen, class_of};
pub use outside::Outside;
pub use path_cache::PathCache;

decides! { pub asker: FileAsker<'_>,
    open | openat | creat | openat2 => self::open::decide(asker),
    mkdir | mkdirat | rmdir | unlink | unlinkat | rename | renameat | renameat2 | link
    | linkat | symlink | symlinkat | mknod | mknodat => change::decide(asker),
    chmod | fchmod | fchmodat | fchmodat2 | chown | fchown | lchown | fchownat | utime
    | utimes | futimesat | utimensat | truncate | file_setattr | ioctl => attribute::decide(asker),
    setxattr | lsetxattr | fsetxattr | setxattrat | removexattr | lremovexattr | fremovexattr
    | removexattrat => xattr::decide(asker),
    stat | lstat | newfstatat | statx | access | faccessat | faccessat2 | readlink
    | readlinkat | statfs | getxattr | lgetxattr | getxattrat | listxattr | llistxattr
    | listxattrat | file_getattr | name_to_handle_at => metadata::decide(asker),
    inotify_add_watch => metadata::watch(asker),
    memfd_create => memory::decide(*asker),
    chdir => {
        asker.files.paths.directories.forget();
        metadata::decide(asker)
    },
    fchdir => {
        asker.files.paths.directories.forget();
        // Whoever holds a directory may start paths from it, here or by descriptor.
        Ok(Answer::Continue)
    },
}
