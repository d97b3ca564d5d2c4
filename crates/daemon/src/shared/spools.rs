//! The spools that the journal is fed from.

use super::say;
use crate::journal::Journal;
use daemon_client::Reader;
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The journal, and the spools that it is fed from. Its lock is held for a batch at most: what is
/// in a spool is read without it.
pub(crate) struct Spools {
    pub(crate) journal: Journal,
    pub(super) spools: BTreeMap<String, Arc<Spool>>,
    directory: PathBuf,
    /// The last trouble; the same is told once.
    said: String,
}

/// The spool of a run. Whoever takes from it holds `open`, and then locks the journal.
pub(super) struct Spool {
    pub(super) uid: u32,
    /// `None` when it is not needed any more.
    open: Mutex<Option<Open>>,
}

/// Where a spool is taken from next.
pub(super) struct Open {
    pub(super) reader: Reader,
    pub(super) at: u64,
    pub(super) dropped: u64,
}

impl Spool {
    pub(super) fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is filled now.
    pub(super) fn end(&self) -> u64 {
        // One that cannot be asked cannot be read either, which is found out then.
        self.open().as_ref().map_or(0, |open| open.reader.end().unwrap_or(u64::MAX))
    }
}

/// Spools of a user, by run.
pub(super) type Own = VecDeque<(String, Arc<Spool>)>;

impl Spools {
    pub(crate) fn new(journal: Journal, directory: PathBuf) -> Self {
        Self { journal, spools: BTreeMap::new(), directory, said: String::new() }
    }

    pub(super) fn add(&mut self, run: &str, uid: u32, reader: Reader, at: u64) {
        let open = Mutex::new(Some(Open { reader, at, dropped: 0 }));
        self.spools.insert(run.to_owned(), Arc::new(Spool { uid, open }));
    }

    pub(super) fn path(&self, run: &str) -> PathBuf {
        self.directory.join(run)
    }

    /// The spools that are `wanted`, by user.
    pub(super) fn by_user(&self, wanted: impl Fn(&str, u32) -> bool) -> BTreeMap<u32, Own> {
        let mut users: BTreeMap<u32, Own> = BTreeMap::new();
        for (run, spool) in self.spools.iter().filter(|(run, spool)| wanted(run, spool.uid)) {
            users.entry(spool.uid).or_default().push_back((run.clone(), Arc::clone(spool)));
        }
        users
    }

    /// The spool is not needed any more.
    pub(super) fn remove(&mut self, run: &str) {
        self.spools.remove(run);
        // One that stays takes room, nothing else.
        let _ = std::fs::remove_file(self.path(run));
    }

    pub(super) fn rotate(&mut self) {
        if let Err(error) = self.journal.rotate() {
            self.tell(format!("the oldest records stay: {error}"));
        }
    }

    pub(super) fn tell(&mut self, trouble: String) {
        if trouble != self.said {
            say(format_args!("{trouble}"));
            self.said = trouble;
        }
    }
}
