//! Finds the profile of a project, and reads it once.

use super::{Hash, Store};
use crate::{failure::Usage, shell};
use anyhow::bail;
use flask::visible_name;
use profile::{Documents, Source};
use std::path::{Path, PathBuf};

/// What it is called.
pub(crate) const NAME: &str = "dewar.toml";

/// What makes a directory the top of a repository.
const TOPS: [&str; 5] = [".git", ".hg", ".jj", ".svn", ".fossil"];

/// The profile that a project brings along, as it was read.
pub(crate) struct Project {
    /// Without links.
    pub(crate) path: PathBuf,
    /// Of what was read, not of what the file holds by now.
    pub(crate) hash: Hash,
    pub(crate) documents: Documents,
}

impl Project {
    /// Its path, for people.
    pub(crate) fn shown(&self) -> String {
        visible_name(&self.path.display().to_string())
    }

    /// What must not come to be while a run on `workspace` depends on it: with one of these the
    /// next run would look no further up, and find the default.
    pub(crate) fn shades(&self, workspace: &Path) -> Vec<PathBuf> {
        let own = self.path.parent();
        let between = workspace.ancestors().take_while(|directory| Some(*directory) != own);
        between.flat_map(|directory| TOPS.map(|name| directory.join(name))).collect()
    }
}

/// The profile for `workspace`, a path without links: its own, or the nearest above it up to the
/// top of its repository. A workspace in no repository has its own or none.
///
/// Where one was trusted that is gone now, or that lies above the top of the repository, there is
/// none to fall back on: what is more might be granted without it. Without a store, nobody can
/// tell.
pub(crate) fn find(workspace: &Path, store: Option<&Store>) -> anyhow::Result<Option<Project>> {
    for directory in directories(workspace) {
        let path = directory.join(NAME);
        let Ok(metadata) = path.symlink_metadata() else {
            if store.map_or(Ok(false), |store| store.knows(&path))? {
                bail!(Usage(format!(
                    "{} was trusted, and is gone: `dewar trust --revoke {}` if that is right; `-p PROFILE` runs under another",
                    visible_name(&path.display().to_string()),
                    shell::quoted(&visible_name(&directory.display().to_string()))
                )));
            }
            continue;
        };
        if !metadata.is_file() {
            bail!(Usage(format!(
                "{} is no file by itself, so it is not taken for the project's profile: replace it by a file, or name a profile by -p",
                visible_name(&path.display().to_string())
            )));
        }
        return read(path).map(Some);
    }
    if let Some(store) = store {
        refuse_shaded(workspace, store)?;
    }
    Ok(None)
}

/// Refuses to go on without a profile that the user has trusted for a directory above: a run of
/// another profile can make what ends the search, or remove the top of the repository.
fn refuse_shaded(workspace: &Path, store: &Store) -> anyhow::Result<()> {
    let searched = directories(workspace);
    let shown = |path: &Path| visible_name(&path.display().to_string());
    for directory in workspace.ancestors().skip(searched.len()) {
        let path = directory.join(NAME);
        if !store.knows(&path)? {
            continue;
        }
        let last = searched.last().copied().unwrap_or(workspace);
        let why = match top_of(last) {
            Some(name) => format!("{} is the top of a repository", shown(&last.join(name))),
            None => format!("{} is in no repository", shown(workspace)),
        };
        bail!(Usage(format!(
            "{} is trusted, and would not be used here: {why}; nothing was started.\n  \
             cd {}    runs under it\n  \
             dewar init                      gives this directory a profile of its own\n  \
             dewar run -p workspace -- …     runs without it",
            shown(&path),
            shell::quoted(&shown(directory)),
        )));
    }
    Ok(())
}

/// Reads the profile at `path`.
fn read(path: PathBuf) -> anyhow::Result<Project> {
    let documents = Documents::read(&Source::File(path.clone()))?;
    let hash = Hash::of(&documents);
    Ok(Project { path, hash, documents })
}

/// What `path` holds now; `None` if there is no profile.
pub(super) fn documents_of(path: &Path) -> Option<Documents> {
    let is_file = path.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    Documents::read(&Source::File(path.to_owned())).ok().filter(|_| is_file)
}

/// The hash of that.
pub(super) fn hash_of(path: &Path) -> Option<Hash> {
    documents_of(path).map(|documents| Hash::of(&documents))
}

/// What makes `directory` the top of a repository, if anything does.
fn top_of(directory: &Path) -> Option<&'static str> {
    TOPS.into_iter().find(|name| directory.join(name).symlink_metadata().is_ok())
}

/// The workspace, and what is above it up to the top of its repository.
pub(crate) fn directories(workspace: &Path) -> Vec<&Path> {
    let all: Vec<&Path> = workspace.ancestors().collect();
    match all.iter().position(|directory| top_of(directory).is_some()) {
        Some(top) => all[..=top].to_vec(),
        None => all[..1].to_vec(),
    }
}

/// That a profile which Dewar has written as `text` is not used by a plain `dewar run`, where it is
/// one that would be.
pub(crate) fn untrusted(path: &Path, text: &str) -> Option<String> {
    let is_projects = path.file_name().is_some_and(|name| name == NAME);
    (is_projects && !super::is_trusted(path, Some(text))).then(|| {
        "`dewar trust` lets a plain `dewar run` here use it; until then that is refused".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_looked_for_up_to_the_top_of_the_repository_and_not_above() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        std::fs::create_dir_all(path("a/b/c")).unwrap();
        let found = |workspace: &str| directories(&path(workspace)).len();
        assert_eq!(found("a/b/c"), 1);
        std::fs::create_dir(path("a/.git")).unwrap();
        assert_eq!((found("a/b/c"), found("a")), (3, 1));
        // A worktree's is a file.
        std::fs::write(path("a/b/.git"), "gitdir: x").unwrap();
        assert_eq!(found("a/b/c"), 2);
    }
}
