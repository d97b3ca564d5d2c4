//! Where the sockets of runs lie: a directory of the user's own, one socket for each run, named by
//! its id and by the process that listens.

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};
use std::{
    env, fs,
    io::{self, Read as _},
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// A socket that nobody listens at, and that is older than this, was left by a run that was killed.
const STALE: Duration = Duration::from_secs(10);

/// What is ours in a runtime directory, which ends with the session.
const RUNTIME: &str = "dewar/runs";

/// What is ours where there is no such directory.
const STATE: &str = "dewar/control";

/// The control socket of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlEntry {
    /// The run.
    pub id: String,
    /// Its monitor.
    pub pid: i32,
}

impl ControlEntry {
    fn name(&self) -> String {
        format!("{}.{}", self.id, self.pid)
    }

    fn parse(name: &str) -> Option<Self> {
        let (id, pid) = name.split_once('.')?;
        Some(Self { id: id.to_owned(), pid: pid.parse().ok()? }).filter(|_| !id.is_empty())
    }
}

/// An open directory of runs.
#[derive(Debug)]
pub struct RunDirectory(OwnedFd);

impl RunDirectory {
    /// The directory for a new run of this user, made if need be.
    ///
    /// # Errors
    ///
    /// Whatever the system says, and `PermissionDenied` for a directory that others can reach into.
    pub fn own() -> io::Result<Self> {
        let runtime = runtime_directory();
        let path =
            if is_own(&runtime) { runtime.join(RUNTIME) } else { state_directory()?.join(STATE) };
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot use `{}`: {error}", path.display()))
        };
        make_private(&path).map_err(named)?;
        Self::open(&path, rustix::process::geteuid().as_raw()).map_err(named)
    }

    /// Every directory in which this user's runs can be.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Self::of_user(rustix::process::geteuid().as_raw())
    }

    /// Every directory in which a user's runs can be, as far as this process may look there: for
    /// others, only root may, and only where their session's runtime directory is by custom.
    #[must_use]
    pub fn of_user(uid: u32) -> Vec<Self> {
        let paths = if uid == rustix::process::geteuid().as_raw() {
            let state = state_directory().map(|state| state.join(STATE)).ok();
            [Some(runtime_directory().join(RUNTIME)), state]
        } else {
            [Some(usual_runtime_directory(uid).join(RUNTIME)), None]
        };
        paths.into_iter().flatten().filter_map(|path| Self::open(&path, uid).ok()).collect()
    }

    /// Only a directory of `uid` that nobody else can reach into: who may talk to a run is first of
    /// all who gets here.
    fn open(path: &Path, uid: u32) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        if stat.st_uid != uid || stat.st_mode & 0o077 != 0 {
            let message = "it must belong to the user whose runs they are, and have mode 0700";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        Ok(Self(fd))
    }

    /// The path of a socket in it, short enough for an address whatever the directory is called.
    #[must_use]
    pub fn socket(&self, entry: &ControlEntry) -> PathBuf {
        format!("/proc/self/fd/{}/{}", self.0.as_raw_fd(), entry.name()).into()
    }

    /// The sockets in it.
    ///
    /// # Errors
    ///
    /// Whatever the system says.
    pub fn entries(&self) -> io::Result<Vec<ControlEntry>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::Dir::new(rustix::fs::openat(&self.0, ".", flags, Mode::empty())?)?;
        let mut entries = Vec::new();
        for entry in directory {
            entries.extend(ControlEntry::parse(&entry?.file_name().to_string_lossy()));
        }
        Ok(entries)
    }

    /// Removes the socket of a run.
    pub fn remove(&self, entry: &ControlEntry) {
        // Somebody else may have removed it; then all is well, too.
        let _: Result<(), Errno> = rustix::fs::unlinkat(&self.0, entry.name(), AtFlags::empty());
    }

    /// Removes a socket that refuses connections, unless it is so new that its run may only be
    /// starting.
    pub fn remove_stale(&self, entry: &ControlEntry) {
        let made =
            fs::symlink_metadata(self.socket(entry)).and_then(|metadata| metadata.modified());
        let age = made.map(|made| SystemTime::now().duration_since(made).unwrap_or_default());
        if age.is_ok_and(|age| age > STALE) {
            self.remove(entry);
        }
    }
}

/// The runtime directory: that of the session, or the one that the user has by custom.
fn runtime_directory() -> PathBuf {
    let named = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = || usual_runtime_directory(rustix::process::geteuid().as_raw());
    named.filter(|path| path.is_absolute()).unwrap_or_else(usual)
}

fn usual_runtime_directory(uid: u32) -> PathBuf {
    format!("/run/user/{uid}").into()
}

fn is_own(directory: &Path) -> bool {
    let own = |metadata: fs::Metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
    };
    fs::metadata(directory).is_ok_and(own)
}

/// Makes a directory, and those above it that are missing, for this user alone: whatever the umask
/// is, they have mode 0700. What is there stays as it is.
///
/// # Errors
///
/// Whatever the system says.
pub fn make_private(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|above| !above.exists()).collect();
    for directory in missing.into_iter().rev() {
        match fs::DirBuilder::new().mode(0o700).create(directory) {
            // A umask can take more than others' rights.
            Ok(()) => give_all_rights(directory)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives this user all rights to a directory of its own that it has just made. Where `HOME` is
/// another user's, that one may have put something else there since.
fn give_all_rights(path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::open(path, flags, Mode::empty())?;
    insist_on_own(&made)?;
    let held = format!("/proc/self/fd/{}", made.as_raw_fd());
    fs::set_permissions(held, fs::Permissions::from_mode(0o700))
}

/// The directory `path`, if it is this user's: where `HOME` is another user's, that one may have
/// put anything in its place.
///
/// # Errors
///
/// That it is a link or another user's, or what the system says.
pub fn open_own(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => {
            io::Error::other("it is a link, or no directory: move it away")
        }
        error => error.into(),
    })?;
    insist_on_own(&directory)?;
    Ok(directory)
}

/// The file `path` to read from, if this user has made it, and it is no link.
///
/// # Errors
///
/// That it is another user's or no file, or what the system says.
pub fn own_file(path: &Path) -> io::Result<fs::File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    insist_on_own(&file)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no file")),
    }
}

/// What such a file holds.
///
/// # Errors
///
/// As [`own_file`].
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    own_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn insist_on_own(file: &impl AsFd) -> io::Result<()> {
    let owner = rustix::fs::fstat(file)?.st_uid;
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let told = format!(
        "it belongs to user {owner}: set HOME or XDG_STATE_HOME to a directory of your own"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, told))
}

/// Where this user's programs keep their state: `$XDG_STATE_HOME`, or its default.
///
/// # Errors
///
/// If neither that nor `HOME` is set.
pub fn state_directory() -> io::Result<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::home_dir().map(|home| home.join(".local/state"));
    state.or_else(home).ok_or_else(|| io::Error::other("HOME is not set"))
}

/// Where this user's programs keep what they can make again: `$XDG_CACHE_HOME`, or its default.
///
/// # Errors
///
/// If neither that nor `HOME` is set to an absolute path.
pub fn cache_directory() -> io::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    cache.ok_or_else(|| io::Error::other("HOME is not set"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_s_name_says_whose_it_is() {
        let entry = ControlEntry { id: "abcd2345".into(), pid: 17 };
        assert_eq!(ControlEntry::parse(&entry.name()), Some(entry));
        for other in [".", "..", "abcd2345", "abcd2345.", ".17", "abcd2345.x"] {
            assert_eq!(ControlEntry::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_directory_of_another_user_or_that_others_can_reach_into_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let uid = rustix::process::geteuid().as_raw();
        for (mode, usable) in [(0o700, true), (0o755, false), (0o701, false)] {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(RunDirectory::open(directory.path(), uid).is_ok(), usable, "{mode:o}");
        }
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(RunDirectory::open(directory.path(), uid + 1).is_err(), "it is another user's");
    }

    #[test]
    fn only_ones_own_files_are_read_and_behind_no_link() {
        let place = tempfile::tempdir().unwrap();
        let [own, link] = ["own", "link"].map(|name| place.path().join(name));
        fs::write(&own, "mine").unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert_eq!(read_own(&own).unwrap(), b"mine");
        read_own(&link).unwrap_err();
        read_own(place.path()).unwrap_err();
        open_own(place.path()).unwrap();
        if rustix::process::geteuid().is_root() {
            for path in [&own, place.path()] {
                std::os::unix::fs::chown(path, Some(1), None).unwrap();
            }
            let errors = [read_own(&own).unwrap_err(), open_own(place.path()).unwrap_err()];
            for error in errors {
                assert!(error.to_string().contains("belongs to user 1"), "{error}");
            }
        }
    }
}
