//! Changes of profiles that can be taken back.

use super::target::replace;
use crate::{failure::Usage, machine, output, shell::quoted, trust};
use anyhow::{Context as _, bail};
use monitor::visible;
use serde::{Deserialize, Serialize};
use std::{
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};
use tempfile::NamedTempFile;

/// Changes that are remembered.
const MOST_CHANGES: usize = 100;

/// Which command has made a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Author {
    /// `dewar allow`, or an answer to a question.
    Allow,
    /// `dewar learn`.
    #[default]
    Learn,
    /// `dewar init`.
    Init,
}

/// A change that can be taken back.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProfileEdit {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: String,
    #[serde(default)]
    pub(super) by: Author,
    /// The working directory of whoever made it.
    #[serde(default)]
    pub(super) from: PathBuf,
    /// The file that Dewar has put there; `None` if nobody knows.
    #[serde(default)]
    pub(super) put: Option<FileState>,
}

/// A file as it was left. Whoever writes to it since, or puts another in its place and it back,
/// makes it another: nobody sets the time of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileState {
    inode: u64,
    changed: (i64, i64),
}

impl FileState {
    pub(super) fn of(file: &fs::Metadata) -> Self {
        Self { inode: file.ino(), changed: (file.ctime(), file.ctime_nsec()) }
    }
}

impl ProfileEdit {
    /// Whether it is one of the project that is worked on in `here`.
    fn is_of(&self, here: &Path) -> bool {
        let place = self.path.parent();
        self.from == here || place.is_some_and(|place| trust::directories(here).contains(&place))
    }

    /// Refuses where somebody else has changed the file since.
    fn insist_on_last(&self) -> anyhow::Result<()> {
        if super::read(&self.path).ok().as_deref() == Some(&self.after) {
            return Ok(());
        }
        bail!(Usage(format!(
            "`{}` was changed since by somebody else; nothing was taken back",
            self.path.display()
        )))
    }

    /// Makes the file what it was, and forgets the change, which `name` remembers.
    fn take_back(&self, name: &Path) -> anyhow::Result<()> {
        self.insist_on_last()?;
        let shown = self.path.display();
        let trusted = trust::keep(&self.path, Some(&self.after));
        match &self.before {
            Some(before) => {
                let put = replace(&self.path, before, Some(&self.after))
                    .with_context(|| format!("cannot write `{shown}`"))?;
                trusted.again(before)?;
                fs::remove_file(name)?;
                // It is as the change before has left it, by Dewar again.
                match remembered()?.rfind(|(_, change)| change.path == self.path) {
                    Some((name, last)) if last.after == *before => last.keep(&name, put),
                    _ => Ok(()),
                }
            }
            None => {
                fs::remove_file(&self.path).with_context(|| format!("cannot remove `{shown}`"))?;
                trusted.no_more()?;
                Ok(fs::remove_file(name)?)
            }
        }
    }

    /// Remembers in the file `name` also which file was put there.
    pub(super) fn keep(self, name: &Path, put: FileState) -> anyhow::Result<()> {
        write(name, &Self { put: Some(put), ..self })
    }
}

pub(super) fn directory() -> anyhow::Result<PathBuf> {
    Ok(runs::state_directory()?.join("dewar/changes"))
}

fn names(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    names.sort();
    names
}

/// What was changed, each with where that is remembered, the oldest first: by this user, as others
/// could have anything taken back.
fn remembered() -> anyhow::Result<impl DoubleEndedIterator<Item = (PathBuf, ProfileEdit)>> {
    let directory = directory()?;
    if let Err(error) = runs::open_own(&directory)
        && error.kind() != ErrorKind::NotFound
    {
        let shown = directory.display();
        return Err(error).with_context(|| format!("nothing in `{shown}` is believed"));
    }
    let read = |name: PathBuf| {
        let change = serde_json::from_slice(&runs::read_own(&name).ok()?).ok()?;
        Some((name, change))
    };
    Ok(names(&directory).into_iter().filter_map(read))
}

/// What was changed, the oldest first.
pub(super) fn changes() -> anyhow::Result<Vec<ProfileEdit>> {
    Ok(remembered()?.map(|(_, change)| change).collect())
}

pub(super) fn remember(change: &ProfileEdit) -> anyhow::Result<PathBuf> {
    let directory = directory()?;
    runs::make_private(&directory)
        .and_then(|()| runs::open_own(&directory))
        .with_context(|| format!("cannot use `{}`", directory.display()))?;
    let known = names(&directory);
    for old in known.iter().take((known.len() + 1).saturating_sub(MOST_CHANGES)) {
        let _ = fs::remove_file(old);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let path = directory.join(format!("{:020}-{}.json", now.as_nanos(), std::process::id()));
    write(&path, change)?;
    Ok(path)
}

/// Whole or not at all: part of it could not be taken back.
fn write(path: &Path, change: &ProfileEdit) -> anyhow::Result<()> {
    let written = || -> anyhow::Result<()> {
        let mut file = NamedTempFile::new_in(path.parent().context("it has no directory")?)?;
        file.write_all(&serde_json::to_vec(change)?)?;
        file.persist(path)?;
        Ok(())
    };
    written().with_context(|| format!("cannot write `{}`", path.display()))
}

/// Takes the last change of `file` back, whoever made it. Returns whether it still exists.
pub(crate) fn undo(file: &Path) -> anyhow::Result<bool> {
    let path = machine::real(file);
    let Some((name, change)) = remembered()?.rfind(|(_, change)| change.path == path) else {
        bail!(Usage(format!("Dewar has made no change of `{}` that it knows", path.display())));
    };
    change.take_back(&name)?;
    Ok(change.before.is_some())
}

/// Takes the last change of a profile back: of `file`, or of those of the project that is worked
/// on. Only a profile that `dewar allow` has made is removed.
pub(crate) fn undo_allowed(file: Option<&Path>) -> anyhow::Result<()> {
    let here = std::env::current_dir().context("cannot tell the working directory")?;
    let wanted = file.map(machine::real);
    let mut of_others = None;
    for (name, change) in remembered()?.rev().filter(|(_, change)| change.by != Author::Init) {
        let is_meant = match &wanted {
            Some(path) => change.path == *path,
            // What is gone needs nothing taken back.
            None => change.is_of(&here) && change.path.exists(),
        };
        let shown = change.path.display();
        if !is_meant {
            of_others.get_or_insert_with(|| quoted(&visible(&shown.to_string())));
            continue;
        }
        if change.before.is_none() && change.by != Author::Allow {
            bail!(Usage(format!(
                "`{shown}` was written by `dewar learn`, which nothing takes back: remove it yourself"
            )));
        }
        change.insist_on_last()?;
        output::print(format!("taking the last change of {shown} back\n").as_bytes())?;
        change.take_back(&name)?;
        let done =
            if change.before.is_some() { "is as it was" } else { "is gone, as it was before" };
        return Ok(output::print(format!("{shown} {done}\n").as_bytes())?);
    }
    bail!(Usage(match (wanted, of_others) {
        (Some(path), _) =>
            format!("Dewar has made no change of `{}` that it knows", path.display()),
        (None, Some(other)) => format!(
            "Dewar has made no change of a profile of this project that it knows; the last one elsewhere is taken back by `dewar allow --undo --write {other}`"
        ),
        (None, None) => "Dewar has made no change of a profile that it knows".into(),
    }))
}
