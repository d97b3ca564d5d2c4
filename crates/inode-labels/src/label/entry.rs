//! What is remembered of a file.

use super::{Label, Labels};
use crate::{
    proof::Proof,
    status::{FileRef, Inode, Status},
};
use flask::Sid;
use foldhash::quality::RandomState;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
};

/// The entries of all files seen.
pub(super) type Seen = HashMap<Inode, InodeEntry, RandomState>;

/// The label of an inode, and what tells it from later ones with its number.
#[derive(Clone, Debug)]
pub(super) struct InodeEntry {
    pub(super) label: Arc<Label>,
    pub(super) proof: Proof,
}

/// A file with several names, some of which rules have spoken of.
#[derive(Debug)]
pub(super) struct Pinned {
    pub(super) entry: InodeEntry,
    pub(super) names: BTreeSet<PathBuf>,
}

/// Forgets the label that most of the files have: those first that have no other beside it.
pub(super) fn forget_most(seen: &mut Seen) {
    let is_plain = |entry: &InodeEntry| entry.label.also().is_empty();
    let only_plain = seen.values().any(is_plain);
    let counts = |entry: &InodeEntry| !only_plain || is_plain(entry);
    let mut labels: HashMap<Sid, usize> = HashMap::new();
    for entry in seen.values().filter(|entry| counts(entry)) {
        *labels.entry(entry.label.sid).or_default() += 1;
    }
    let most = labels.into_iter().max_by_key(|(_, count)| *count).map(|(sid, _)| sid);
    seen.retain(|_, entry| !counts(entry) || Some(entry.label.sid) != most);
}

impl InodeEntry {
    /// What has proven to be about the same file is proven by `proof` from now on.
    pub(super) fn renew(&mut self, label: &Arc<Label>, proof: Proof) {
        if Arc::ptr_eq(&self.label, label) {
            self.proof = proof;
        }
    }
}

impl Labels {
    /// The label that the file was given, if it is certainly this one.
    pub(super) fn known(&self, status: &Status, file: FileRef<'_>) -> Option<Arc<Label>> {
        let inode = status.inode()?;
        let pinned = self.pinned().get(&inode).map(|it| it.entry.clone());
        if let Some(InodeEntry { label, proof }) = pinned
            && let Some(proof) = proof.renewed(status, file)
        {
            if let Some(it) = self.pinned().get_mut(&inode) {
                it.entry.renew(&label, proof);
            }
            return Some(label);
        }
        let InodeEntry { label, proof } = self.lock().get(&inode).cloned()?;
        if proof != Proof::Unique {
            let proof = proof.renewed(status, file)?;
            if let Some(entry) = self.lock().get_mut(&inode) {
                entry.renew(&label, proof);
            }
        }
        Some(label)
    }

    /// Remembers the label, unless nothing would tell the file from later ones with its number.
    pub(super) fn insert(
        &self,
        status: &Status,
        file: FileRef<'_>,
        label: &Arc<Label>,
        may_wait: bool,
    ) {
        let Some((inode, proof)) = self.proof(status, file, may_wait) else { return };
        self.remember(inode, InodeEntry { label: Arc::clone(label), proof });
    }

    /// What would tell the file from later ones with its number, if something does.
    fn proof(&self, status: &Status, file: FileRef<'_>, may_wait: bool) -> Option<(Inode, Proof)> {
        let of = |inode| Some((inode, Proof::of(status, file, &self.kept_alive, may_wait)?));
        let found = status.inode().and_then(of);
        if found.is_none() {
            self.untold().insert(status.device);
        }
        found
    }

    /// The devices of files that were not remembered.
    pub(super) fn untold(&self) -> MutexGuard<'_, HashSet<(u32, u32)>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, if what is remembered still is `before`; `false` if not.
    pub(super) fn insert_after(
        &self,
        status: &Status,
        file: FileRef<'_>,
        label: &Arc<Label>,
        before: Option<&Arc<Label>>,
    ) -> bool {
        let Some((inode, proof)) = self.proof(status, file, false) else { return true };
        let mut seen = self.lock();
        let now = seen.get(&inode).map(|it| Arc::as_ptr(&it.label));
        let stands = now == before.map(Arc::as_ptr);
        if stands {
            self.put(&mut seen, inode, InodeEntry { label: Arc::clone(label), proof });
        }
        stands
    }

    /// What is remembered of the inode, whichever file that was.
    pub(super) fn remembered(&self, status: &Status) -> Option<Arc<Label>> {
        self.lock().get(&status.inode()?).map(|it| Arc::clone(&it.label))
    }

    pub(super) fn remember(&self, inode: Inode, entry: InodeEntry) {
        self.put(&mut self.lock(), inode, entry);
    }

    fn put(&self, seen: &mut Seen, inode: Inode, entry: InodeEntry) {
        if seen.len() >= Self::MOST {
            forget_most(seen);
            self.has_forgotten.store(true, Ordering::Release);
        }
        seen.insert(inode, entry);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
