//! Where a file lies, also where that is deeper than the kernel tells.

use audit::Refusal;
use mediation::call::Asker;
use proc::path_of;
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags},
    io::{Errno, Result},
};
use std::{
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
};

/// The path of `fd`, a descriptor of the monitor's. The kernel tells none that is longer than
/// `PATH_MAX`; of a file there, it is that of its directory, and the name by which the call names
/// it.
///
/// # Errors
///
/// `NAMETOOLONG`: nobody can tell.
pub(crate) fn place_of(asker: Asker<'_>, fd: impl AsFd) -> Result<PathBuf> {
    match path_of(&asker.state.targets.tree, &fd) {
        Err(Errno::NAMETOOLONG) => {
            let named = (0..4).find_map(|n| named_by(asker, n, fd.as_fd()));
            named.ok_or(Errno::NAMETOOLONG)
        }
        told => told,
    }
}

/// The same; where nobody can tell, it may have a name that is denied, so it is refused, on record.
pub(crate) fn certain_place(asker: Asker<'_>, fd: impl AsFd) -> Result<PathBuf> {
    place_of(asker, &fd).map_err(|errno| match errno {
        Errno::NAMETOOLONG => asker.refuse(&Refusal {
            errno: Errno::ACCESS,
            by: "the file object manager",
            tclass: "file",
            missing: asker.number.name(),
            object: told(asker, &fd),
            reason: "its path is longer than the kernel tells, and could not be found from there: it may have a name that policy does not \
                     grant",
            instead: "have the program work where paths are shorter than 4096 bytes",
        }),
        errno => errno,
    })
}

/// What a record calls the file behind `fd`: its path, or else its number.
pub(crate) fn told(asker: Asker<'_>, fd: impl AsFd) -> String {
    match (place_of(asker, &fd), rustix::fs::fstat(&fd)) {
        (Ok(path), _) => path.to_string_lossy().into_owned(),
        (Err(_), Ok(it)) => {
            let (major, minor) = (rustix::fs::major(it.st_dev), rustix::fs::minor(it.st_dev));
            format!("inode {} of device {major}:{minor}, too deep to be named", it.st_ino)
        }
        (Err(_), Err(_)) => "a file too deep to be named".into(),
    }
}

/// The path of `fd`, if argument `n` is a name of it: whatever else it may be, the file that it
/// leads to is compared.
fn named_by(asker: Asker<'_>, n: usize, fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = asker.caller.path(n).ok()?;
    let name = path.file_name()?;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    let bases = [n.checked_sub(1).map(|n| asker.caller.int(n)), Some(libc::AT_FDCWD)];
    bases.into_iter().flatten().find_map(|base| {
        let base = asker.caller.base(base).ok()?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let base = if path.is_absolute() { CWD } else { base.as_fd() };
        let limits = ResolveFlags::NO_MAGICLINKS;
        let above = above.unwrap_or(Path::new("."));
        let above = rustix::fs::openat2(base, above, flags, Mode::empty(), limits).ok()?;
        let found = rustix::fs::statat(&above, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let wanted = rustix::fs::fstat(fd).ok()?;
        let is_it = (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino);
        is_it
            .then(|| path_of(&asker.state.targets.tree, &above).ok())?
            .map(|above| above.join(name))
    })
}
