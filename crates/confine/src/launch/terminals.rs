//! The terminals of a run: those that it was given, and those that it has made.
//!
//! Numbers of terminals (`/dev/pts/N`) and of their inodes are given out again. So each is held by
//! a descriptor that is only a place (`O_PATH`), which keeps nothing open: once the terminal is
//! gone, the kernel counts no link to the inode any more, and whoever has its number is another.

use rustix::{
    fs::{FileType, Mode, OFlags, Stat, fstat, major},
    io::{Errno, Result},
    pty::{OpenptFlags, ioctl_tiocgptpeer},
    termios::tcgetsid,
};
use std::{
    collections::HashMap,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Device numbers of the sides of pseudoterminals that programs run on (`linux/major.h`:
/// `UNIX98_PTY_SLAVE_MAJOR`).
const SLAVES: std::ops::RangeInclusive<u32> = 136..=143;
/// Terminals of a run at a time: each is a descriptor of the monitor's.
const MOST: usize = 512;

/// The terminals that a run may open.
#[derive(Debug, Default)]
pub struct Terminals(Mutex<HashMap<(u64, u64), OwnedFd>>);

impl Terminals {
    /// Whether an object is such a terminal, of anybody.
    #[must_use]
    pub fn is_one(object: &Stat) -> bool {
        let is_device = FileType::from_raw_mode(object.st_mode) == FileType::CharacterDevice;
        is_device && SLAVES.contains(&major(object.st_rdev))
    }

    /// Whether a terminal is the run's. `object` must be of a descriptor that the caller has held
    /// since before: then no other can have come to its number.
    #[must_use]
    pub fn has(&self, object: &Stat) -> bool {
        self.lock().get(&(object.st_dev, object.st_ino)).is_some_and(is_there)
    }

    /// Adds the other side of `master`, which was made for the run.
    ///
    /// # Errors
    ///
    /// `NOSPC` if it has too many, as the kernel says it; else of the kernel.
    pub fn add_of(&self, master: impl AsFd) -> Result<()> {
        let flags = (OFlags::PATH | OFlags::CLOEXEC).bits();
        self.add(ioctl_tiocgptpeer(master, OpenptFlags::from_bits_retain(flags))?)
    }

    /// Adds the terminal behind `fd`, if it is one. One that cannot be held is not opened by name.
    pub(super) fn add_given(&self, fd: &OwnedFd, found: &Stat) {
        if Self::is_one(found) {
            let _ = pin(fd).and_then(|pin| self.add(pin));
        }
    }

    /// Adds the controlling terminal of this process, which `path` should lead to. A container may
    /// have another one there.
    pub(super) fn add_controlling(&self, path: &Path) {
        let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) else { return };
        // The kernel tells the session of no other terminal.
        if let (Ok(_), Ok(found)) = (tcgetsid(&fd), fstat(&fd)) {
            self.add_given(&fd, &found);
        }
    }

    fn add(&self, pin: OwnedFd) -> Result<()> {
        let found = fstat(&pin)?;
        let mut all = self.lock();
        all.retain(|_, pin| is_there(pin));
        if all.len() >= MOST {
            return Err(Errno::NOSPC);
        }
        all.insert((found.st_dev, found.st_ino), pin);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(u64, u64), OwnedFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the terminal is there: its name goes with its master.
fn is_there(pin: &OwnedFd) -> bool {
    fstat(pin).is_ok_and(|found| found.st_nlink > 0)
}

/// The same object as a place.
fn pin(fd: &OwnedFd) -> Result<OwnedFd> {
    let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::{
        process::{Resource, Rlimit, getrlimit, setrlimit},
        pty::{openpt, ptsname, unlockpt},
    };

    fn master() -> OwnedFd {
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap()
    }

    /// A place of the other side, found by its name.
    fn place(master: &OwnedFd) -> OwnedFd {
        let name = ptsname(master, Vec::new()).unwrap();
        rustix::fs::open(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    #[test]
    fn a_number_that_is_given_out_again_is_another_s() {
        let all = Terminals::default();
        let (mut own, other) = (master(), master());
        all.add_of(&own).unwrap();
        let found = fstat(place(&own)).unwrap();
        assert!(Terminals::is_one(&found) && all.has(&found));
        assert!(!all.has(&fstat(place(&other)).unwrap()));
        // Other tests make terminals, too.
        let mut kept = Vec::new();
        let again = loop {
            drop(own);
            assert!(!all.has(&found));
            let next = master();
            let now = fstat(place(&next)).unwrap();
            if (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino) {
                break next;
            }
            kept.push(next);
            assert!(kept.len() < 200, "no number is given out again");
            own = master();
        };
        let now = fstat(place(&again)).unwrap();
        assert!(!all.has(&now));
        all.add_of(&again).unwrap();
        assert!(all.has(&now));
    }

    #[test]
    fn what_was_given_is_known_and_there_is_a_bound() {
        let all = Terminals::default();
        let master = master();
        unlockpt(&master).unwrap();
        let slave = ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        let found = fstat(&slave).unwrap();
        all.add_given(&slave, &found);
        assert!(all.has(&found));
        drop(master);
        assert!(!all.has(&found));
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
        let masters: Vec<_> = (0..MOST).map(|_| self::master()).collect();
        masters.iter().for_each(|it| all.add_of(it).unwrap());
        let more = self::master();
        assert_eq!(all.add_of(&more), Err(Errno::NOSPC));
        drop(masters);
        all.add_of(more).unwrap();
    }
}
