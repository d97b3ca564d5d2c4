//! Whether what lies at a name is what was made there just now. Others may change the directory
//! meanwhile, and an inode that they made is as young, and as much their user's, as one's own. So
//! the kernel is asked what has become of the name since before the call: it tells of changes in
//! their order, wherever they come from (inotify(7)).

use rustix::{
    fs::{Mode, OFlags, RenameFlags, inotify, openat, renameat_with},
    io::{Errno, Result},
};
use std::{
    ffi::OsStr,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What is watched by, kept for the next time: it takes the kernel long to end one.
#[derive(Debug, Default)]
pub struct Witnesses(Mutex<Vec<OwnedFd>>);

/// Sees the changes of the names in a directory, from its beginning on.
#[derive(Debug)]
pub struct Witness<'a> {
    of: &'a Witnesses,
    inotify: Option<OwnedFd>,
    watch: i32,
}

impl Witnesses {
    /// How many are kept.
    const MOST: usize = 8;

    /// Begins to see what happens in `directory`, a path.
    ///
    /// # Errors
    ///
    /// Those of inotify(7): a directory that cannot be read, or more watches than the user may
    /// have.
    pub fn begin(&self, directory: &str) -> Result<Witness<'_>> {
        let kept = self.kept().pop();
        let inotify = match kept {
            Some(kept) => kept,
            None => inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?,
        };
        let mut witness = Witness { of: self, inotify: Some(inotify), watch: -1 };
        let changes = inotify::WatchFlags::CREATE
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::MOVE
            | inotify::WatchFlags::ONLYDIR;
        let inotify = witness.inotify.as_ref().ok_or(Errno::BADF)?;
        witness.watch = inotify::add_watch(inotify, directory, changes)?;
        Ok(witness)
    }

    fn kept(&self) -> MutexGuard<'_, Vec<OwnedFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Witness<'_> {
    /// What lies at `name` in the directory, if the caller has made it since this began; `None` if
    /// somebody else has changed the name since, or that cannot be told.
    ///
    /// # Errors
    ///
    /// Those of openat(2) for the name, and of inotify(7).
    pub fn made(&self, directory: impl AsFd, name: &OsStr) -> Result<Option<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = openat(&directory, name, flags, Mode::empty())?;
        // Whoever has changed the name before that may not have told it yet. He holds the directory
        // meanwhile, as this call does for a moment, which changes nothing.
        let unchanged = RenameFlags::NOREPLACE;
        if renameat_with(&directory, name, &directory, name, unchanged) != Err(Errno::EXIST) {
            return Ok(None);
        }
        Ok((self.changes_of(name)? == [inotify::ReadFlags::CREATE]).then_some(found))
    }

    /// What has become of a name; more than one change where others may be unknown.
    fn changes_of(&self, name: &OsStr) -> Result<Vec<inotify::ReadFlags>> {
        let inotify = self.inotify.as_ref().ok_or(Errno::BADF)?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        let mut changes = Vec::new();
        loop {
            let event = match reader.next() {
                Err(Errno::AGAIN) => return Ok(changes),
                Err(Errno::INTR) => continue,
                event => event?,
            };
            let what = event.events();
            // Where directories take names of any case for one, it can be another spelling.
            let is_it = event
                .file_name()
                .is_some_and(|it| it.to_bytes().eq_ignore_ascii_case(name.as_bytes()));
            if what.contains(inotify::ReadFlags::QUEUE_OVERFLOW) {
                changes.extend([what; 2]);
            } else if event.wd() == self.watch && is_it {
                changes.push(what.difference(inotify::ReadFlags::ISDIR));
            }
        }
    }
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        let Some(inotify) = self.inotify.take() else { return };
        let is_idle = self.watch < 0 || inotify::remove_watch(&inotify, self.watch).is_ok();
        let mut kept = self.of.kept();
        if is_idle && kept.len() < Witnesses::MOST {
            kept.push(inotify);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, mkdirat, open};
    use std::{fs, os::unix::net::UnixListener, path::Path};

    /// What is seen of `name` when `change` has changed `directory`.
    fn seen(witnesses: &Witnesses, directory: &Path, name: &str, change: impl FnOnce()) -> bool {
        let held = open(directory, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let witness = witnesses.begin(directory.to_str().unwrap()).unwrap();
        change();
        witness.made(&held, OsStr::new(name)).is_ok_and(|made| made.is_some())
    }

    #[test]
    fn what_somebody_else_has_put_in_the_place_of_what_was_made_is_not_taken_for_it() {
        let place = tempfile::tempdir().unwrap();
        let (dir, witnesses) = (place.path(), Witnesses::default());
        let seen =
            |name, change: &dyn Fn(&Path)| seen(&witnesses, dir, name, || change(&dir.join(name)));
        let make = |path: &Path| mkdirat(CWD, path, Mode::RWXU).unwrap();
        let bind = |path: &Path| drop(UnixListener::bind(path).unwrap());
        assert!(seen("directory", &make));
        assert!(seen("socket", &bind));
        assert!(seen("link", &|path| std::os::unix::fs::symlink("x", path).unwrap()));
        assert!(seen("beside", &|path| {
            make(path);
            make(&path.with_extension("another"));
        }));
        assert!(!seen("again", &|path| {
            bind(path);
            fs::remove_file(path).unwrap();
            bind(path);
        }));
        assert!(!seen("over", &|path| {
            let other = path.with_extension("other");
            bind(path);
            bind(&other);
            fs::rename(other, path).unwrap();
        }));
        assert!(!seen("gone", &|path| {
            bind(path);
            fs::remove_file(path).unwrap();
        }));
        assert!(!seen("directory", &|_| {}), "made before");
        assert!(!seen("many", &|path| {
            make(path);
            let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
            let other = path.with_extension("x");
            for _ in 0..=most.trim().parse::<u32>().unwrap() / 2 {
                make(&other);
                fs::remove_dir(&other).unwrap();
            }
        }));
        assert!(seen("last", &make), "what was seen before is not seen again");
        assert_eq!(witnesses.kept().len(), 1);
    }
}
