//! Which paths matter, and what matters in directories that are looked into at the end.

use super::{Look, Watch, Why, is_gone};
use realpath::{climbs, normal};
use std::{
    collections::{BTreeSet, HashSet},
    io::ErrorKind,
    path::{Component, Path, PathBuf},
};

/// Entries that are looked at in directories.
const MOST_LOOKED_AT: usize = 100_000;

/// What was found in directories.
#[derive(Debug, Default)]
pub(super) struct Below {
    /// What matters.
    pub(super) found: Vec<PathBuf>,
    /// Directories that could not be looked into.
    pub(super) unseen: BTreeSet<PathBuf>,
    /// How many directories were too many.
    pub(super) left_out: u64,
}

impl Watch {
    pub(super) fn is_private(&self, path: &Path) -> bool {
        self.private.iter().any(|private| path.starts_with(private))
    }

    /// Whether something that matters may lie below `path`, which does so by its name alone.
    pub(super) fn leads(&self, path: &Path) -> bool {
        !self.is_private(path) && (self.trees.find(path, true).is_some() || self.begins(path))
    }

    /// Whether what is looked for begins with `path`.
    fn begins(&self, path: &Path) -> bool {
        self.trees.begins(path)
            || self.files.begins(path)
            || self.path.iter().any(|searched| searched.starts_with(path))
    }

    /// Why the link at `path` matters, as it lies now; `None` if there is none. It does if it leads
    /// out of the directory that the run is about, or into packages, or stands where a directory
    /// would with what is looked for; or nobody can look where it leads. Who follows it is outside:
    /// what is the sandbox's alone does not lie there.
    pub(super) fn why_link(&self, path: &Path) -> Option<Why> {
        let target = match std::fs::read_link(path) {
            Ok(target) => target,
            Err(error) if is_gone(&error) || error.kind() == ErrorKind::InvalidInput => {
                return None;
            }
            Err(_) => return Some(Why::Link),
        };
        let to = path.parent()?.join(&target);
        let is_of_package = |path: &Path| self.packages.find(path, true).is_some();
        let enters = |leads_to: &Path| is_of_package(&normal(leads_to)) && !is_of_package(path);
        let is_led = |leads_to: &Path| self.leaves(leads_to) || enters(leads_to);
        // Where it climbs from something that it has named, its words alone do not say where to.
        let end = || realpath::way(&to).pop();
        let is_led = is_led(&to) || climbs(&target) && end().is_none_or(|end| is_led(&end));
        Some(if is_led || self.begins(path) { Why::Link } else { Why::Within })
    }

    /// Whether a path names something out of the directory that the run is about, at its end or on
    /// the way, but for what that lies in.
    fn leaves(&self, path: &Path) -> bool {
        let mut at = PathBuf::new();
        let strays = path.components().any(|part| {
            match part {
                Component::ParentDir => drop(at.pop()),
                part => at.push(part),
            }
            !at.starts_with(&self.inside) && !self.inside.starts_with(&at)
        });
        strays || !at.starts_with(&self.inside)
    }

    /// Whether what was noted for `why` still has to be known where it was moved to.
    pub(super) fn keeps(&self, path: &Path, why: Why) -> bool {
        match why {
            Why::Repository | Why::Link | Why::Within | Why::Unseen => true,
            // It may come back from where nobody outside looks.
            Why::Tree(_) | Why::File(_) | Why::Path => self.why_name(path).is_some(),
        }
    }

    /// What is looked for in `tops`. Nothing that is looked at is followed.
    pub(super) fn below(&self, tops: &HashSet<(PathBuf, Look)>) -> Below {
        let mut below = Below::default();
        let is_below = |top: &Path, look: Look| {
            let mut above = top.ancestors().skip(1).map(Path::to_owned);
            above.any(|above| tops.contains(&(above, look)))
        };
        let mut left = Vec::new();
        // What is found by names, which is least, is looked at first.
        for look in [Look::Links, Look::All, Look::Named] {
            for (top, _) in tops.iter().filter(|(top, it)| *it == look && !is_below(top, look)) {
                match std::fs::symlink_metadata(top) {
                    Ok(found) if found.is_dir() => left.push((top.clone(), look)),
                    Err(error) if look != Look::Named && !is_gone(&error) => {
                        below.unseen.insert(top.clone());
                    }
                    _ => {}
                }
            }
        }
        let mut looked_at = 0;
        while let Some((directory, look)) = left.pop() {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if is_gone(&error) => continue,
                Err(_) => {
                    below.unseen.insert(directory);
                    continue;
                }
            };
            for entry in entries {
                let Ok(entry) = entry else {
                    below.unseen.insert(directory);
                    break;
                };
                looked_at += 1;
                if looked_at > MOST_LOOKED_AT {
                    below.left_out = left.len() as u64 + 1;
                    return below;
                }
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    let is_left = look != Look::Named || self.leads(&path);
                    left.extend(is_left.then_some((path, look)));
                } else if self.is_looked_for(&path, look) {
                    below.found.push(path);
                }
            }
        }
        below
    }

    fn is_looked_for(&self, path: &Path, look: Look) -> bool {
        let is_named = || look != Look::Links && self.why(path).is_some();
        let is_led = || look != Look::Named && self.why_link(path) == Some(Why::Link);
        is_named() || is_led()
    }

    pub(super) fn why(&self, path: &Path) -> Option<Why> {
        if self.is_private(path) { None } else { self.why_name(path) }
    }

    fn why_name(&self, path: &Path) -> Option<Why> {
        let by_link = |above: &Path| {
            let (link, rest) = (self.led.get(above)?, path.strip_prefix(above).ok()?);
            // Joining nothing would add a slash.
            let is_it = rest.as_os_str().is_empty();
            self.why_own_name(&if is_it { link.clone() } else { link.join(rest) })
        };
        self.why_own_name(path).or_else(|| path.ancestors().find_map(by_link))
    }

    /// The same, by no link.
    fn why_own_name(&self, path: &Path) -> Option<Why> {
        let by_name = || self.files.find(path, false).map(Why::File);
        self.trees.find(path, true).map(Why::Tree).or_else(by_name).or_else(|| {
            let directory = path.parent()?;
            self.path.iter().any(|searched| searched == directory).then_some(Why::Path)
        })
    }
}
