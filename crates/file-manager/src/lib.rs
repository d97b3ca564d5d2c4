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
mod attribute;
mod change;
mod continued;
mod entry;
mod kinds;
mod limited;
mod memory;
mod metadata;
mod object;
mod open;
mod outside;
mod path_cache;
mod place;
mod rename;
mod reopen;
mod xattr;

use audit::Plantings;
use inode_labels::{CallClaims, Claims};
use mediation::{
    call::{Answer, Asker},
    decides,
};
use std::{ops::Deref, sync::Arc};

pub use entry::allow_new;
pub use memory::stays_plain;
pub use object::{Seen, Target, class_of, has_name};
pub use outside::{Attempt, New, Outside};
pub use path_cache::PathCache;

/// The file object manager: what it knows of files beside their labels.
pub struct FileManager {
    /// What names were found to lead to.
    pub paths: PathCache,
    /// Names that make a directory a repository.
    pub claims: Claims,
    /// What a program outside may execute later.
    pub plantings: Plantings,
    /// What the view keeps back: what is not found in it is explained.
    pub outside: Arc<Outside>,
}

/// A call with its subject, at the file object manager.
#[derive(Clone, Copy)]
pub struct FileAsker<'a> {
    /// The call.
    pub asker: Asker<'a>,
    /// The object manager.
    pub files: &'a FileManager,
    /// The names that this call may be about to make.
    pub claims: &'a CallClaims<'a>,
}

impl<'a> Deref for FileAsker<'a> {
    type Target = Asker<'a>;

    fn deref(&self) -> &Asker<'a> {
        &self.asker
    }
}

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
        asker.files.paths.forget_directories();
        metadata::decide(asker)
    },
    fchdir => {
        asker.files.paths.forget_directories();
        // Whoever holds a directory may start paths from it, here or by descriptor.
        Ok(Answer::Continue)
    },
}
