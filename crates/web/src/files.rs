//! Files beneath ROOT, opened so that nothing leads out of it, and kept open for a while.

use crate::{
    clock,
    compress::{self, WORTH},
    config::Config,
    http::accept::Coding,
    manager::Manager,
};
use avc::Hint;
use bytes::Bytes;
use flask::Sid;
use plugin_host::Image;
use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2,
        readlink, statat,
    },
    io::Errno,
};
use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant, SystemTime},
};

/// Files up to this length are sent from memory: one call to the system instead of two.
pub(crate) const SMALL: u64 = 32 << 10;

/// How often a path is looked up anew while others rename what it leads through: a worker must not
/// wait for them to stop.
const TRIES: usize = 100;

/// So long links of one directory are followed to list it: each may lead through many others.
const FOLLOWING: Duration = Duration::from_millis(100);

/// The directory that is served.
pub(crate) struct Root(OwnedFd);

/// What a path leads to.
pub(crate) enum ServedPath {
    File(Arc<Served>),
    Directory(OwnedFd),
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    device: u64,
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// An open file, and what is known of it.
pub(crate) struct Served {
    pub(crate) file: File,
    pub(crate) len: u64,
    pub(crate) modified: SystemTime,
    pub(crate) etag: String,
    pub(crate) media: Arc<str>,
    /// The header fields of every answer with it.
    pub(crate) fields: Vec<u8>,
    pub(crate) sid: Sid,
    pub(crate) hint: Hint,
    pub(crate) version: Version,
    small: OnceLock<Option<Bytes>>,
    gzip: OnceLock<Option<Bytes>>,
    image: OnceLock<Arc<Image>>,
    images: Arc<AtomicUsize>,
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(open(path, flags, Mode::empty())?))
    }

    /// Opens what `path` leads to: a regular file or a directory, and never anything outside.
    pub(crate) fn open_beneath(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        self.open_by(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    fn open_by(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { b"." } else { path };
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match openat2(&self.0, OsStr::from_bytes(path), flags, Mode::empty(), resolve) {
                // Somebody has renamed something on the way.
                Err(Errno::AGAIN | Errno::INTR) => {}
                // In a sandbox of Dewar, and on old kernels, there is no such call.
                Err(Errno::NOSYS) => return self.walk(path, flags),
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    /// The same, one name after the other, without following any link.
    fn walk(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open_at = |at: &OwnedFd, name: &[u8], flags| {
            openat(at, OsStr::from_bytes(name), flags | OFlags::NOFOLLOW, Mode::empty())
        };
        let (parents, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&path[..0], path),
        };
        let mut at = None;
        for part in parents.split(|byte| *byte == b'/').filter(|part| !part.is_empty()) {
            if part == b".." {
                return Err(Errno::XDEV);
            }
            at = Some(open_at(at.as_ref().unwrap_or(&self.0), part, on_the_way)?);
        }
        open_at(at.as_ref().unwrap_or(&self.0), name, flags)
    }
}

/// Looks files up.
pub(crate) struct Files {
    pub(crate) root: Root,
    manager: Arc<Manager>,
    types: Vec<(String, Arc<str>)>,
    images: Arc<AtomicUsize>,
}

impl Files {
    pub(crate) fn new(
        config: &Config,
        manager: &Arc<Manager>,
        images: &Arc<AtomicUsize>,
    ) -> io::Result<Self> {
        let root = Root::open(&config.path(&config.root))?;
        let types = config.types.iter().map(|(end, media)| (end.clone(), media.as_str().into()));
        let (manager, images) = (Arc::clone(manager), Arc::clone(images));
        Ok(Self { root, manager, types: types.collect(), images })
    }

    /// What `path` leads to. `before`, if it is still the same with the same label, is given back.
    pub(crate) fn find(
        &self,
        path: &[u8],
        before: Option<&Arc<Served>>,
    ) -> rustix::io::Result<ServedPath> {
        for _ in 0..TRIES {
            let fd = self.root.open_beneath(path)?;
            let status = fstat(&fd)?;
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => return Ok(ServedPath::Directory(fd)),
                FileType::RegularFile => {}
                // Devices, pipes and sockets are not content.
                _ => return Err(Errno::ACCESS),
            }
            let sid = match place(&fd) {
                // It was replaced meanwhile: what lies there now is meant.
                Err(Errno::AGAIN) => continue,
                lies => self.manager.file(&lies?),
            };
            // A directory that is renamed changes its files' labels and nothing of their version.
            let now = (Version::of(&status), sid);
            return Ok(ServedPath::File(match before {
                Some(before) if (before.version, before.sid) == now => Arc::clone(before),
                _ => Arc::new(self.served(fd, path, now)),
            }));
        }
        Err(Errno::AGAIN)
    }

    /// Whether an entry of the directory `at` is listed to requests of this label: a file that they
    /// may read, or a directory. `None` if there was no time to look.
    pub(crate) fn lists(
        &self,
        ssid: Sid,
        (directory, at): (&OwnedFd, &[u8]),
    ) -> rustix::io::Result<impl Fn(&[u8], FileType) -> Option<bool>> {
        let lies = place(directory)?;
        let until = Instant::now() + FOLLOWING;
        Ok(move |name: &[u8], kind| match kind {
            FileType::RegularFile | FileType::Directory => {
                let sid = self.manager.file(&lies.join(OsStr::from_bytes(name)));
                Some(self.manager.would_read(ssid, sid))
            }
            FileType::Symlink | FileType::Unknown if Instant::now() > until => None,
            // It may lead anywhere.
            FileType::Symlink | FileType::Unknown => {
                let sid = self.led(&within(at, name));
                Some(sid.is_ok_and(|sid| self.manager.would_read(ssid, sid)))
            }
            _ => Some(false),
        })
    }

    /// The label of the file or directory that `path` leads to, which is not opened.
    fn led(&self, path: &[u8]) -> rustix::io::Result<Sid> {
        for _ in 0..TRIES {
            let fd = self.root.open_by(path, OFlags::PATH)?;
            match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
                FileType::RegularFile | FileType::Directory => {}
                _ => return Err(Errno::ACCESS),
            }
            match place(&fd) {
                Err(Errno::AGAIN) => {}
                lies => return Ok(self.manager.file(&lies?)),
            }
        }
        Err(Errno::AGAIN)
    }

    fn served(&self, fd: OwnedFd, path: &[u8], (version, sid): (Version, Sid)) -> Served {
        let (seconds, nanos) = version.modified;
        let modified = clock::writable(seconds);
        let etag = format!("\"{:x}-{:x}-{:x}\"", version.len, seconds, nanos);
        let media = self.media(path);
        let fields = format!(
            "Content-Type: {media}\r\nLast-Modified: {}\r\nETag: {etag}\r\nAccept-Ranges: bytes\r\n",
            clock::http(modified)
        );
        Served {
            file: File::from(fd),
            len: version.len,
            modified,
            etag,
            media,
            fields: fields.into_bytes(),
            sid,
            hint: Hint::default(),
            version,
            small: OnceLock::new(),
            gzip: OnceLock::new(),
            image: OnceLock::new(),
            images: Arc::clone(&self.images),
        }
    }

    fn media(&self, path: &[u8]) -> Arc<str> {
        let path = Path::new(OsStr::from_bytes(path));
        let name = path.file_name().unwrap_or_default().as_bytes();
        let own = self.types.iter().find(|(end, _)| name.ends_with(end.as_bytes()));
        if let Some((_, media)) = own {
            return Arc::clone(media);
        }
        let media = mime_guess::from_path(path).first_or_octet_stream();
        match (media.type_(), media.get_param("charset")) {
            (mime_guess::mime::TEXT, None) => format!("{media}; charset=utf-8").into(),
            _ => media.essence_str().into(),
        }
    }
}

impl Version {
    fn of(status: &Stat) -> Self {
        Self {
            device: status.st_dev,
            inode: status.st_ino,
            len: status.st_size.max(0) as u64,
            modified: (status.st_mtime, status.st_mtime_nsec as i64),
            changed: (status.st_ctime, status.st_ctime_nsec as i64),
        }
    }
}

impl Served {
    /// The type without parameters.
    pub(crate) fn essence(&self) -> &str {
        self.media.split(';').next().unwrap_or_default()
    }

    /// The content of a small file.
    pub(crate) fn small(&self) -> Option<&Bytes> {
        let read = || (self.len <= SMALL).then(|| self.read()).flatten();
        self.small.get_or_init(read).as_ref()
    }

    /// All of it, as it is now; `None` if it is shorter than it was.
    fn read(&self) -> Option<Bytes> {
        let mut bytes = vec![0; usize::try_from(self.len).ok()?];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        Some(bytes.into())
    }

    /// The content in gzip, if that pays.
    pub(crate) fn gzip(&self) -> Option<&Bytes> {
        let worth = WORTH.contains(&self.len) && compress::shrinks(self.essence());
        let made = || {
            let bytes = worth.then(|| compress::gzip(&self.read()?).map(Bytes::from)).flatten()?;
            self.images.fetch_add(bytes.len(), Relaxed);
            Some(bytes)
        };
        self.gzip.get_or_init(made).as_ref()
    }

    /// The content as plugins see it.
    pub(crate) fn image(&self) -> io::Result<&Arc<Image>> {
        if let Some(image) = self.image.get() {
            return Ok(image);
        }
        let len = usize::try_from(self.len).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let image = Arc::new(Image::of_file(&self.file, len)?);
        self.images.fetch_add(len, Relaxed);
        Ok(self.image.get_or_init(|| image))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let image = self.image.get().map_or(0, |image| image.bytes().len());
        let gzip = self.gzip.get().and_then(Option::as_ref).map_or(0, Bytes::len);
        self.images.fetch_sub(image + gzip, Relaxed);
    }
}

/// Where `fd` really lies, after all symbolic links; [`Errno::AGAIN`] if it lies there no more. The
/// kernel makes up a name for what was replaced or removed, whose label is another.
fn place(fd: &OwnedFd) -> rustix::io::Result<PathBuf> {
    let name = readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new());
    let path = PathBuf::from(OsStr::from_bytes(name.map_err(|_| Errno::ACCESS)?.as_bytes()));
    let own = fstat(fd)?;
    let is_it = |it: Stat| (it.st_dev, it.st_ino) == (own.st_dev, own.st_ino);
    if statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_it) {
        return Ok(path);
    }
    Err(Errno::AGAIN)
}

/// The path of `name` in the directory `at`.
pub(crate) fn within(at: &[u8], name: &[u8]) -> Vec<u8> {
    if at.is_empty() { name.to_vec() } else { [at, b"/", name].concat() }
}

/// The name of a file that was compressed beforehand.
pub(crate) fn compressed(path: &[u8], coding: Coding) -> Vec<u8> {
    [path, coding.suffix().as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    #[test]
    fn a_file_has_the_label_of_where_it_lies_now() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("pub/r")).unwrap();
        fs::create_dir(root.join("drafts")).unwrap();
        fs::write(root.join("pub/r/x"), "x").unwrap();
        let drafts = format!("{}/drafts", root.display()).replace('.', "\\.");
        let rules = format!(
            "(type draft_t) (roletype object_r draft_t)\n\
             (filecon \"{drafts}(/.*)?\" any (dewar_u object_r draft_t ((s0) (s0))))"
        );
        let policy = [crate::manager::policy(&root, &[]), rules].map(|it| ("cil".to_owned(), it));
        let server = security_server::Server::from_cil(&policy).unwrap();
        let manager = Arc::new(Manager::new(Arc::new(server)).unwrap());
        let config = Config::new(root.clone());
        let files = Files::new(&config, &manager, &Arc::default()).unwrap();
        let find = |before: Option<&Arc<Served>>| match files.find(b"pub/r/x", before).unwrap() {
            ServedPath::File(file) => file,
            ServedPath::Directory(_) => unreachable!("it is a file"),
        };

        let before = find(None);
        assert!(Arc::ptr_eq(&before, &find(Some(&before))), "it is opened once");
        fs::rename(root.join("pub/r"), root.join("drafts/r")).unwrap();
        symlink("../drafts/r", root.join("pub/r")).unwrap();
        let now = find(Some(&before));
        assert_ne!(now.sid, before.sid);
        assert_eq!(now.sid, manager.file(&root.join("drafts/r/x")));
    }
}
