//! File systems that know a file by other spellings of its name (FAT, NTFS, shares of Windows and
//! macOS, `chattr +F`): rules go by the name that a program uses, and covers lie on one.

use super::RunRequest;
use crate::output::tell;
use anyhow::bail;
use monitor::visible;
use profile::{Compiled, PathRights, PathRule};
use std::{
    borrow::Cow,
    collections::HashMap,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::{OsStrExt as _, OsStringExt as _},
        fs::MetadataExt as _,
    },
    path::{Path, PathBuf},
};

/// So many names of a directory are tried.
const MOST: usize = 16;

/// What lies there is the kernel's, which knows one spelling.
const OF_KERNEL: [&[u8]; 2] = [b"/proc/", b"/sys/"];

/// The rules that name a path, by it.
type Places<'a> = HashMap<&'a OsStr, &'a PathRule>;

/// A rule that another spelling gets past.
struct Passed {
    /// What was tried, and the spelling that leads there, too.
    name: PathBuf,
    spelling: PathBuf,
    /// The rule takes reading.
    reads: bool,
}

/// Refuses to run where what the profile denies or hides would be read by another spelling, unless
/// `request` allows that; and warns where something is only kept from being written.
pub(super) fn insist(
    request: &RunRequest,
    compiled: &Compiled,
    workspace: &Path,
) -> anyhow::Result<()> {
    let rules = compiled.paths.iter().filter(|rule| !rule.is_way && !rule.by_name);
    let literal = rules.clone().filter_map(|rule| Some((rule.path.as_ref()?.as_os_str(), rule)));
    let places: Places<'_> = literal.collect();
    let mut spellings = Spellings::default();
    let passed = rules.filter_map(|rule| spellings.passed(&places, rule, workspace));
    let passed: Vec<Passed> = passed.collect();
    let worst = passed.iter().find(|passed| passed.reads).or(passed.first());
    let Some(Passed { name, spelling, reads }) = worst else { return Ok(()) };
    let [name, spelling] = [name, spelling].map(|path| visible(&path.to_string_lossy()));
    let taken = if *reads { "denies or hides" } else { "keeps from being written" };
    let said = format!(
        "this file system knows `{name}` as `{spelling}`, too: what {} {taken} there is had by another spelling",
        compiled.name
    );
    let refuses = *reads && !request.allow_degraded && request.learning.is_none();
    if refuses {
        bail!(
            "{said}; nothing was started. Keep it elsewhere than in what is granted; --allow-degraded runs nevertheless"
        );
    }
    tell!("dewar: {}: {said}", if *reads { "DEGRADED" } else { "WARNING" });
    Ok(())
}

/// What was found out about spellings, so that nothing is looked at twice: rules have much of their
/// ways in common.
#[derive(Default)]
struct Spellings {
    of: HashMap<PathBuf, Option<PathBuf>>,
    /// The first name in a directory that has another spelling.
    inside: HashMap<PathBuf, Option<PathBuf>>,
}

impl Spellings {
    /// What shows that another spelling gets past `rule`, if it takes something away.
    fn passed(&mut self, places: &Places<'_>, rule: &PathRule, workspace: &Path) -> Option<Passed> {
        let place = match &rule.path {
            Some(path) => Cow::Borrowed(path.as_path()),
            None => Cow::Owned(labelling::stem_dir(&rule.regex)),
        };
        if OF_KERNEL.iter().any(|tree| place.as_os_str().as_bytes().starts_with(tree)) {
            return None;
        }
        let around = rule.path.as_deref().map_or(Some(&*place), Path::parent)?;
        let known = |top: &Path| Some(*places.get(top.as_os_str())?);
        let (top, outer) = around.ancestors().find_map(|top| Some((top, known(top)?)))?;
        let takes = |right: fn(&PathRights) -> bool| {
            outer.rights.iter().zip(&rule.rights).any(|(outer, own)| right(outer) && !right(own))
        };
        let reads = takes(|rights| rights.read);
        if !reads && !takes(|rights| rights.write) {
            return None;
        }
        let length = top.as_os_str().len();
        let inside = || place.ancestors().take_while(|path| path.as_os_str().len() >= length);
        let named = inside().filter(|path| *path != top).find(|path| self.of(path).is_some());
        // Names beside what the rule is about, which need not be there.
        let beside =
            |path: &&Path| path.starts_with(workspace) && Some(*path) != rule.path.as_deref();
        let name = match named {
            Some(name) => name.to_owned(),
            None => inside().filter(beside).find_map(|path| self.inside(path))?,
        };
        Some(Passed { spelling: self.of(&name)?, name, reads })
    }

    fn of(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.of.get(path) {
            return known.clone();
        }
        let found = other_spelling(path);
        self.of.insert(path.to_owned(), found.clone());
        found
    }

    fn inside(&mut self, directory: &Path) -> Option<PathBuf> {
        if let Some(known) = self.inside.get(directory) {
            return known.clone();
        }
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names = entries.take(MOST).map(|entry| entry.path());
        let found = names.find(|path| self.of(path).is_some());
        self.inside.insert(directory.to_owned(), found.clone());
        found
    }
}

/// Another spelling of the last name of `path` that leads to the same file, though no such name is
/// there.
fn other_spelling(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_owned().into_vec();
    let swap = |byte: &u8| if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { *byte };
    let other = path.with_file_name(std::ffi::OsString::from_vec(name.iter().map(swap).collect()));
    if other == path {
        return None;
    }
    let inode = |path: &Path| fs::symlink_metadata(path).ok().map(|it| (it.dev(), it.ino()));
    // Most file systems know no such name.
    let of_other = inode(&other)?;
    let is_there = || {
        let all = fs::read_dir(path.parent()?).ok()?;
        Some(all.flatten().any(|entry| entry.path() == other))
    };
    (inode(path) == Some(of_other) && is_there() == Some(false)).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_of_one_file_are_no_spellings() {
        let directory = tempfile::tempdir().unwrap();
        let [small, big] = ["name", "NAME"].map(|name| directory.path().join(name));
        fs::write(&small, "").unwrap();
        assert_eq!(other_spelling(&small), None);
        fs::hard_link(&small, &big).unwrap();
        assert_eq!(other_spelling(&small), None);
    }
}
