//! The file that a profile is written to: whole or not at all.

use super::history::{Author, FileState, ProfileEdit, changes, remember};
use crate::{failure::Usage, machine, trust};
use anyhow::{Context as _, bail};
use cli::output_file;
use profile::{Documents, Source, Variables};
use rustix::fs::{Mode, OFlags};
use std::{
    fs::{self, Permissions},
    io::{ErrorKind, Write as _},
    os::unix::fs::{FileExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};
use tempfile::NamedTempFile;

/// A file for a profile.
pub(crate) struct ProfileFile {
    /// Without links.
    pub(crate) path: PathBuf,
    /// What it held when it was looked at; `None` if it was not there.
    pub(crate) before: Option<String>,
}

impl ProfileFile {
    /// The file `path`.
    pub(crate) fn find(path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() {
            bail!(Usage(format!(
                "`{}` is a directory; name a file in it, such as `{}`",
                path.display(),
                path.join(trust::NAME).display()
            )));
        }
        if !path.to_string_lossy().ends_with(".toml") {
            bail!(Usage(format!(
                "`{0}` does not end in `.toml`, so no run would take it for a profile: write `{0}.toml`",
                path.display()
            )));
        }
        // A run could have led it to another profile, of which nobody thinks.
        if path.is_symlink() {
            bail!(Usage(format!(
                "`{}` is a link; name the file that is meant: `{}`",
                path.display(),
                machine::real(path).display()
            )));
        }
        // Nor must a directory on the way lead elsewhere.
        if let Err(error) = output_file::directory(path)
            && error.kind() != ErrorKind::NotFound
        {
            bail!(Usage(format!("cannot write `{}`: {error}", path.display())));
        }
        Self::at(path)
    }

    /// A file of settings, whatever it is called.
    pub(crate) fn at(path: &Path) -> anyhow::Result<Self> {
        let path = machine::real(path);
        let before = match super::read(&path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => bail!(Usage(format!("cannot read `{}`: {error}", path.display()))),
        };
        Ok(Self { path, before })
    }

    /// Refuses a file that the run could have written itself: then it would say what the run wants.
    /// `judge` is by all that it was ever granted; without one, that may be anything.
    pub(crate) fn insist_on_distance(
        &self,
        judge: Option<&learn::Judge>,
        variables: &Variables,
    ) -> anyhow::Result<()> {
        let is_fixed = variables.fixed.contains(&self.path);
        let writable = judge.is_none_or(|judge| judge.is_writable(&self.path));
        if self.before.is_some() && writable && !is_fixed && !self.is_own_work()? {
            bail!(Usage(format!(
                "the run could have written `{}` itself, so what it says is not your word: look at it, move it out of reach of \
                 the run, or remove it and write a new one",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Whether it is the very file that Dewar has put there last, unchanged, by a record that no
    /// run can change: the same text again may be what the user has taken out since.
    fn is_own_work(&self) -> anyhow::Result<bool> {
        let found = fs::symlink_metadata(&self.path).ok().map(|file| FileState::of(&file));
        let last = changes()?.into_iter().rfind(|change| change.path == self.path);
        Ok(last.is_some_and(|change| {
            found.is_some() && change.put == found && Some(change.after) == self.before
        }))
    }

    /// Whether all that it holds, and extends, is Dewar's own: made here where nothing was, and
    /// changed by nobody else since.
    pub(crate) fn is_made_here(&self) -> anyhow::Result<bool> {
        let mut own: Option<String> = None;
        for change in changes()?.into_iter().filter(|change| change.path == self.path) {
            let follows = change.before.is_none() || (own.is_some() && change.before == own);
            own = follows.then_some(change.after);
        }
        let Ok(read) = Documents::read(&Source::File(self.path.clone())) else { return Ok(false) };
        let own = own.filter(|own| self.before.as_ref() == Some(own));
        let is_own = |own: String| read.file_texts().all(|it| it == (&*self.path, &*own));
        Ok(own.is_some_and(is_own) && self.is_own_work()?)
    }

    /// Replaces what it holds, and remembers what that was.
    pub(crate) fn write(&self, text: &str, by: Author) -> anyhow::Result<()> {
        let shown = self.path.display();
        let trusted = trust::keep(&self.path, self.before.as_deref());
        // Before the change: what cannot be taken back is not done.
        let change = ProfileEdit {
            path: self.path.clone(),
            before: self.before.clone(),
            after: text.to_owned(),
            by,
            from: std::env::current_dir().unwrap_or_default(),
            put: None,
        };
        let undo = remember(&change)?;
        let put = replace(&self.path, text, self.before.as_deref())
            .inspect_err(|_| drop(fs::remove_file(&undo)))
            .with_context(|| format!("cannot write `{shown}`"))?;
        change.keep(&undo, put)?;
        trusted.again(text)
    }
}

/// Puts `text` into the place of what `path` holds, which is still `before`. A run that may write
/// in the directory, and goes on, comes to no file in which `text` is, but to `path` itself: what
/// it held open by another name, it could write after that has become the profile's.
pub(super) fn replace(path: &Path, text: &str, before: Option<&str>) -> anyhow::Result<FileState> {
    let (directory, _held) = output_file::directory(path)?;
    let place = directory.join(path.file_name().context("it has no name")?);
    let mode = fs::metadata(path).map_or(0o644, |file| file.permissions().mode());
    let filled = |directory: &Path| -> anyhow::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        let mut file = builder.prefix(".dewar-").suffix(".toml").tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_permissions(Permissions::from_mode(mode & 0o777))?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    let is_as_before = || -> anyhow::Result<()> {
        match before {
            Some(before) if super::read(path)? != before => {
                bail!("it was changed meanwhile; nothing was written")
            }
            _ => Ok(()),
        }
    };
    // No run reaches what Dewar keeps.
    let file = filled(&super::history::directory()?)?;
    is_as_before()?;
    let put = match before {
        Some(_) => file.persist(&place),
        None => file.persist_noclobber(&place),
    };
    let put = match (put, before) {
        (Ok(put), _) => put,
        (Err(error), Some(before)) if error.error.kind() == ErrorKind::CrossesDevices => {
            is_as_before()?;
            written_over(&place, text, before)?
        }
        // Where there was none, a run that may write there can also change what is there now.
        (Err(error), None) if error.error.kind() == ErrorKind::CrossesDevices => {
            filled(&directory)?.persist_noclobber(&place)?
        }
        (Err(error), _) => return Err(error.error.into()),
    };
    Ok(FileState::of(&put.metadata()?))
}

/// The file at `place` with `text` instead of `before`, written at once; as before if that fails.
fn written_over(place: &Path, text: &str, before: &str) -> anyhow::Result<fs::File> {
    let file = fs::File::from(rustix::fs::open(
        place,
        OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?);
    let fill = |text: &str| {
        file.write_all_at(text.as_bytes(), 0)?;
        file.set_len(text.len() as u64)?;
        file.sync_all()
    };
    if let Err(error) = fill(text) {
        // What held it before has room for it again.
        fill(before).with_context(|| format!("it is damaged, as there was: {error}"))?;
        return Err(error.into());
    }
    Ok(file)
}
