//! Files with several names, of which a new labelling rule speaks by one.

use crate::{
    gate::Gate,
    label::{Status, file_kind},
};
use flask::FileRule;
use labelling::stem_dir;
use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
};
use std::{
    collections::HashSet,
    os::fd::AsFd,
    path::{Path, PathBuf},
};

/// Files that are looked at for further names of what a new labelling rule is about.
const MOST_FILES: usize = 100_000;

/// Where the files lie that one list of rules speaks of and the other does not, or otherwise.
pub(super) fn changed(old: &[FileRule], new: &[FileRule]) -> Vec<PathBuf> {
    let key = |rule: &FileRule| (rule.path.clone(), rule.sid);
    let [old, new] = [old, new].map(|rules| rules.iter().map(key).collect::<HashSet<_>>());
    let mut stems: Vec<_> =
        old.symmetric_difference(&new).map(|(path, _)| stem_dir(path)).collect();
    stems.sort();
    stems.dedup_by(|inner, outer| inner.starts_with(outer));
    stems
}

/// Labels anew the files below `stems` whose rule has changed, also those that nobody opens again: a file has the new
/// label by all its names, and is known by its number. Whether all were found.
pub(super) fn relabel(gate: &Gate, stems: &[PathBuf]) -> bool {
    let mut left = MOST_FILES;
    stems.iter().all(|stem| relabel_below(gate, stem, &mut left))
}

fn relabel_below(gate: &Gate, at: &Path, left: &mut usize) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    let stat = match rustix::fs::lstat(at) {
        Ok(stat) => stat,
        Err(error) => return is_out_of_reach(error),
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    if gate.state.labels.has_changed(at, file_kind(kind)) {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(at, flags, Mode::empty());
        match opened.and_then(|file| Status::of(file.as_fd())) {
            Ok(status) => {
                let has_other_names = kind != FileType::Directory && stat.st_nlink > 1;
                gate.state.labels.relabel(&status, at, has_other_names);
            }
            Err(error) => return is_out_of_reach(error),
        }
    }
    // What the kernel makes up as it is looked at has one name and no end.
    if kind != FileType::Directory || at == Path::new("/proc") {
        return true;
    }
    let entry = |entry: std::io::Result<std::fs::DirEntry>| match entry {
        Ok(entry) => relabel_below(gate, &entry.path(), left),
        Err(error) => Errno::from_io_error(&error).is_some_and(is_out_of_reach),
    };
    match std::fs::read_dir(at) {
        Ok(mut entries) => entries.all(entry),
        Err(error) => Errno::from_io_error(&error).is_some_and(is_out_of_reach),
    }
}

/// Whether there is no file, or one that the sandbox, which has the monitor's IDs or less, does not reach either.
fn is_out_of_reach(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM)
}
