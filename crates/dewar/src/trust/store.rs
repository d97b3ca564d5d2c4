//! What is trusted: a file for each path, in a directory of the user alone that no run can reach.

use anyhow::{Context as _, bail};
use profile::Documents;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The hash of a profile: of all files that it is made of, with their places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hash(String);

impl Hash {
    /// Of what was read.
    pub(crate) fn of(documents: &Documents) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("dewar 2026 profile of a project");
        for (path, text) in documents.file_texts() {
            for part in [path.as_os_str().as_encoded_bytes(), text.as_bytes()] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        Self(hasher.finalize().to_hex().to_string())
    }
}

/// Something that is trusted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TrustedFile {
    pub(crate) path: PathBuf,
    pub(crate) hash: Hash,
    pub(crate) when: SystemTime,
}

/// Where that is kept.
pub(crate) struct Store {
    directory: PathBuf,
}

impl Store {
    /// That of the user.
    pub(crate) fn open() -> anyhow::Result<Self> {
        Ok(Self { directory: runs::state_directory()?.join("dewar/trust") })
    }

    /// Since when `path` is trusted with that hash.
    pub(crate) fn trusts(&self, path: &Path, hash: &Hash) -> anyhow::Result<Option<SystemTime>> {
        let entry = self.entry(path)?;
        Ok(entry.filter(|entry| entry.hash == *hash).map(|entry| entry.when))
    }

    /// Whether `path` is trusted with some hash.
    pub(crate) fn knows(&self, path: &Path) -> anyhow::Result<bool> {
        Ok(self.entry(path)?.is_some())
    }

    fn entry(&self, path: &Path) -> anyhow::Result<Option<TrustedFile>> {
        let file = self.file(path);
        let bytes = match runs::read_own(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                // What has run out has another remedy.
                let is_out =
                    matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE));
                let own = "; set XDG_STATE_HOME to a directory of your own";
                let remedy = if is_out { "" } else { own };
                return Err(error)
                    .with_context(|| format!("cannot read `{}`{remedy}", file.display()));
            }
        };
        self.insist_on_owner()?;
        let entry: TrustedFile = serde_json::from_slice(&bytes).with_context(|| {
            format!("`{}` is broken; remove it, and trust anew", file.display())
        })?;
        Ok(Some(entry).filter(|entry| entry.path == path))
    }

    /// All that is trusted, by path.
    pub(crate) fn entries(&self) -> anyhow::Result<Vec<TrustedFile>> {
        let files = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| runs::read_own(&file.path()).ok());
        let mut entries: Vec<TrustedFile> =
            texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect();
        if !entries.is_empty() {
            self.insist_on_owner()?;
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Trusts `path` with that hash, and with no other.
    pub(crate) fn add(&self, path: &Path, hash: &Hash) -> anyhow::Result<()> {
        let shown = self.directory.display();
        runs::make_private(&self.directory).with_context(|| format!("cannot create `{shown}`"))?;
        self.insist_on_owner()?;
        let (path, hash) = (path.to_owned(), hash.clone());
        let file = self.file(&path);
        let entry = TrustedFile { path, hash, when: SystemTime::now() };
        // Readable and writable by the owner alone.
        let keep = || -> anyhow::Result<()> {
            let mut new = tempfile::NamedTempFile::new_in(&self.directory)?;
            new.write_all(&serde_json::to_vec(&entry)?)?;
            new.as_file().sync_all()?;
            new.persist(&file)?;
            Ok(())
        };
        keep().with_context(|| format!("cannot keep in `{shown}` what is trusted"))
    }

    /// Trusts `path` no more; whether it was trusted.
    pub(crate) fn remove(&self, path: &Path) -> anyhow::Result<bool> {
        let file = self.file(path);
        match fs::remove_file(&file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| format!("cannot remove `{}`", file.display())),
        }
    }

    fn file(&self, path: &Path) -> PathBuf {
        let name = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        self.directory.join(format!("{name}.json"))
    }

    /// Refuses a directory into which others could write what is trusted.
    fn insist_on_owner(&self) -> anyhow::Result<()> {
        let shown = self.directory.display();
        let metadata = fs::symlink_metadata(&self.directory)
            .with_context(|| format!("cannot look at `{shown}`"))?;
        let own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !metadata.is_dir() || !own || metadata.mode() & 0o022 != 0 {
            bail!(
                "`{shown}` is not a directory that you alone can write, so nothing in it is believed: `chmod 700` it, or remove it"
            );
        }
        Ok(())
    }
}
