//! Files of which a new labelling rule speaks are labelled anew, by whatever name they are used.

use crate::gate::Gate;
use confine::{file_kind, launch::with_raised};
use flask::{FileRule, Sid};
use inode_labels::{FileRef, Status};
use labelling::{Tree, literal, stem_dir};
use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
    process::geteuid,
    thread::CapabilitySet,
};
use std::{collections::HashSet, os::fd::AsFd, path::Path};

/// Files that are looked at for further names of what a new labelling rule is about.
const MOST_FILES: usize = 100_000;

/// Where the files lie that one list of rules speaks of and the other does not, or otherwise, and
/// those that the new one gives one of the labels `taken`.
pub(super) fn changed(old: &[FileRule], new: &[FileRule], taken: &HashSet<Sid>) -> Vec<Tree> {
    let is_taken = |rule: &&FileRule| rule.sid.is_some_and(|sid| taken.contains(&sid));
    let losing = new.iter().filter(is_taken).map(|rule| reach(&rule.path));
    let key = |rule: &FileRule| (rule.path.clone(), rule.sid);
    let [old, new] = [old, new].map(|rules| rules.iter().map(key).collect::<HashSet<_>>());
    let mut trees: Vec<_> = old.symmetric_difference(&new).map(|(path, _)| reach(path)).collect();
    trees.extend(losing);
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
/// label goes to the inode: it holds by the file's other names, too. Whether all were found.
pub(super) fn relabel(gate: &Gate, trees: &[Tree]) -> bool {
    let mut left = MOST_FILES;
    // Who owns a directory may close it, and open it again.
    with_raised(CapabilitySet::DAC_READ_SEARCH, || {
        trees.iter().all(|tree| relabel_in(gate, &tree.path, tree.deep, &mut left))
    })
}

fn relabel_in(gate: &Gate, at: &Path, deep: bool, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let stat = match rustix::fs::lstat(at) {
        Ok(stat) => stat,
        Err(error) => return is_out_of_reach(at, error),
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if gate.state.labels.has_changed(at, file_kind(kind)) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(at, flags, Mode::empty());
        match opened.and_then(|file| Ok((Status::of(file.as_fd())?, file))) {
            Ok((status, file)) => {
                let file = FileRef::Fd(file.as_fd());
                let has_other_names = kind != FileType::Directory && stat.st_nlink > 1;
                gate.state.labels.relabel(&status, file, at, has_other_names);
            }
            Err(error) => return is_out_of_reach(at, error),
        }
    }
    // What the kernel makes up as it is looked at has one name and no end.
    if !deep || kind != FileType::Directory || at == Path::new("/proc") {
        return true;
    }
    let out_of_reach = |error: &std::io::Error| {
        Errno::from_io_error(error).is_some_and(|errno| is_out_of_reach(at, errno))
    };
    let entry = |entry: std::io::Result<std::fs::DirEntry>| match entry {
        Ok(entry) => relabel_in(gate, &entry.path(), true, left),
        Err(error) => out_of_reach(&error),
    };
    match std::fs::read_dir(at) {
        Ok(mut entries) => entries.all(entry),
        Err(error) => out_of_reach(&error),
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
        changed(&rules(old), &rules(new), &HashSet::new()).iter().map(told).collect()
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
        let trees = changed(&same, &same, &taken);
        let want = Tree { path: "/ws/key".into(), deep: true };
        assert_eq!(
            trees.iter().map(|it| (&it.path, it.deep)).collect::<Vec<_>>(),
            [(&want.path, true)]
        );
    }
}
