//! Where a daemon listens, and where it keeps its state.

use rustix::process::geteuid;
use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Directories of one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonDirs {
    /// Holds the socket and the lock.
    pub runtime: PathBuf,
    /// Holds the databases and the spools.
    pub state: PathBuf,
    /// Serves every user.
    pub system: bool,
}

impl DaemonDirs {
    /// That of this user: `$XDG_RUNTIME_DIR/dewar` and `$XDG_STATE_HOME/dewar/daemon`, or their
    /// defaults. Where the machine has no runtime directories, the socket lies in the state
    /// directory.
    ///
    /// # Errors
    ///
    /// `NotFound` if neither `XDG_STATE_HOME` nor `HOME` is set.
    pub fn user() -> io::Result<Self> {
        let absolute =
            |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = match absolute("XDG_STATE_HOME") {
            Some(state) => state,
            None => env::home_dir().ok_or(io::ErrorKind::NotFound)?.join(".local/state"),
        };
        let state = state.join("dewar/daemon");
        let default = || PathBuf::from(format!("/run/user/{}", geteuid().as_raw()));
        let runtime = absolute("XDG_RUNTIME_DIR").unwrap_or_else(default);
        let runtime = if runtime.is_dir() { runtime.join("dewar") } else { state.clone() };
        Ok(Self { runtime, state, system: false })
    }

    /// That of the daemon for all users: `/run/dewar` and `/var/lib/dewar`.
    #[must_use]
    pub fn system() -> Self {
        Self { runtime: "/run/dewar".into(), state: "/var/lib/dewar".into(), system: true }
    }

    /// That of the daemon for all users, or of this user's.
    ///
    /// # Errors
    ///
    /// As [`DaemonDirs::user`].
    pub fn of(system: bool) -> io::Result<Self> {
        if system { Ok(Self::system()) } else { Self::user() }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.runtime.join(SOCKET)
    }

    /// The journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.state.join("journal.db")
    }

    /// Makes the directories, which only their owner may use, also where they were there with other
    /// permissions; others may enter the runtime directory of a daemon for all users.
    ///
    /// # Errors
    ///
    /// Whatever the system says, and `PermissionDenied` for a directory of somebody else's, or that
    /// others can write.
    pub fn create(&self) -> io::Result<()> {
        let runtime = if self.system { 0o755 } else { 0o700 };
        make(&self.runtime, runtime)?;
        make(&self.state, 0o700)?;
        make(&self.state.join("spool"), 0o700)
    }

    /// Whether only this user, or root, can have made the socket: nobody else may change the
    /// directory.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        let Ok(directory) = fs::metadata(&self.runtime) else { return false };
        let owner = if self.system { 0 } else { geteuid().as_raw() };
        directory.uid() == owner && directory.mode() & 0o022 == 0
    }
}

/// The socket's name in the runtime directory.
pub(crate) const SOCKET: &str = "daemon";

fn make(path: &Path, mode: u32) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
    // It may have been there. Whoever can write in it can put links in the place of what is made
    // there.
    let found = fs::symlink_metadata(path)?;
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0 {
        // What is made there may be read by whoever can enter.
        return match found.mode() & 0o777 & !mode {
            0 => Ok(()),
            _ => fs::set_permissions(path, fs::Permissions::from_mode(mode)),
        };
    }
    let message =
        format!("`{}` must be a directory of your own, which others cannot write", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_that_was_there_is_closed_to_others() {
        let above = tempfile::tempdir().unwrap();
        let dirs = DaemonDirs {
            runtime: above.path().join("runtime"),
            state: above.path().join("state"),
            system: true,
        };
        fs::create_dir(&dirs.state).unwrap();
        fs::set_permissions(&dirs.state, fs::Permissions::from_mode(0o755)).unwrap();
        dirs.create().unwrap();
        assert_eq!(fs::metadata(&dirs.state).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&dirs.runtime).unwrap().mode() & 0o777, 0o755);
    }

    #[test]
    fn directories_that_others_can_write_are_refused_and_so_are_links() {
        let above = tempfile::tempdir().unwrap();
        let at = |name: &str| DaemonDirs {
            runtime: above.path().join(name),
            state: above.path().join("state"),
            system: false,
        };
        at("new").create().unwrap();
        at("new").create().unwrap();
        fs::set_permissions(above.path().join("new"), fs::Permissions::from_mode(0o770)).unwrap();
        symlink("state", above.path().join("link")).unwrap();
        for name in ["new", "link"] {
            assert_eq!(at(name).create().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
