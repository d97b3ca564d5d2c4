//! Machine code on disk, so that a module is compiled once per user and machine.
//!
//! A file is used only if it was written by this user's Dewar and not changed since: the directory
//! is the user's alone, and each file carries a hash keyed by a secret that lies beside it,
//! readable to the user alone. Its name is the hash of everything that its content depends on, the
//! [`Key`], which `origin.rs` makes.

// The fuzz target `plugin_cache` compiles this file by itself, without the compilers of this crate:
// it uses nothing of it.

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, UTIME_NOW,
        fstat, open, openat, renameat, renameat_with, statat, unlinkat, utimensat,
    },
    io::Errno,
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
};
use std::{
    env,
    fs::{DirBuilder, File},
    io::{self, Read, Write},
    os::{fd::OwnedFd, unix::fs::DirBuilderExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// First bytes of a file. Counts up when the form changes.
const MAGIC: &[u8; 16] = b"dewar plugin 02\n";
/// Name of the file that holds the secret.
const SECRET: &str = "secret";
/// How names of machine code end.
const CODE: &str = ".code";
/// How names of files end that are being written.
const PARTIAL: &str = ".partial";
/// Files being written for longer than this were left by a process that died.
const STALE: Duration = Duration::from_secs(3600);
const HASH: usize = blake3::OUT_LEN;
/// What stands between the keyed hash and the name: the length of the name, and whether there are
/// remarks.
const HEAD: usize = 3;
/// No larger file is read.
const MAX_FILE: u64 = 64 << 20;

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Somebody else could put machine code there.
    #[error("`{path}` is not used as a cache: {what}; remove it, or `chmod go-rwx` it if it is yours", path = path.display())]
    Exposed {
        /// The directory or file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system refused.
    #[error("`{path}` cannot be used as a cache: {error}", path = path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
}

/// Machine code on disk.
#[derive(Debug)]
pub struct Cache {
    directory: OwnedFd,
    path: PathBuf,
    secret: [u8; HASH],
    max_bytes: u64,
}

/// What a file lies under: the hash of everything that its code depends on.
pub(crate) struct Key(pub(crate) blake3::Hash);

/// Machine code that the cache itself has written, unchanged.
pub(crate) struct Authentic {
    file: Vec<u8>,
    start: usize,
}

impl Authentic {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.file[self.start..]
    }

    /// Whether there are remarks about the text that it was made of.
    pub(crate) fn remarked(&self) -> bool {
        self.file[MAGIC.len() + HASH + HEAD - 1] != 0
    }
}

/// What the cache has for a key.
pub(crate) enum Lookup {
    Found(Authentic),
    Missing,
    /// There is a file that this cache did not write so.
    Altered,
}

/// A file of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedCode {
    /// Name of the plugin that it was first compiled for; empty if the file was altered.
    pub plugin: String,
    /// Bytes on disk.
    pub bytes: u64,
    /// When it was last used.
    pub used: SystemTime,
    /// It is as it was written. What is not is compiled anew when it is wanted.
    pub intact: bool,
}

impl Cache {
    /// Bytes that a cache may take unless told otherwise.
    pub const DEFAULT_BYTES: u64 = 256 << 20;

    /// The user's: `$XDG_CACHE_HOME/dewar/plugins`, by default in `~/.cache`. `None` without a
    /// home.
    #[must_use]
    pub fn user_path() -> Option<PathBuf> {
        let absolute =
            |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(base.join("dewar/plugins"))
    }

    /// The cache in a directory, which is made if need be, of at most `max_bytes`.
    ///
    /// # Errors
    ///
    /// [`CacheError`] when the directory cannot be used, or is not the user's alone.
    pub fn open(path: &Path, max_bytes: u64) -> Result<Self, CacheError> {
        let failed = |error: io::Error| CacheError::Io { path: path.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = open(path, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
        let status = fstat(&directory).map_err(|e| failed(e.into()))?;
        exposed(&status)
            .map_or(Ok(()), |what| Err(CacheError::Exposed { path: path.to_owned(), what }))?;
        let mut cache = Self { directory, path: path.to_owned(), secret: [0; HASH], max_bytes };
        cache.secret = cache.secret().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => CacheError::Exposed {
                path: path.join(SECRET),
                what: "it is not a file that its owner alone may use",
            },
            _ => failed(error),
        })?;
        Ok(cache)
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The secret, made at the first use. It is never seen half-written: it gets its name when it
    /// is complete.
    fn secret(&self) -> io::Result<[u8; HASH]> {
        let mut secret = [0; HASH];
        for _ in 0..2 {
            match self.read(SECRET) {
                Ok(bytes) => {
                    return bytes.try_into().map_err(|_| io::Error::other("its secret is damaged"));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let got = getrandom(&mut secret, GetRandomFlags::empty())?;
            if got != secret.len() {
                return Err(io::Error::other("no random numbers"));
            }
            let partial = self.write_partial(&[&secret])?;
            let to = (&self.directory, SECRET);
            let renamed =
                renameat_with(&self.directory, &*partial, to.0, to.1, RenameFlags::NOREPLACE);
            if renamed.is_err() {
                let _ = unlinkat(&self.directory, &*partial, AtFlags::empty());
            }
        }
        self.read(SECRET)?.try_into().map_err(|_| io::Error::other("its secret is damaged"))
    }

    /// The code under `key`.
    pub(crate) fn find(&self, key: &Key) -> Lookup {
        let name = file_name(key);
        match self.read(&name) {
            Ok(file) => match self.authentic(key, file) {
                Some(code) => {
                    self.note_use(&name);
                    Lookup::Found(code)
                }
                None => Lookup::Altered,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Lookup::Missing,
            Err(_) => Lookup::Altered,
        }
    }

    /// A file that is used is not the next to be dropped. One that is only looked at may be.
    fn note_use(&self, name: &str) {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let _ = utimensat(&self.directory, name, &times, AtFlags::SYMLINK_NOFOLLOW);
    }

    /// The code in a file, if this cache wrote it so, for this key.
    fn authentic(&self, key: &Key, file: Vec<u8>) -> Option<Authentic> {
        let (mac, rest) = file.strip_prefix(MAGIC)?.split_first_chunk::<HASH>()?;
        // Hashes compare in constant time.
        if self.mac(key, rest) != blake3::Hash::from_bytes(*mac) {
            return None;
        }
        let ([low, high, _], _) = rest.split_first_chunk::<HEAD>()?;
        let start = MAGIC.len() + HASH + HEAD + usize::from(u16::from_le_bytes([*low, *high]));
        (start <= file.len()).then_some(Authentic { file, start })
    }

    fn mac(&self, key: &Key, rest: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        hasher.update(key.0.as_bytes()).update(rest).finalize()
    }

    /// Keeps what `Module::serialize` returned, first compiled for `plugin`; then drops what was
    /// not used for longest if the cache has grown too large. `remarked` tells whether there are
    /// remarks about its text.
    pub(crate) fn keep(
        &self,
        key: &Key,
        plugin: &str,
        remarked: bool,
        code: &[u8],
    ) -> io::Result<()> {
        let plugin = &plugin.as_bytes()[..plugin.len().min(usize::from(u16::MAX))];
        let [low, high] = (plugin.len() as u16).to_le_bytes();
        let rest = [&[low, high, u8::from(remarked)][..], plugin, code].concat();
        let mac = self.mac(key, &rest);
        let partial = self.write_partial(&[MAGIC, mac.as_bytes(), &rest])?;
        renameat(&self.directory, &*partial, &self.directory, file_name(key))?;
        self.shrink()
    }

    fn write_partial(&self, parts: &[&[u8]]) -> io::Result<String> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = format!("{:016x}{PARTIAL}", u64::from_le_bytes(random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.directory, &*name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(file);
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        if let Err(error) = written {
            let _ = unlinkat(&self.directory, &*name, AtFlags::empty());
            return Err(error);
        }
        Ok(name)
    }

    /// The whole of a file that is the user's alone.
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&self.directory, name, flags, Mode::empty())?;
        let status = fstat(&file)?;
        let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        if !is_file || exposed(&status).is_some() || status.st_size as u64 > MAX_FILE {
            return Err(Errno::PERM.into());
        }
        let mut bytes = Vec::with_capacity(status.st_size as usize);
        File::from(file).take(MAX_FILE).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// What is in the cache, last used first.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub fn list(&self) -> io::Result<Vec<CachedCode>> {
        let mut files = self.files()?;
        files.sort_by_key(|file| std::cmp::Reverse(file.used));
        let listed = files.into_iter().filter(|file| file.name.ends_with(CODE)).map(|file| {
            let plugin = self.plugin_of(&file.name);
            let intact = plugin.is_some();
            let (bytes, used) = (file.bytes, file.used);
            CachedCode { plugin: plugin.unwrap_or_default(), bytes, used, intact }
        });
        Ok(listed.collect())
    }

    fn plugin_of(&self, name: &str) -> Option<String> {
        let key = blake3::Hash::from_hex(name.strip_suffix(CODE)?).ok()?;
        let code = self.authentic(&Key(key), self.read(name).ok()?)?;
        let plugin = &code.file[MAGIC.len() + HASH + HEAD..code.start];
        Some(String::from_utf8_lossy(plugin).into_owned())
    }

    fn files(&self) -> io::Result<Vec<Listed>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let status = statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
            // Another process may have removed it meanwhile.
            let Ok(status) = status else { continue };
            if name.ends_with(CODE) || name.ends_with(PARTIAL) {
                let seconds = status.st_mtime.try_into().unwrap_or(0);
                let since = Duration::new(seconds, status.st_mtime_nsec as u32);
                let used = SystemTime::UNIX_EPOCH + since;
                files.push(Listed { name: name.to_owned(), bytes: status.st_size as u64, used });
            }
        }
        Ok(files)
    }

    fn shrink(&self) -> io::Result<()> {
        let mut files = self.files()?;
        files.sort_by_key(|file| file.used);
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files {
            let partial = file.name.ends_with(PARTIAL);
            let stale = partial && file.used.elapsed().is_ok_and(|age| age > STALE);
            if stale || (!partial && bytes > self.max_bytes) {
                // Another process may have been faster.
                let _ = unlinkat(&self.directory, &*file.name, AtFlags::empty());
                bytes -= file.bytes;
            }
        }
        Ok(())
    }
}

struct Listed {
    name: String,
    bytes: u64,
    used: SystemTime,
}

fn file_name(key: &Key) -> String {
    format!("{}{CODE}", key.0.to_hex())
}

/// What lets somebody else in, if anything does.
fn exposed(status: &Stat) -> Option<&'static str> {
    if status.st_uid != geteuid().as_raw() {
        return Some("it belongs to another user");
    }
    (status.st_mode & 0o077 != 0).then_some("others than its owner may use it")
}
