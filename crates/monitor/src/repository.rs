//! Directories that Git takes for a repository whatever they are called: those with `objects` and
//! `refs`. Git executes what a `config` or `hooks` in one says, so both have the label that they
//! would have in a `.git` there.

use labelling::Names;
use rustix::{
    fs::{AtFlags, CWD},
    io::Result,
};
use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

/// What makes a directory a repository. Its `HEAD` may lie elsewhere: a `commondir` leads here.
const PARTS: [&str; 2] = ["objects", "refs"];
/// What Git obeys in one.
const OBEYED: [&str; 2] = ["config", "hooks"];
/// The same names in any case, as a file system that folds case compares them.
static PART_NAMES: LazyLock<Names> = LazyLock::new(|| Names::new(all_parts()));

/// Names of [`PARTS`] and [`OBEYED`] that calls under way were let make, by their directory: calls
/// that are made at one time see each other.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<Vec<Claim>>);

#[derive(Debug, PartialEq, Eq)]
struct Claim {
    /// The call's number.
    call: u64,
    /// Device and number.
    directory: (u64, u64),
    name: &'static str,
}

/// What one call claims. It ends with the call, when what was made can be seen, and never before:
/// to make a name may take as long as the program likes, as it can hold the directory up.
#[derive(Debug)]
pub(crate) struct CallClaims<'a> {
    all: &'a Claims,
    call: u64,
}

impl Claims {
    /// Those of a call: from before it is decided until it is made.
    pub(crate) fn of_call(&self, call: u64) -> CallClaims<'_> {
        CallClaims { all: self, call }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallClaims<'_> {
    /// Whether `directory` would be a repository with something that Git obeys, once `name` is in
    /// it.
    pub(crate) fn completes(&self, directory: &OwnedFd, name: &OsStr) -> Result<bool> {
        let Some(name) = part(name) else { return Ok(false) };
        let status = rustix::fs::fstat(directory)?;
        let key = (status.st_dev, status.st_ino);
        let mut claims = self.all.lock();
        let has = |part: &&'static str| {
            let claimed = |claim: &Claim| claim.directory == key && claim.name == *part;
            *part == name || claims.iter().any(claimed) || exists(directory, part)
        };
        if PARTS.iter().all(has) && OBEYED.iter().any(has) {
            return Ok(true);
        }
        let claim = Claim { call: self.call, directory: key, name };
        if !claims.contains(&claim) {
            claims.push(claim);
        }
        Ok(false)
    }
}

impl Drop for CallClaims<'_> {
    fn drop(&mut self) {
        self.all.lock().retain(|claim| claim.call != self.call);
    }
}

fn all_parts() -> impl Iterator<Item = &'static str> {
    PARTS.into_iter().chain(OBEYED)
}

/// Which of the names that matter `name` is, in any case.
fn part(name: &OsStr) -> Option<&'static str> {
    all_parts().nth(PART_NAMES.find(Path::new(name), false)?)
}

fn exists(directory: impl AsFd, name: &str) -> bool {
    // When in doubt it does.
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found.map_or_else(|error| error != rustix::io::Errno::NOENT, |_| true)
}

/// The path by which labelling rules know a file in a repository without a name: `x/config` as
/// `x/.git/config`. Only looked at when the file is; what is made later is decided by
/// [`CallClaims::completes`].
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
            let completes =
                |name: &str| claims.of_call(1).completes(&fd, OsStr::new(name)).unwrap();
            for name in ["objects", "refs", "config", "HEAD"] {
                // `hooks` come to a repository without a configuration.
                if name != last && !(last == "hooks" && name == "config") {
                    assert!(!completes(name), "{index}: {name} before {last}");
                    std::fs::create_dir(directory.path().join(name)).unwrap();
                }
            }
            assert!(completes(last), "{index}: {last}");
            assert!(completes(&last.to_uppercase()), "{index}: {last} in upper case");
            let odd = last.replace('s', "\u{17f}").replace("fi", "\u{fb01}") + "\u{200c}";
            assert!(completes(&odd), "{index}: {odd}, as file systems compare that fold case");
            assert!(!completes("index"), "{index}");
        }
    }

    #[test]
    fn names_that_are_made_at_one_time_see_each_other_however_many_there_are() {
        let claims = Claims::default();
        let places: Vec<_> = (0..300).map(|_| tempfile::tempdir().unwrap()).collect();
        let open =
            |place: &tempfile::TempDir| -> OwnedFd { std::fs::File::open(place).unwrap().into() };
        let of_call = |call: u64, place: &tempfile::TempDir, name: &str| {
            let held = claims.of_call(call);
            let completes = held.completes(&open(place), OsStr::new(name)).unwrap();
            (held, completes)
        };
        let refs = of_call(0, &places[0], "refs");
        let others: Vec<_> =
            places.iter().zip(1..).skip(1).map(|(at, call)| of_call(call, at, "refs")).collect();
        let objects = of_call(1000, &places[0], "objects");
        let config = of_call(1001, &places[0], "config");
        assert_eq!([refs.1, objects.1, config.1], [false, false, true]);
        assert!(others.iter().all(|(_, completes)| !completes));
    }

    #[test]
    fn what_was_claimed_and_not_made_is_free_again() {
        let claims = Claims::default();
        let directory = tempfile::tempdir().unwrap();
        let fd: OwnedFd = std::fs::File::open(directory.path()).unwrap().into();
        for name in ["refs", "objects", "config"] {
            assert!(!claims.of_call(1).completes(&fd, OsStr::new(name)).unwrap(), "{name}");
        }
        assert!(claims.lock().is_empty());
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
