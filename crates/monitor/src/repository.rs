//! Directories that Git takes for a repository whatever they are called: those with `objects` and
//! `refs`. Git executes what a `config` or `hooks` in one says, so both have the label that they
//! would have in a `.git` there.

use rustix::{
    fs::{AtFlags, CWD},
    io::Result,
};
use std::{
    collections::VecDeque,
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// What makes a directory a repository. Its `HEAD` may lie elsewhere: a `commondir` leads here.
const PARTS: [&str; 2] = ["objects", "refs"];
/// What Git obeys in one.
const OBEYED: [&str; 2] = ["config", "hooks"];
/// Names that are remembered from their decision on, so that two that are made at one time see each
/// other.
const MOST_CLAIMS: usize = 256;

/// Names of [`PARTS`] and [`OBEYED`] that were decided, by their directory, whether they have been
/// made yet or not.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<VecDeque<Claim>>);

#[derive(Debug, PartialEq, Eq)]
struct Claim {
    /// Device and number.
    directory: (u64, u64),
    name: &'static str,
}

impl Claims {
    /// Whether `directory` would be a repository with something that Git obeys, once `name` is in
    /// it.
    pub(crate) fn completes(&self, directory: &OwnedFd, name: &OsStr) -> Result<bool> {
        let Some(name) = part(name) else { return Ok(false) };
        let status = rustix::fs::fstat(directory)?;
        let key = (status.st_dev, status.st_ino);
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |part: &&'static str| {
            *part == name
                || claims.contains(&Claim { directory: key, name: part })
                || exists(directory, part)
        };
        if PARTS.iter().all(has) && OBEYED.iter().any(has) {
            return Ok(true);
        }
        let claim = Claim { directory: key, name };
        if !claims.contains(&claim) {
            claims.push_back(claim);
            if claims.len() > MOST_CLAIMS {
                claims.pop_front();
            }
        }
        Ok(false)
    }
}

/// Which of the names that matter `name` is, in any case.
fn part(name: &OsStr) -> Option<&'static str> {
    let is = |part: &&&'static str| name.eq_ignore_ascii_case(part);
    PARTS.iter().chain(&OBEYED).find(is).copied()
}

fn exists(directory: impl AsFd, name: &str) -> bool {
    // When in doubt it does.
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found.map_or_else(|error| error != rustix::io::Errno::NOENT, |_| true)
}

/// The path by which labelling rules know a file in a repository without a name: `x/config` as
/// `x/.git/config`. Only looked at when the file is; what is made later is decided by
/// [`Claims::completes`].
pub(crate) fn known_as(path: PathBuf) -> PathBuf {
    let is_obeyed = |name: &&OsStr| part(name).is_some_and(|part| OBEYED.contains(&part));
    let top = path.ancestors().find_map(|it| {
        let name = it.file_name().filter(is_obeyed);
        name.and(it.parent()).filter(|directory| is_repository(directory))
    });
    let renamed = top.and_then(|top| Some(top.join(".git").join(path.strip_prefix(top).ok()?)));
    renamed.unwrap_or(path)
}

fn is_repository(directory: &Path) -> bool {
    let found = |part: &&str| {
        rustix::fs::statat(CWD, directory.join(part), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    };
    PARTS.iter().all(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_completes_a_repository_in_whatever_order() {
        for (index, last) in ["config", "refs", "objects", "hooks"].into_iter().enumerate() {
            // A later directory may have the inode of a former one.
            let claims = Claims::default();
            let directory = tempfile::tempdir().unwrap();
            let fd: OwnedFd = std::fs::File::open(directory.path()).unwrap().into();
            let completes = |name: &str| claims.completes(&fd, OsStr::new(name)).unwrap();
            for name in ["objects", "refs", "config", "HEAD"] {
                // `hooks` come to a repository without a configuration.
                if name != last && !(last == "hooks" && name == "config") {
                    assert!(!completes(name), "{index}: {name} before {last}");
                    std::fs::create_dir(directory.path().join(name)).unwrap();
                }
            }
            assert!(completes(last), "{index}: {last}");
            assert!(completes(&last.to_uppercase()), "{index}: {last} in upper case");
            assert!(!completes("index"), "{index}");
        }
    }

    #[test]
    fn names_that_are_made_at_one_time_see_each_other() {
        let claims = Claims::default();
        let directory = tempfile::tempdir().unwrap();
        let fd: OwnedFd = std::fs::File::open(directory.path()).unwrap().into();
        let answers = ["refs", "objects", "config"]
            .map(|name| claims.completes(&fd, OsStr::new(name)).unwrap());
        assert_eq!(answers, [false, false, true]);
    }

    #[test]
    fn what_git_obeys_in_a_nameless_repository_is_known_as_in_a_git_directory() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        let known = |name: &str| known_as(top.join(name));
        assert_eq!(known("config"), top.join("config"));
        std::fs::create_dir(top.join("objects")).unwrap();
        std::fs::create_dir(top.join("refs")).unwrap();
        assert_eq!(known("config"), top.join(".git/config"));
        assert_eq!(known("hooks/x"), top.join(".git/hooks/x"));
        assert_eq!(known("index"), top.join("index"));
    }
}
