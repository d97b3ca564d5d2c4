//! The view: which part of the file system exists for the sandbox (and for the monitor, which
//! shares it, so that a path means the same to both).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use realpath::RealPaths;
use rustix::fs::Mode;

use super::{
    mounts::{Mounts, ViewError},
    step::{Step, ViewEntry},
};

/// What is covered, hidden and put back in the file system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Gives the sandbox empty directories of its own at `/tmp`, `/var/tmp` and `/dev/shm`.
    pub private_tmp: bool,
    /// Bytes that each of them takes at most; by default half of the machine's memory. What the
    /// monitor makes there counts for no cgroup of the sandbox.
    pub private_bytes: Option<u64>,
    /// Directories whose content does not exist in the sandbox, save for `keep`.
    pub absent: Vec<PathBuf>,
    /// Paths below an absent directory or below `/tmp` that stay as they are. Missing ones are
    /// left out. A path that is also absent or private stays: what is granted wins.
    pub keep: Vec<PathBuf>,
    /// Directories below an absent one that stay, empty: who makes them is told that they are
    /// there. Missing ones are left out.
    pub ways: Vec<PathBuf>,
    /// Existing files and directories that nobody can open: covered by an empty one without
    /// any permission. Missing ones are left out.
    pub denied: Vec<PathBuf>,
    /// Existing files and directories that nobody can open, and in which nothing exists: covered by
    /// an empty one that says so of every name below it. Missing ones are left out.
    pub hollow: Vec<PathBuf>,
    /// Paths below which nothing can be changed. Missing ones are left out.
    pub read_only: Vec<PathBuf>,
    /// What `/etc/hosts` holds, if it exists.
    pub hosts: Option<String>,
}

/// The mode of a directory that can be walked into and not listed.
const SEARCHED: u32 = 0o111;

impl View {
    /// Whether nothing is to be done, so that no mount namespace is needed.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// Builds the view in the mount namespace of the calling process.
    pub(super) fn build(&self) -> Result<(), ViewError> {
        let mut steps = arrange(self.places());
        let ways = directories(&self.ways, &RealPaths::new()).collect();
        let mut mounts = Mounts::open(&mut steps, self.private_bytes, ways)?;
        if !self.denied.is_empty() || !self.hollow.is_empty() || self.hosts.is_some() {
            mounts.prepare_voids(self.hosts.as_deref())?;
        }
        for step in &steps {
            mounts.put(step, &steps)?;
        }
        // The steps have changed what exists.
        let paths = RealPaths::new();
        for path in existing(&self.denied, &paths) {
            mounts.deny(&path, Mode::empty())?;
        }
        for path in existing(&self.hollow, &paths) {
            mounts.deny(&path, Mode::from_raw_mode(SEARCHED))?;
        }
        for path in existing(&self.read_only, &paths) {
            mounts.make_read_only(&path)?;
        }
        if self.hosts.is_some() {
            for path in existing(&[PathBuf::from("/etc/hosts")], &paths) {
                mounts.replace_hosts(&path)?;
            }
        }
        mounts.finish()
    }

    /// What is asked at which path, with symbolic links on the way resolved.
    fn places(&self) -> BTreeMap<PathBuf, ViewEntry> {
        let private = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
        let private = if self.private_tmp { &private[..] } else { &[] };
        let (mut places, paths) = (BTreeMap::new(), RealPaths::new());
        places.extend(directories(private, &paths).map(|path| (path, ViewEntry::Private)));
        places.extend(directories(&self.absent, &paths).map(|path| (path, ViewEntry::Absent)));
        places.extend(self.keep.iter().filter_map(|path| kept(path, &paths)));
        places
    }
}

/// Those of `paths` that exist, with symbolic links resolved.
fn existing(all: &[PathBuf], paths: &RealPaths) -> impl Iterator<Item = PathBuf> {
    all.iter().filter_map(|path| paths.resolve(path).ok())
}

fn directories(all: &[PathBuf], paths: &RealPaths) -> impl Iterator<Item = PathBuf> {
    existing(all, paths).filter(|path| path.is_dir())
}

/// A kept path with the links on the way to it resolved, and what it is.
fn kept(path: &Path, paths: &RealPaths) -> Option<(PathBuf, ViewEntry)> {
    let real = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => paths.directory(parent).ok()?.join(name),
        _ => paths.resolve(path).ok()?,
    };
    let metadata = real.symlink_metadata().ok()?;
    let place = if metadata.is_symlink() {
        ViewEntry::Link(real.read_link().ok()?.into_os_string())
    } else {
        ViewEntry::Keep
    };
    Some((real, place))
}

/// The steps that make `places` so, parents first, without those that change nothing.
fn arrange(places: BTreeMap<PathBuf, ViewEntry>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // A PathBuf orders by components, so that a directory comes before what is below it.
    for (path, place) in places {
        let above = steps.iter().rev().find(|step| path.starts_with(&step.path));
        let covered = above.filter(|step| step.place.covers());
        let needed = match place {
            ViewEntry::Keep | ViewEntry::Link(_) => covered.is_some(),
            ViewEntry::Absent => covered.is_none(),
            ViewEntry::Private => covered.is_none_or(|step| step.place == ViewEntry::Absent),
        };
        if needed {
            let host = covered.map(|step| step.path.clone());
            steps.push(Step { path, place, host });
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arranged(places: &[(&str, ViewEntry)]) -> Vec<(String, ViewEntry, Option<String>)> {
        let text = |path: &Path| path.display().to_string();
        let places = places.iter().map(|(path, place)| (PathBuf::from(path), place.clone()));
        let steps = arrange(places.collect());
        steps.into_iter().map(|s| (text(&s.path), s.place, s.host.map(|h| text(&h)))).collect()
    }

    fn step(
        path: &str,
        place: ViewEntry,
        host: Option<&str>,
    ) -> (String, ViewEntry, Option<String>) {
        (path.into(), place, host.map(Into::into))
    }

    #[test]
    fn what_is_kept_is_put_back_into_the_nearest_cover() {
        let got = arranged(&[
            ("/home/u", ViewEntry::Absent),
            ("/home/u/app", ViewEntry::Keep),
            ("/home/u/app/secret", ViewEntry::Absent),
            ("/home/u/app/secret/not", ViewEntry::Keep),
        ]);
        let want = [
            step("/home/u", ViewEntry::Absent, None),
            step("/home/u/app", ViewEntry::Keep, Some("/home/u")),
            step("/home/u/app/secret", ViewEntry::Absent, None),
            step("/home/u/app/secret/not", ViewEntry::Keep, Some("/home/u/app/secret")),
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn what_changes_nothing_is_not_done() {
        let got = arranged(&[
            ("/home", ViewEntry::Absent),
            ("/home/u", ViewEntry::Absent),
            ("/home/u/app", ViewEntry::Keep),
            ("/home/u/app/src", ViewEntry::Keep),
            ("/usr", ViewEntry::Keep),
        ]);
        let want = [
            step("/home", ViewEntry::Absent, None),
            step("/home/u/app", ViewEntry::Keep, Some("/home")),
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn a_name_that_only_begins_alike_is_not_below() {
        let got = arranged(&[("/home/u", ViewEntry::Absent), ("/home/user2", ViewEntry::Keep)]);
        assert_eq!(got, [step("/home/u", ViewEntry::Absent, None)]);
    }
}
