//! How it is known that a file is the one that was labelled, and none that was made since.
//!
//! A number is used again, on some file systems at once, and birth times are those of a clock that
//! moves on with each tick. So who deletes a file and has the next one made within a tick gets both
//! again. Three things tell the two files apart:
//!
//! - *Age.* If the inode was alive when the clock had moved on beyond its birth, each later one
//!   with its number has a later birth.
//! - *The handle*, where the file is younger, or its birth is of another machine's clock. It holds
//!   a generation, which differs for each file that a number is given to.
//! - *Keeping it alive*, where there is no handle that tells: meanwhile nobody gets its number.

use crate::{
    status::{FileRef, Inode, Status},
    sys,
};
use rustix::fs::fstatfs;
use std::{
    collections::VecDeque,
    os::fd::{BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// More than a tick, which takes 10 ms at most, by far.
const TICKS: Duration = Duration::from_millis(30);

/// File systems whose births are of this machine's clock, to the tick: tmpfs, ext4, XFS, btrfs,
/// F2FS, bcachefs, overlayfs (`linux/magic.h`).
const OF_OWN_CLOCK: [u64; 7] =
    [0x0102_1994, 0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x794c_7630];

/// Kinds of handles of `linux/exportfs.h`.
const FILEID_INO32_GEN: i32 = 1;
const FILEID_INO64_GEN: i32 = 0x81;

/// What tells a labelled file from those that are made later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// No later one has its number and birth time.
    Unique,
    /// Later ones have another handle.
    Handle(Arc<[u8]>),
}

impl Proof {
    /// What tells `file` from later ones. Without `may_wait`, none if too many are kept alive.
    pub(crate) fn of(
        status: &Status,
        file: FileRef<'_>,
        kept: &KeptAlive,
        may_wait: bool,
    ) -> Option<Self> {
        let told = file.with(status, |fd| {
            if is_unique(status.inode()?, fd) {
                return Some(Self::Unique);
            }
            handle(fd).map(Self::Handle)
        });
        told.or_else(|| kept.keep(file.hold(status)?, may_wait).then_some(Self::Unique))
    }

    /// Whether `file` is the one that this is the proof of; `Some` with what proves it from now on.
    pub(crate) fn renewed(&self, status: &Status, file: FileRef<'_>) -> Option<Self> {
        let Self::Handle(known) = self else { return Some(Self::Unique) };
        file.with(status, |fd| {
            let is_it = handle(fd).is_some_and(|it| it == *known);
            let is_unique = is_it && is_unique(status.inode()?, fd);
            is_it.then(|| if is_unique { Self::Unique } else { self.clone() })
        })
    }
}

/// Whether no file that is made from now on has number and birth time of the one behind `fd`. It
/// is alive while this looks at the clock, as `fd` holds it.
fn is_unique(inode: Inode, fd: BorrowedFd<'_>) -> bool {
    let (seconds, nanos) = inode.birth;
    let birth = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let is_of_own_clock =
        || fstatfs(fd).is_ok_and(|it| OF_OWN_CLOCK.contains(&it.f_type.cast_unsigned()));
    sys::last_tick() - birth > TICKS.as_nanos().cast_signed() && is_of_own_clock()
}

/// The handle of a file, if it tells the file from others that had its number.
fn handle(fd: BorrowedFd<'_>) -> Option<Arc<[u8]>> {
    let (kind, bytes) = sys::handle(fd).ok()?;
    let word = |at: usize| bytes.get(4 * at..4 * at + 4).is_some_and(|word| word != [0; 4]);
    // Where file systems know no generation, it is 0. Others than these two kinds are of file
    // systems that have one.
    let tells = match (kind, bytes.len()) {
        (FILEID_INO32_GEN, 8) => word(1),
        (FILEID_INO32_GEN, _) => word(0),
        (FILEID_INO64_GEN, _) => word(2),
        _ => true,
    };
    tells.then(|| bytes.into())
}

/// Files that are kept alive until none made later has their birth time.
#[derive(Debug, Default)]
pub(crate) struct KeptAlive(Mutex<VecDeque<(Instant, OwnedFd)>>);

impl KeptAlive {
    /// Descriptors of the monitor.
    const MOST: usize = 256;

    /// Keeps a file alive for a while; whether there was room.
    pub(crate) fn keep(&self, file: OwnedFd, may_wait: bool) -> bool {
        loop {
            self.let_go();
            let mut kept = self.lock();
            if kept.len() < Self::MOST {
                kept.push_back((Instant::now(), file));
                return true;
            }
            drop(kept);
            if !may_wait {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets go of those that are old enough. What was deleted meanwhile takes space until then.
    pub(crate) fn let_go(&self) {
        let mut kept = self.lock();
        let is_young = |(since, _): &(Instant, _)| since.elapsed() <= TICKS;
        let old = kept.iter().position(is_young).unwrap_or(kept.len());
        let old: Vec<_> = kept.drain(..old).collect();
        drop(kept);
        // To free a file may take long.
        drop(old);
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Instant, OwnedFd)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
