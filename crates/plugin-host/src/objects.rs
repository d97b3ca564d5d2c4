//! What plugins can reach through the host: files and addresses, with their labels.

use crate::interface::{EACCES, EINVAL, ENOENT};
use flask::{FileKind, Protocol, SecurityServer, Seqno, Sid};
use labelling::{Networks, PathRules};
use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, fstatfs, open, openat2,
        readlink, statat,
    },
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::File,
    net::SocketAddr,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// File systems whose files are the host itself: `/proc`, `/sys` and their like.
const KERNEL_FILE_SYSTEMS: [i64; 4] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163];

/// The labels of what lies outside of plugins, by the rules of the policy that is in force.
pub(crate) struct Labels {
    server: Arc<dyn SecurityServer>,
    rules: Mutex<Option<(Seqno, Arc<Rules>)>>,
}

pub(crate) struct Rules {
    paths: PathRules,
    networks: Networks,
}

/// A file that was found, and is not open yet.
pub(crate) struct NamedFile {
    fd: OwnedFd,
    pub(crate) path: PathBuf,
}

impl Labels {
    pub(crate) fn new(server: Arc<dyn SecurityServer>) -> Self {
        Self { server, rules: Mutex::default() }
    }

    /// The label of the file at a path without symbolic links.
    pub(crate) fn of_path(&self, path: &Path) -> Option<Sid> {
        Some(self.rules()?.paths.sid(path, FileKind::File))
    }

    /// The label of an address with a port, for TCP.
    pub(crate) fn of_address(&self, address: SocketAddr) -> Option<Sid> {
        let endpoint = (Protocol::Tcp, address.ip(), address.port());
        self.rules()?.networks.endpoint(&*self.server, endpoint).ok()
    }

    /// `None` when there is no answer or a rule cannot be read: nothing is labelled, so nothing is
    /// granted.
    fn rules(&self) -> Option<Arc<Rules>> {
        let current = self.server.seqno().ok()?;
        let mut kept = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seqno, rules)) = &*kept
            && *seqno == current
        {
            return Some(Arc::clone(rules));
        }
        let all = self.server.label_rules().ok()?;
        let paths = PathRules::new(&all.files).ok()?;
        let rules = Arc::new(Rules { paths, networks: Networks::new(&all) });
        *kept = Some((current, Arc::clone(&rules)));
        Some(rules)
    }
}

impl NamedFile {
    /// The regular file that `path` leads to. Symbolic links are followed, and the label is that of
    /// where they lead; links of `/proc` that lead anywhere are not.
    pub(crate) fn look(path: &[u8]) -> Result<Self, i32> {
        let path = OsStr::from_bytes(path);
        if !path.as_bytes().starts_with(b"/") {
            return Err(EINVAL);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let fd = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
        let fd = fd.map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR => ENOENT,
            Errno::INVAL | Errno::NAMETOOLONG => EINVAL,
            _ => EACCES,
        })?;
        let status = fstat(&fd).map_err(|_| EACCES)?;
        let system = fstatfs(&fd).map_err(|_| EACCES)?.f_type;
        let regular = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        // A file without a name has no label by its name.
        if !regular || status.st_nlink == 0 || KERNEL_FILE_SYSTEMS.contains(&system) {
            return Err(EACCES);
        }
        let name = readlink(own_link(&fd), Vec::new()).map_err(|_| EACCES)?;
        let path = PathBuf::from(OsStr::from_bytes(name.as_bytes()));
        // The name may have gone meanwhile, and the kernel then makes one up.
        let named = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| EACCES)?;
        if (named.st_dev, named.st_ino) != (status.st_dev, status.st_ino) {
            return Err(EACCES);
        }
        Ok(Self { fd, path })
    }

    /// Opens for reading the very file that was found.
    pub(crate) fn open(&self) -> Result<File, i32> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        open(own_link(&self.fd), flags, Mode::empty()).map(File::from).map_err(|_| EACCES)
    }
}

fn own_link(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
