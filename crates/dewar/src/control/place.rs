//! Where the sockets of runs lie: a directory of the user's own, one socket for each run, named by its id.

use anyhow::{Context as _, bail};
use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
};
use std::{
    fs, io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::fs::{DirBuilderExt as _, MetadataExt as _},
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

/// An open directory of runs.
pub(crate) struct Place(OwnedFd);

impl Place {
    /// The directory for a new run, made if need be.
    pub(crate) fn own() -> anyhow::Result<Self> {
        let runtime = runtime_directory();
        let path =
            if is_own(&runtime) { runtime.join(RUNTIME) } else { state_directory()?.join(STATE) };
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.with_context(|| format!("cannot create `{}`", path.display()))?;
        Self::open(&path).with_context(|| format!("cannot use `{}`", path.display()))
    }

    /// Every directory in which this user's runs can be.
    pub(crate) fn all() -> anyhow::Result<Vec<Self>> {
        let paths = [runtime_directory().join(RUNTIME), state_directory()?.join(STATE)];
        Ok(paths.iter().filter_map(|path| Self::open(path).ok()).collect())
    }

    /// Only a directory that nobody else can reach into: who may talk to a run is first of all who gets here.
    fn open(path: &Path) -> anyhow::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        let user = rustix::process::geteuid();
        if (stat.st_uid != user.as_raw() && !user.is_root()) || stat.st_mode & 0o077 != 0 {
            bail!("it must belong to you and have mode 0700");
        }
        Ok(Self(fd))
    }

    /// The path of a socket in it, short enough for an address whatever the directory is called.
    pub(crate) fn socket(&self, id: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{id}", self.0.as_raw_fd()).into()
    }

    /// The ids of the sockets in it.
    pub(crate) fn ids(&self) -> anyhow::Result<Vec<String>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::Dir::new(rustix::fs::openat(&self.0, ".", flags, Mode::empty())?)?;
        let mut ids = Vec::new();
        for entry in directory {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !name.starts_with('.') {
                ids.push(name);
            }
        }
        Ok(ids)
    }

    /// Removes the socket of a run.
    pub(crate) fn remove(&self, id: &str) {
        // Somebody else may have removed it; then all is well, too.
        let _: Result<(), Errno> = rustix::fs::unlinkat(&self.0, id, AtFlags::empty());
    }

    /// Removes a socket that refuses connections, unless it is so new that its run may only be starting.
    pub(crate) fn remove_stale(&self, id: &str) {
        let made = fs::symlink_metadata(self.socket(id)).and_then(|metadata| metadata.modified());
        let age = made.map(|made| SystemTime::now().duration_since(made).unwrap_or_default());
        if age.is_ok_and(|age| age > STALE) {
            self.remove(id);
        }
    }
}

/// The runtime directory: that of the session, or the one that the user has by custom.
fn runtime_directory() -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = || format!("/run/user/{}", rustix::process::geteuid().as_raw()).into();
    named.filter(|path| path.is_absolute()).unwrap_or_else(usual)
}

fn is_own(directory: &Path) -> bool {
    let own = |metadata: fs::Metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw()
    };
    fs::metadata(directory).is_ok_and(own)
}

fn state_directory() -> anyhow::Result<PathBuf> {
    crate::run::state_directory()
}

/// A new id: eight letters and digits, of which no two are easily taken for each other.
pub(crate) fn new_id() -> io::Result<String> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
