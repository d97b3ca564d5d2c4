//! What is remembered of a file.

use super::Label;
use crate::{proof::Proof, status::Inode};
use flask::Sid;
use foldhash::quality::RandomState;
use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
};

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
pub(super) fn forget_most(seen: &mut HashMap<Inode, InodeEntry, RandomState>) {
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
