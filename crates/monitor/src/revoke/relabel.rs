//! Files of which a new labelling rule speaks are labelled anew, by whatever name they are used.

use crate::gate::Gate;
use confine::{file_kind, launch::with_raised};
use flask::{FileRule, Sid};
use inode_labels::{FileRef, Status};
use labelling::{Tree, literal, stem_dir};
use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat},
    io::Errno,
    process::geteuid,
    thread::CapabilitySet,
};
use std::{
    collections::HashSet,
    ffi::{OsStr, OsString},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::{Path, PathBuf},
};

/// Files that are looked at for further names of what a new labelling rule is about, with paths of
/// less than [`SHORT`] bytes; rules take longer to be compared with longer ones, which count more.
const MOST_FILES: usize = 100_000;

/// Bytes of a path that counts once.
const SHORT: usize = 256;

/// Bytes of the path of a directory that is looked through.
const MOST_BYTES: usize = 64 << 10;

/// Where the files lie that one list of rules speaks of and the other does not, or otherwise, and
/// those that the new one gives one of the labels `taken`; and those of `earlier` changes.
pub(super) fn changed(
    (old, new): (&[FileRule], &[FileRule]),
    taken: &HashSet<Sid>,
    earlier: Vec<Tree>,
) -> Vec<Tree> {
    let is_taken = |rule: &&FileRule| rule.sid.is_some_and(|sid| taken.contains(&sid));
    let losing = new.iter().filter(is_taken).map(|rule| reach(&rule.path));
    let key = |rule: &FileRule| (rule.path.clone(), rule.sid);
    let [old, new] = [old, new].map(|rules| rules.iter().map(key).collect::<HashSet<_>>());
    let mut trees: Vec<_> = old.symmetric_difference(&new).map(|(path, _)| reach(path)).collect();
    trees.extend(losing);
    trees.extend(earlier);
    trees.sort_by(|a, b| (&a.path, !a.deep).cmp(&(&b.path, !b.deep)));
    trees.dedup_by(|inner, outer| {
        inner.path == outer.path || outer.deep && inner.path.starts_with(&outer.path)
    });
    trees
}

/// Where the files lie that a rule can match: of one about a single directory, that directory, not
/// what is beside or below it.
fn reach(rule: &str) -> Tree {
    literal(rule).unwrap_or_else(|| Tree { path: stem_dir(rule), deep: true })
}

/// Labels anew the files in `trees` whose rule has changed, also those that nobody opens again. The
/// label goes to the inode: it holds by the file's other names, too. Returns those of `trees` in
/// which not all were found.
pub(super) fn relabel(gate: &Gate, trees: &[Tree]) -> Vec<Tree> {
    let mut left = MOST_FILES;
    // Who owns a directory may close it, and open it again.
    with_raised(CapabilitySet::DAC_READ_SEARCH, || {
        let mut unfinished = trees.to_vec();
        unfinished.retain(|tree| !relabel_tree(gate, tree, &mut left));
        unfinished
    })
}

/// Whether all files in `tree` were found.
fn relabel_tree(gate: &Gate, tree: &Tree, left: &mut usize) -> bool {
    let mut directories = Directories::below(&tree.path);
    match relabel_entry(gate, (CWD, &tree.path), &tree.path, left) {
        Ok(is_dir) if is_dir && tree.deep => {}
        Ok(_) => return true,
        Err(error) => return is_out_of_reach(&tree.path, error),
    }
    let mut all = true;
    while let Some((number, at)) = directories.next() {
        // What the kernel makes up as it is looked at has one name and no end.
        if at == Path::new("/proc") {
            continue;
        }
        all &= look_through(gate, (&mut directories, number), &at, left)
            .unwrap_or_else(|error| is_out_of_reach(&at, error));
    }
    all
}

/// Labels anew what lies in the directory at `at`, and has `directories` know those in it. Whether
/// all was found.
fn look_through(
    gate: &Gate,
    (directories, number): (&mut Directories, usize),
    at: &Path,
    left: &mut usize,
) -> Result<bool, Errno> {
    let directory = open_deep(at)?;
    let mut all = true;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = Path::new(OsStr::from_bytes(entry.file_name().to_bytes()));
        if matches!(name.as_os_str().as_bytes(), b"." | b"..") {
            continue;
        }
        let path = at.join(name);
        match relabel_entry(gate, (directory.as_fd(), name), &path, left) {
            Ok(true) if path.as_os_str().len() > MOST_BYTES => all = false,
            Ok(true) => directories.add(number, name.as_os_str().to_owned()),
            Ok(false) => {}
            Err(Errno::NOBUFS) => return Ok(false),
            Err(error) => all &= is_out_of_reach(&path, error),
        }
    }
    Ok(all)
}

/// Labels anew the file at `at`, which `name` in `directory` names, if its rule has changed.
/// Whether it is a directory.
///
/// # Errors
///
/// `NOBUFS` if too many were looked at; whatever the system says.
fn relabel_entry(
    gate: &Gate,
    (directory, name): (BorrowedFd<'_>, &Path),
    at: &Path,
    left: &mut usize,
) -> Result<bool, Errno> {
    let counts = 1 + at.as_os_str().len() / SHORT;
    *left = left.checked_sub(counts).ok_or(Errno::NOBUFS)?;
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if gate.state.labels.has_changed(at, file_kind(kind)) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty())?;
        let status = Status::of(file.as_fd())?;
        let has_other_names = kind != FileType::Directory && stat.st_nlink > 1;
        gate.state.labels.relabel(&status, FileRef::Fd(file.as_fd()), at, has_other_names);
    }
    Ok(kind == FileType::Directory)
}

/// Opens a directory that may lie deeper than one call can name.
fn open_deep(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |at: BorrowedFd<'_>, way: &Path, how| openat(at, way, flags | how, Mode::empty());
    let (mut at, mut way) = (None::<OwnedFd>, PathBuf::new());
    for part in path.components() {
        // Less than `PATH_MAX`, with the longest name.
        if way.as_os_str().len() > 3 * 1024 {
            // On the way, to search is enough.
            let (from, way) = (at.as_ref().map_or(CWD, AsFd::as_fd), std::mem::take(&mut way));
            at = Some(open(from, &way, OFlags::PATH)?);
        }
        way.push(part);
    }
    open(at.as_ref().map_or(CWD, AsFd::as_fd), &way, OFlags::empty())
}

/// Directories that are still to be looked through. Each knows its name and the one above, so that
/// many that lie deep take little, and none is held open.
struct Directories {
    top: PathBuf,
    known: Vec<(usize, OsString)>,
    left: Vec<usize>,
}

impl Directories {
    /// `top` alone.
    fn below(top: &Path) -> Self {
        Self { top: top.to_owned(), known: vec![(0, OsString::new())], left: vec![0] }
    }

    fn add(&mut self, above: usize, name: OsString) {
        self.left.push(self.known.len());
        self.known.push((above, name));
    }

    /// The next one, and where it lies.
    fn next(&mut self) -> Option<(usize, PathBuf)> {
        let number = self.left.pop()?;
        let (mut names, mut at) = (Vec::new(), number);
        while at != 0 {
            let (above, name) = &self.known[at];
            names.push(name);
            at = *above;
        }
        let mut path = self.top.clone();
        path.extend(names.iter().rev());
        Some((number, path))
    }
}

/// Whether there is no file at `path`, or one that the sandbox, which has the monitor's IDs or
/// less, does not reach either: somebody else has closed a directory on the way.
fn is_out_of_reach(path: &Path, error: Errno) -> bool {
    match error {
        Errno::NOENT | Errno::NOTDIR => true,
        Errno::ACCESS | Errno::PERM => {
            let closed = path.ancestors().find_map(|above| rustix::fs::lstat(above).ok());
            closed.is_some_and(|closed| closed.st_uid != geteuid().as_raw())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::FileKind;

    fn rules(rules: &[(&str, u32)]) -> Vec<FileRule> {
        let rule = |&(path, sid): &(&str, u32)| FileRule {
            path: path.into(),
            kind: FileKind::Any,
            sid: Sid::new(sid),
        };
        rules.iter().map(rule).collect()
    }

    fn between(old: &[(&str, u32)], new: &[(&str, u32)]) -> Vec<(String, bool)> {
        let told = |tree: &Tree| (tree.path.display().to_string(), tree.deep);
        let trees = changed((&rules(old), &rules(new)), &HashSet::new(), Vec::new());
        trees.iter().map(told).collect()
    }

    #[test]
    fn what_lies_beside_a_directory_whose_rule_changed_is_not_looked_at() {
        let before = [("/ws(/.*)?", 1)];
        let after = [("/ws(/.*)?", 1), ("/ws", 2), ("/ws/key(/.*)?", 3)];
        let want = [("/ws".to_owned(), false), ("/ws/key".to_owned(), true)];
        assert_eq!(between(&before, &after), want);
        assert_eq!(between(&after, &before), want);
        assert_eq!(between(&after, &after), []);
    }

    #[test]
    fn a_tree_whose_rule_changed_is_looked_through_once() {
        let after = [("/ws/key(/.*)?", 3), ("/ws", 2), ("/ws(/.*)?", 1), ("/wsx", 1)];
        let want = [("/ws".to_owned(), true), ("/wsx".to_owned(), false)];
        assert_eq!(between(&[], &after), want);
        assert_eq!(between(&[], &[("/home/u/[^/]*_history", 1)]), [("/home/u/".to_owned(), true)]);
    }

    #[test]
    fn a_tree_that_loses_something_under_the_same_rule_is_looked_through() {
        let same = rules(&[("/ws(/.*)?", 1), ("/ws/key(/.*)?", 3)]);
        let taken = HashSet::from([Sid::new(3).unwrap()]);
        let trees = changed((&same, &same), &taken, Vec::new());
        let want = Tree { path: "/ws/key".into(), deep: true };
        assert_eq!(
            trees.iter().map(|it| (&it.path, it.deep)).collect::<Vec<_>>(),
            [(&want.path, true)]
        );
    }
}
