//! Files with several names: what rules say of each counts.

use super::{
    Label, Labels, RuleChange,
    entry::{InodeEntry, Pinned},
};
use crate::{
    proof::Proof,
    status::{FileRef, Inode, Status},
};
use confine::file_kind;
use flask::FileKind;
use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, MutexGuard, PoisonError},
};

impl Labels {
    /// Labels a file by the rules for `path`; of a file with several names, remembers that rules
    /// have spoken of this one, and has what they say of it count beside what they say of others.
    pub fn relabel(&self, status: &Status, file: FileRef<'_>, path: &Path, has_other_names: bool) {
        let Ok(label) = self.of_file(status, file, || Ok(path.to_owned())) else { return };
        if has_other_names
            && let Some(inode) = status.inode()
            && let Some(proof) = Proof::of(status, file, &self.kept_alive, true)
        {
            let label = self.with_place(label, path, file_kind(status.kind));
            let mut names = self.names(status, file);
            names.insert(path.to_owned());
            self.insert(status, file, &label, true);
            self.pinned().insert(inode, Pinned { entry: InodeEntry { label, proof }, names });
        }
    }

    /// A label with that of `path` beside it, if that is another, and not just given.
    fn with_place(&self, label: Arc<Label>, path: &Path, kind: FileKind) -> Arc<Label> {
        let place = self.of_path(path, kind);
        let gives = self.rules.load().change == RuleChange::Gives;
        if gives || label.sid == place || label.also.contains(&place) {
            return label;
        }
        let also = label.also.iter().copied().chain([place]).collect();
        let before = label.before;
        Arc::new(Label { before, also, ..Label::new(label.sid, Arc::clone(&label.rules)) })
    }

    /// What the last change has given by one name is given as far as the others say.
    pub(super) fn forget_given_names(&self) {
        let mut left = Vec::new();
        let pinned = std::mem::take(&mut *self.pinned());
        for (inode, mut file) in pinned {
            let count = file.names.len();
            file.names.retain(|name| !self.has_changed(name, FileKind::File));
            if file.names.len() < count {
                self.lock().remove(&inode);
                let label = self.by_names(&file.names, &file.entry.label);
                // Without another name, it is as if it had never been met.
                let Some(label) = label else { continue };
                file.entry.label = label;
            }
            left.push((inode, file));
        }
        self.pinned().extend(left);
    }

    /// What the rules in force say of a file by all of `names`, that was labelled `old`.
    fn by_names(&self, names: &BTreeSet<PathBuf>, old: &Label) -> Option<Arc<Label>> {
        let mut all = names.iter().map(|name| self.of_path(name, FileKind::File));
        let sid = all.next()?;
        let also = all.filter(|other| *other != sid).collect::<BTreeSet<_>>().into_iter().collect();
        Some(Arc::new(Label { before: old.sid, also, ..Label::new(sid, self.newest()) }))
    }

    /// The names of the file by which rules have spoken of it.
    pub(super) fn names(&self, status: &Status, file: FileRef<'_>) -> BTreeSet<PathBuf> {
        let pinned = self.pinned();
        let pinned = status.inode().and_then(|inode| pinned.get(&inode));
        // Not those of one that is gone, and had its number.
        let own = pinned.filter(|it| it.entry.proof.renewed(status, file).is_some());
        own.map(|it| it.names.clone()).unwrap_or_default()
    }

    pub(super) fn pinned(&self) -> MutexGuard<'_, HashMap<Inode, Pinned>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
