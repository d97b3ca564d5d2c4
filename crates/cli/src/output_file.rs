//! Files that a user names to write to, in places where a run may have been before.
//!
//! A run can leave a link where the next command writes, or a pipe that nobody reads: what was
//! meant for a file of the workspace would go into a file of the user's, and names that a program
//! chose with it, or a command would wait for ever. So no link is followed that a run could have
//! made: not the file's own name, and none on the way from the working directory.

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, statat},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::{File, Permissions},
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::fs::{MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

/// What a link is answered.
const LINK: &str =
    "it is a link, or there is one on the way, as a run may leave: name the file that is meant";

/// What anything else is answered.
pub(crate) const NO_FILE: &str = "it is there, and is no file by itself";

/// Opens the file `path` to append to it, and makes it if it is not there; a run on `workspace` may
/// have been where it lies. What lies in `/dev` and `/proc`, where no run makes anything, is opened
/// as it is named: `/dev/stderr`, `/dev/fd/3`.
///
/// # Errors
///
/// That it is a link or no file, or what the system says.
pub fn append(path: &Path, workspace: Option<&Path>) -> io::Result<File> {
    if is_systems(path) {
        return File::options().append(true).open(path);
    }
    open(path, workspace.as_slice(), OFlags::WRONLY | OFlags::APPEND)
}

/// Opens the file `path` to read it and to write on, and makes it if it is not there.
///
/// # Errors
///
/// That it is a link or no file, or what the system says.
pub fn update(path: &Path) -> io::Result<File> {
    open(path, &[], OFlags::RDWR)
}

fn open(path: &Path, near: &[&Path], access: OFlags) -> io::Result<File> {
    let (directory, name) = place(path, near)?;
    // A pipe that nobody reads is no reason to wait.
    let flags = access | OFlags::CREATE | OFlags::CLOEXEC;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match openat(&directory, name, flags, Mode::from_raw_mode(0o666)) {
        Err(Errno::LOOP) => return Err(io::Error::other(LINK)),
        Err(Errno::NXIO) => return Err(io::Error::other(NO_FILE)),
        file => File::from(file?),
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(NO_FILE)),
    }
}

/// Puts `bytes` into the place of what the file `path` holds, whole or not at all. It is as
/// readable as it was; a new one, as the user's umask leaves it. What lies in `/dev` and `/proc` is
/// written to.
///
/// # Errors
///
/// That it is a link, a directory or no file, or what the system says.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if is_systems(path) {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    let (directory, name) = place(path, &[])?;
    let before = match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) => match FileType::from_raw_mode(there.st_mode) {
            FileType::RegularFile => Some(Permissions::from_mode(there.st_mode & 0o777)),
            FileType::Symlink => return Err(io::Error::other(LINK)),
            FileType::Directory => {
                return Err(io::Error::other("it is a directory; name a file in it"));
            }
            _ => return Err(io::Error::other(NO_FILE)),
        },
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    let directory = held(&directory);
    let readable = before.clone().unwrap_or_else(|| Permissions::from_mode(0o666));
    let mut file = tempfile::Builder::new().permissions(readable).tempfile_in(&directory)?;
    if let Some(before) = before {
        file.as_file().set_permissions(before)?;
    }
    file.write_all(bytes)?;
    file.persist(directory.join(name))?;
    Ok(())
}

/// The directory that `path` lies in, by a name that leads there whatever becomes of its path. It
/// holds as long as what is returned with it.
///
/// # Errors
///
/// That there is a link on the way, or what the system says.
pub fn directory(path: &Path) -> io::Result<(PathBuf, OwnedFd)> {
    let (directory, _) = place(path, &[])?;
    Ok((held(&directory), directory))
}

/// Makes the directory `path`, and those on the way that are missing, with `mode` as the umask
/// leaves it; a run may have been in the directories `near`, too.
///
/// # Errors
///
/// That there is a link, or what the system says.
pub fn make_directory(path: &Path, near: &[&Path], mode: u32) -> io::Result<()> {
    let is_there = || place(&path.join("it"), near).map(drop);
    match is_there() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        otherwise => return otherwise,
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_directory(parent, near, mode)?;
    }
    if path.file_name().is_some() {
        let (directory, name) = place(path, near)?;
        match mkdirat(&directory, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    is_there()
}

/// Whether it lies where no run makes anything.
pub(crate) fn is_systems(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|top| path.starts_with(top))
}

fn held(directory: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", directory.as_raw_fd()).into()
}

/// The directory that `path` lies in, and its name there. No link below the working directory, nor
/// below those that are `near`, is followed; elsewhere a link is as the user has it, and the whole
/// path is the user's word.
fn place<'a>(path: &'a Path, near: &[&Path]) -> io::Result<(OwnedFd, &'a OsStr)> {
    let name = path.file_name().ok_or(Errno::ISDIR)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |at: BorrowedFd<'_>, path: &Path, links| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match openat2(at, path, flags, Mode::empty(), links) {
            Err(Errno::LOOP) => Err(io::Error::other(LINK)),
            opened => Ok(opened?),
        }
    };
    if parent.is_relative() {
        return Ok((open(CWD, parent, ResolveFlags::NO_SYMLINKS)?, name));
    }
    for above in parent.ancestors() {
        let it = number(above);
        let mut near = [Path::new(".")].into_iter().chain(near.iter().copied());
        if let Some(near) = near.find(|near| it.is_some() && number(near) == it)
            && let Ok(rest) = parent.strip_prefix(above)
        {
            let near: OwnedFd = open(CWD, near, ResolveFlags::empty())?;
            return Ok((open(near.as_fd(), rest, ResolveFlags::NO_SYMLINKS)?, name));
        }
    }
    Ok((open(CWD, parent, ResolveFlags::empty())?, name))
}

/// What tells a directory from others.
fn number(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|it| (it.dev(), it.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn neither_links_nor_pipes_are_written_to() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("victim"), "kept").unwrap();
        symlink("victim", at("link")).unwrap();
        symlink("made", at("dangling")).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, mode, 0).unwrap();
        for name in ["link", "dangling", "pipe", "."] {
            append(&at(name), None).unwrap_err();
            update(&at(name)).unwrap_err();
            replace(&at(name), b"other").unwrap_err();
        }
        // With a reader, too.
        let _reader = openat(CWD, at("pipe"), OFlags::RDWR, Mode::empty()).unwrap();
        append(&at("pipe"), None).unwrap_err();
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "kept");
        assert!(!at("made").exists());
    }

    #[test]
    fn files_are_appended_to_and_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        for line in ["one\n", "two\n"] {
            append(&path, None).unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        replace(&path, b"three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        for mode in [0o600, 0o664] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            replace(&path, b"four").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, mode);
        }
        append(Path::new("/dev/null"), None).unwrap();
        replace(Path::new("/dev/null"), b"gone").unwrap();
    }

    #[test]
    fn links_below_the_working_directory_lead_nowhere() {
        let place = tempfile::tempdir_in(".").unwrap();
        let near = Path::new(place.path().file_name().unwrap());
        fs::create_dir(near.join("real")).unwrap();
        symlink("real", near.join("linked")).unwrap();
        let whole = std::env::current_dir().unwrap().join(near);
        for near in [near, &whole] {
            append(&near.join("real/file"), None).unwrap();
            for error in [
                append(&near.join("linked/file"), None).unwrap_err(),
                replace(&near.join("linked/file"), b"").unwrap_err(),
            ] {
                assert_eq!(error.to_string(), LINK);
            }
        }
        // Elsewhere they are the user's.
        let other = tempfile::tempdir().unwrap();
        symlink(whole.join("real"), other.path().join("linked")).unwrap();
        append(&other.path().join("linked/file"), None).unwrap();
        let made = |path: PathBuf, near: &[&Path]| make_directory(&path, near, 0o777);
        made(other.path().join("linked/a/b"), &[]).unwrap();
        made(near.join("real/a/../c/d"), &[]).unwrap();
        symlink("nowhere", near.join("dangling")).unwrap();
        for path in ["linked/new", "dangling", "dangling/new"] {
            for near in [near, &whole] {
                assert_eq!(made(near.join(path), &[]).unwrap_err().to_string(), LINK);
            }
        }
        assert!(near.join("real/c/d").is_dir() && !near.join("nowhere").exists());
        made(other.path().join("linked/new"), &[other.path()]).unwrap_err();
        assert!(!near.join("real/new").exists());
        // But in a workspace, and where the working directory was entered by one.
        append(&other.path().join("linked/file"), Some(other.path())).unwrap_err();
        symlink(&whole, other.path().join("here")).unwrap();
        append(&other.path().join("here/real/file"), Some(&whole)).unwrap();
        append(&other.path().join("here/linked/file"), Some(&whole)).unwrap_err();
    }
}
