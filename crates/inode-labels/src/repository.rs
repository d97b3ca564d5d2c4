//! Directories that Git takes for a repository whatever they are called: those with `objects` and
//! `refs`. Git executes what a `config` or `hooks` in one says, so both have the label that they
//! would have in a `.git` there.

use labelling::Names;
use rustix::{
    fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock},
    io::{Errno, Result},
};
use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// What makes a directory a repository. Its `HEAD` may lie elsewhere: a `commondir` leads here.
const PARTS: [&str; 2] = ["objects", "refs"];
/// What Git obeys in one, and what Git outside makes such a file of.
const OBEYED: [&str; 3] = ["config", "hooks", "config.lock"];
/// The same names in any case, as a file system that folds case compares them.
static PART_NAMES: LazyLock<Names> = LazyLock::new(|| Names::new(all_parts()));

/// Names that make a repository that calls under way were let make, by their directory: calls
/// that are made at one time see each other.
#[derive(Debug, Default)]
pub struct RepositoryNames(Mutex<Vec<Claim>>);

#[derive(Debug)]
struct Claim {
    /// The call's number.
    call: u64,
    directory: Directory,
    name: &'static str,
    /// The directory, locked: calls of other runs are made before or afterwards.
    lock: Arc<OwnedFd>,
}

/// Device and number.
type Directory = (u64, u64);

/// How often, a millisecond apart, a call of another run in the directory is waited for.
const MOST_WAITS: usize = 50;

/// What one call claims. It ends with the call, when what was made can be seen, and never before:
/// to make a name may take as long as the program likes, as it can hold the directory up.
#[derive(Debug)]
pub struct CallClaims<'a> {
    all: &'a RepositoryNames,
    call: u64,
}

impl RepositoryNames {
    /// Those of a call: from before it is decided until it is made.
    pub fn of_call(&self, call: u64) -> CallClaims<'_> {
        CallClaims { all: self, call }
    }

    /// The claims, and a lock on `directory`, which `of` tells from others; `None` while another
    /// run makes something there, or the sandbox pretends that.
    fn with_lock(
        &self,
        directory: &OwnedFd,
        of: Directory,
    ) -> Option<(MutexGuard<'_, Vec<Claim>>, Arc<OwnedFd>)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(directory, c".", flags, Mode::empty()).ok()?;
        for _ in 0..MOST_WAITS {
            let claims = self.lock();
            if let Some(claim) = claims.iter().find(|claim| claim.directory == of) {
                let lock = Arc::clone(&claim.lock);
                return Some((claims, lock));
            }
            match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
                // NFS locks only what is open to write.
                Ok(()) | Err(Errno::BADF | Errno::OPNOTSUPP) => {
                    return Some((claims, Arc::new(opened)));
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return None,
            }
            drop(claims);
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Claim>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallClaims<'_> {
    /// Whether `directory` would be a repository with something that Git obeys, once `name` is in
    /// it.
    pub fn completes(&self, directory: &OwnedFd, name: &OsStr) -> Result<bool> {
        let Some(name) = part(name) else { return Ok(false) };
        let status = rustix::fs::fstat(directory)?;
        let key = (status.st_dev, status.st_ino);
        let Some((mut claims, lock)) = self.all.with_lock(directory, key) else { return Ok(true) };
        let has = |part: &&'static str| {
            let claimed = |claim: &Claim| claim.directory == key && claim.name == *part;
            *part == name || claims.iter().any(claimed) || exists(directory, part)
        };
        if PARTS.iter().all(has) && OBEYED.iter().any(has) {
            return Ok(true);
        }
        let is_own = |it: &Claim| (it.call, it.directory, it.name) == (self.call, key, name);
        if !claims.iter().any(is_own) {
            claims.push(Claim { call: self.call, directory: key, name, lock });
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

/// Whether `name` can make a repository of a directory.
pub fn is_part(name: &OsStr) -> bool {
    part(name).is_some()
}

fn exists(directory: impl AsFd, name: &str) -> bool {
    // When in doubt it does.
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found.map_or_else(|error| error != Errno::NOENT, |_| true)
}

/// The path by which Git knows a file that it obeys in a repository without a name: `x/config` as
/// `x/.git/config`; `None` for any other file. Only names count in it: which rule a file falls
/// under says its own path, or whoever makes a repository around a file would choose the rule. Only
/// looked at when the file is; what is made later is decided by [`CallClaims::completes`].
pub fn known_as(path: &Path) -> Option<PathBuf> {
    let is_obeyed = |name: &&OsStr| part(name).is_some_and(|part| OBEYED.contains(&part));
    let top = path.ancestors().find_map(|it| {
        let name = it.file_name().filter(is_obeyed);
        name.and(it.parent()).filter(|directory| is_repository(directory))
    })?;
    Some(top.join(".git").join(path.strip_prefix(top).ok()?))
}

fn is_repository(directory: &Path) -> bool {
    let found = |part: &&str| {
        let found = rustix::fs::statat(CWD, directory.join(part), AtFlags::SYMLINK_NOFOLLOW);
        // When in doubt it is there, such as where its path is too long.
        found.map_or_else(|error| !matches!(error, Errno::NOENT | Errno::NOTDIR), |_| true)
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
            let claims = RepositoryNames::default();
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
        let claims = RepositoryNames::default();
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
    fn names_that_two_runs_make_at_one_time_see_each_other() {
        let (one, other) = (RepositoryNames::default(), RepositoryNames::default());
        let directory = tempfile::tempdir().unwrap();
        let fd: OwnedFd = std::fs::File::open(directory.path()).unwrap().into();
        std::fs::create_dir(directory.path().join("objects")).unwrap();
        let refs = one.of_call(1);
        assert!(!refs.completes(&fd, OsStr::new("refs")).unwrap());
        assert!(other.of_call(1).completes(&fd, OsStr::new("config")).unwrap());
        drop(refs);
        assert!(!other.of_call(2).completes(&fd, OsStr::new("config")).unwrap());
    }

    #[test]
    fn what_was_claimed_and_not_made_is_free_again() {
        let claims = RepositoryNames::default();
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
        let known = |name: &str| known_as(&top.join(name));
        assert_eq!(known("config"), None);
        std::fs::create_dir(top.join("objects")).unwrap();
        std::fs::create_dir(top.join("refs")).unwrap();
        assert_eq!(known("config"), Some(top.join(".git/config")));
        assert_eq!(known("hooks/x"), Some(top.join(".git/hooks/x")));
        assert_eq!(known("index"), None);
    }
}
