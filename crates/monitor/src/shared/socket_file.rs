//! The files that name unix sockets: found and made as files are, for the socket object manager.

use file_manager::{FileAsker, FileManager, MissingName, New, Seen, allow_new};
use flask::{Class, perm};
use inode_labels::{CallClaims, FileRef, Status, is_part};
use mediation::{call::Asker, subject::proc_files};
use proc::path_of;
use rustix::{
    fs::{Access, AtFlags, FileType, Mode, OFlags},
    io::{Errno, Result},
};
use std::{
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};
use supervisor::{Name, WalkedPath, walk};

/// The file system of sockets that have no file (`linux/magic.h`).
const SOCKFS_MAGIC: rustix::fs::FsWord = 0x534f_434b;

/// How a socket is made where it was decided.
pub(crate) enum Way<'a> {
    /// By the path that the program gave, which leads below this directory.
    Below(&'a OwnedFd),
    /// By this path of the monitor's.
    Fixed(Vec<u8>),
}

/// What the socket object manager has of the file object manager.
#[derive(Clone, Copy)]
pub(crate) struct SocketFiles<'a> {
    files: &'a FileManager,
    claims: &'a CallClaims<'a>,
}

impl<'a> SocketFiles<'a> {
    pub(crate) fn new(files: &'a FileManager, claims: &'a CallClaims<'a>) -> Self {
        Self { files, claims }
    }

    /// The socket at `path`, held, and what it is. Whether `asker` may connect to it is for the
    /// socket object manager to ask.
    pub(crate) fn find(self, asker: Asker<'a>, path: &Path) -> Result<(OwnedFd, Seen)> {
        let asker = FileAsker { asker, files: self.files, claims: self.claims };
        let name = Name { dirfd: libc::AT_FDCWD, path, follow: true };
        let missing_name = MissingName { name, requested: perm::file::WRITE, new: New::Socket };
        let ended = |errno| missing_name.ended(asker, errno).errno;
        let found = walk(asker.caller, name).map_err(ended)?;
        proc_files::allow(*asker, &found)?;
        let wants_dir = found.wants_dir;
        let held = found.object.ok_or_else(|| ended(Errno::NOENT))?;
        let seen = Seen::of(*asker, held.as_fd())?;
        if wants_dir && seen.class != Class::Dir {
            seen.allow(*asker, perm::file::GETATTR, &held)?;
            return Err(Errno::NOTDIR);
        }
        if seen.status.kind != FileType::Socket {
            // Not a matter of policy: nobody listens there.
            seen.allow(*asker, perm::file::GETATTR, &held)?;
            let (own_fds, number) =
                (&asker.state.targets.tree.own_fds, held.as_raw_fd().to_string());
            let writable =
                rustix::fs::accessat(own_fds, number, Access::WRITE_OK, AtFlags::EACCESS);
            if writable == Err(Errno::ACCESS) {
                // It may be what covers a socket that is denied.
                seen.allow(*asker, perm::file::WRITE, &held)?;
            }
            return Err(writable.err().unwrap_or(Errno::CONNREFUSED));
        }
        if rustix::fs::fstatfs(&held)?.f_type == SOCKFS_MAGIC {
            // A socket that a descriptor is of, by its link in `/proc`: bound to no file.
            return Err(Errno::CONNREFUSED);
        }
        Ok((held, seen))
    }

    /// Has `bind` make a socket at `path`, if `asker` may; what was made, unless that is not
    /// certain: somebody else can have put another one there meanwhile, and the path can have led
    /// elsewhere. `is_it` says whether a file is the one that the socket is bound to; where nobody
    /// can tell, there is none.
    pub(crate) fn make(
        self,
        asker: Asker<'a>,
        path: &Path,
        bind: impl FnOnce(Way<'_>) -> Result<()>,
        is_it: Option<impl Fn(&OwnedFd, &Status) -> bool>,
    ) -> Result<Option<(Status, OwnedFd)>> {
        let asker = FileAsker { asker, files: self.files, claims: self.claims };
        let name = Name { dirfd: libc::AT_FDCWD, path, follow: false };
        let WalkedPath { entry, object, .. } = walk(asker.caller, name)?;
        let (Some((parent, name)), None) = (entry, object) else { return Err(Errno::ADDRINUSE) };
        let sid = allow_new(asker, &parent, &name, FileType::Socket, perm::file::CREATE)?;
        let parent_path = path_of(&asker.state.targets.tree, &parent)?;
        let is_plain = path.as_os_str() == name;
        // Led elsewhere below the directory, it would be what was not decided, or nobody could tell
        // which file it is.
        let must_lie_there =
            is_it.is_none() || is_part(&name) || !asker.labels().is_even_below(&parent_path);
        let may_be_led =
            must_lie_there && !is_plain && !asker.files.paths.now().is_fixed_way(asker.state, path);
        let _making = asker.labels().making(&name);
        let witness = is_it.is_none().then(|| asker.witness(&parent));
        if may_be_led {
            let directory = asker.state.on_behalf.fs_state.path_of(&parent);
            let fixed = [directory.as_bytes(), b"/", name.as_bytes()].concat();
            asker.with_umask(|| bind(Way::Fixed(fixed)))?;
        } else if is_plain {
            // Another thread can have left it for another directory since.
            asker.in_directory(&parent, || bind(Way::Below(&parent)))?;
        } else {
            asker.in_cwd(|| bind(Way::Below(&parent)))?;
        }
        let made = match witness {
            Some(witness) => witness.and_then(|it| it.made(&parent, &name)),
            None => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(&parent, &name, flags, Mode::empty()).map(Some)
            }
        };
        let Ok(Some(made)) = made else { return Ok(None) };
        let status = Status::of(made.as_fd())?;
        let is_it = is_it.is_none_or(|is_it| is_it(&made, &status));
        if status.kind != FileType::Socket || !is_it {
            return Ok(None);
        }
        asker.labels().created(&status, FileRef::Fd(made.as_fd()), sid);
        Ok(Some((status, made)))
    }
}
