//! Labels of files: by rule when an inode is first met, afterwards with the inode.

mod entry;
mod making;
mod names;
mod private;

use entry::{Pinned, Seen};
use making::InMaking;
pub use making::Making;
pub use private::Private;

use crate::{
    proof::KeptAlive,
    repository::known_as,
    status::{FileRef, Inode, Status},
};
use arc_swap::ArcSwap;
use avc::Hint;
use confine::file_kind;
use flask::{FileKind, InitialSid, Sid};
use labelling::{PathRules, Tree};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// A labelled object, and where the last answer about it lies.
#[derive(Debug)]
pub struct Label {
    /// The label.
    pub sid: Sid,
    /// Where the last answer about it lies.
    pub hint: Hint,
    /// What it was before the last change of the labelling rules.
    before: Sid,
    /// Other labels that count as well.
    also: Box<[Sid]>,
    /// It is just what the rules say of where the object lay.
    is_by_place: bool,
    /// The labelling rules in force when it was given.
    rules: Arc<PathRules>,
}

impl Label {
    /// A label that was no other before, has none beside it, and is not known to be just what
    /// `rules`, those in force, say of a place.
    fn new(sid: Sid, rules: Arc<PathRules>) -> Self {
        let (hint, also) = (Hint::default(), Box::default());
        Self { sid, hint, before: sid, also, is_by_place: false, rules }
    }

    /// What it was before the last change of the labelling rules.
    pub fn before(&self) -> Sid {
        self.before
    }

    /// Other labels that it has, of where it was met or by other names: nothing may be done to it
    /// that is not granted on each.
    pub fn also(&self) -> &[Sid] {
        &self.also
    }

    /// Whether it is just what the rules said of where the object lay when it was given.
    pub fn is_by_place(&self) -> bool {
        self.is_by_place
    }

    /// What counts beside a newer label of the file, which lies where the rules said `then` when
    /// this label was given: they are about it anew, if `is_anew`. `has_other`: they have spoken of
    /// another name of it.
    fn beside(&self, then: Sid, is_anew: bool, has_other: bool) -> BTreeSet<Sid> {
        // Else it has come from elsewhere.
        let is_by_rule = then == self.sid;
        let stays = is_anew && (!is_by_rule || has_other);
        self.also.iter().copied().chain(stays.then_some(self.sid)).collect()
    }

    /// The same object, as a subject sees it to whom it is labelled `sid`: to such a subject, that
    /// is not just what rules say of where it lies, even if this label was.
    pub fn relabelled(&self, sid: Sid) -> Self {
        let new = Self::new(sid, Arc::clone(&self.rules));
        Self { before: self.before, also: self.also.clone(), ..new }
    }
}

/// The labelling rules in force, and those before the last change, or before the first one after
/// which not all files were labelled anew. Older ones live as long as labels that they gave.
#[derive(Debug)]
struct Rules {
    before: Arc<PathRules>,
    now: Arc<PathRules>,
    /// What the last change was.
    change: RuleChange,
    /// Labels of places of which it has taken something without another labelling rule.
    taken: HashSet<Sid>,
}

/// What a change of the labelling rules does by the names in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleChange {
    /// Somebody gives what lies there by now, and takes nothing.
    Gives,
    /// Anything: what was taken by one name stays taken.
    MayTake,
}

/// The label of every file seen. Bounded: beyond 100,000 inodes those with the label that most have
/// start anew from the rules. What a policy keeps from a subject is seldom what most of it is.
///
/// When the rules change, a file keeps its label unless old and new rules differ for the place
/// where it lies. What was met elsewhere, and renamed, and what has several names of which rules
/// have spoken, keeps the other label beside that: who takes something by one name gives nothing
/// that was taken by another. Only who gives something by a name means what lies there, whatever it
/// was, as far as no rule speaks of another name.
#[derive(Debug)]
pub struct Labels {
    rules: ArcSwap<Rules>,
    seen: Mutex<Seen>,
    /// Files with several names, and those that changes of rules have labelled them by.
    pinned: Mutex<HashMap<Inode, Pinned>>,
    has_forgotten: AtomicBool,
    /// Devices of files that nothing would have told from later ones, so that they were not
    /// remembered.
    untold: Mutex<HashSet<(u32, u32)>>,
    /// Where files lie that changes were about and that have not been labelled anew.
    unfinished: Mutex<Vec<Tree>>,
    private: Private,
    kept_alive: KeptAlive,
    in_making: InMaking,
}

impl Labels {
    /// About 8 MiB of labels.
    const MOST: usize = 100_000;

    /// No file is known yet; these rules hold.
    pub fn new(rules: PathRules) -> Self {
        let now = Arc::new(rules);
        let (before, change) = (Arc::clone(&now), RuleChange::MayTake);
        let rules = Rules { before, now, change, taken: HashSet::new() };
        let rules = ArcSwap::from_pointee(rules);
        let has_forgotten = AtomicBool::new(false);
        let private = Private::default();
        let (seen, pinned, untold, unfinished, kept_alive, in_making) = Default::default();
        Self {
            rules,
            seen,
            pinned,
            has_forgotten,
            untold,
            unfinished,
            private,
            kept_alive,
            in_making,
        }
    }

    /// The same, in a view with directories of its own.
    pub fn in_view(self, private: Private) -> Self {
        Self { private, ..self }
    }

    /// From now on these rules hold. What lies where they say one of `taken` has lost something by
    /// that, and is labelled as if another rule were about it.
    ///
    /// As long as files are [`unfinished`](Self::unfinished), earlier changes are a part of this
    /// one, and it gives nothing by names.
    pub fn change(&self, rules: PathRules, change: RuleChange, mut taken: HashSet<Sid>) {
        let (mut change, mut before, now) = (change, self.newest(), Arc::new(rules));
        if !self.unfinished().is_empty() {
            let last = self.rules.load();
            (change, before) = (RuleChange::MayTake, Arc::clone(&last.before));
            taken.extend(&last.taken);
        }
        self.rules.store(Arc::new(Rules { before, now, change, taken }));
        if change == RuleChange::Gives {
            self.forget_given_names();
        }
    }

    /// Where files lie that a change was about and that have not been labelled anew.
    pub fn unfinished(&self) -> Vec<Tree> {
        self.unfinished.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers that files in `trees`, and nowhere else, are still to be labelled anew.
    pub fn leave_unfinished(&self, trees: Vec<Tree>) {
        *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner) = trees;
    }

    /// The label of a file: its inode's, or, for an inode not met before, that of its path, which
    /// `path` finds out.
    pub fn of_file(
        &self,
        status: &Status,
        file: FileRef<'_>,
        path: impl FnOnce() -> rustix::io::Result<PathBuf>,
    ) -> rustix::io::Result<Arc<Label>> {
        let is_now = |it: &Arc<Label>| Arc::ptr_eq(&it.rules, &self.rules.load().now);
        if let Some(label) = self.known(status, file).filter(is_now) {
            return Ok(label);
        }
        let path = path()?;
        loop {
            let before = self.remembered(status);
            let known = self.known(status, file);
            if let Some(label) = known.clone().filter(is_now) {
                return Ok(label);
            }
            let label = self.by_path(known.as_deref(), status, file, &path);
            // Else it has got one meanwhile, of who has made it.
            if self.insert_after(status, file, &label, before.as_ref()) {
                return Ok(label);
            }
        }
    }

    /// The label of a file that lies at `path`, and has none of the rules in force yet.
    fn by_path(
        &self,
        known: Option<&Label>,
        status: &Status,
        file: FileRef<'_>,
        path: &Path,
    ) -> Arc<Label> {
        let label = if self.private.replaces(path, status.device) {
            // No rule is about it.
            self.label(InitialSid::File.into())
        } else {
            let has_other = self.names(status, file).iter().any(|name| name != path);
            self.renewed_by(known, has_other, path, file_kind(status.kind))
        };
        if let Some(inode) = status.inode().filter(|_| known.is_some())
            && let Some(pinned) = self.pinned().get_mut(&inode)
        {
            pinned.entry.label = Arc::clone(&label);
        }
        label
    }

    /// The label, under the rules in force, of a file that lies at `path` and had the label
    /// `known`.
    pub fn renewed(&self, known: Option<&Label>, path: &Path, kind: FileKind) -> Arc<Label> {
        self.renewed_by(known, false, path, kind)
    }

    /// The same; `has_other`: rules have spoken of the file by another name.
    fn renewed_by(
        &self,
        known: Option<&Label>,
        has_other: bool,
        path: &Path,
        kind: FileKind,
    ) -> Arc<Label> {
        let rules = self.rules.load();
        // The rules know a repository by the name of its directory; Git does not.
        let named = known_as(path);
        let by_rule =
            |rules: &PathRules| rules.sid_by_names(path, named.as_deref().unwrap_or(path), kind);
        let kept_or_by_rule = |rules: &PathRules| match known {
            Some(old) if by_rule(&old.rules) == by_rule(rules) => old.sid,
            _ => by_rule(rules),
        };
        let (place, before) = (by_rule(&rules.now), kept_or_by_rule(&rules.before));
        let is_taken = rules.taken.contains(&place);
        let sid = if is_taken { place } else { kept_or_by_rule(&rules.now) };
        let gives = || rules.change == RuleChange::Gives && by_rule(&rules.before) != place;
        let is_meant = !has_other && gives();
        // What is about sockets, links and devices is asked by their place alone.
        let is_asked_by_label = matches!(kind, FileKind::File | FileKind::Dir | FileKind::Pipe);
        let mut also = match known {
            Some(old) if is_asked_by_label && !is_meant => {
                let then = by_rule(&old.rules);
                old.beside(then, is_taken || then != place, has_other)
            }
            _ => BTreeSet::new(),
        };
        also.remove(&sid);
        let also: Box<[Sid]> = also.into_iter().collect();
        let is_by_place = sid == place && also.is_empty();
        Arc::new(Label { before, also, is_by_place, ..Label::new(sid, Arc::clone(&rules.now)) })
    }

    /// A label that was given, as of the last change of rules; see [`Labels::renewed`].
    pub fn renewed_if_old(&self, label: Arc<Label>, path: &Path, kind: FileKind) -> Arc<Label> {
        let is_new = Arc::ptr_eq(&label.rules, &self.rules.load().now);
        if is_new { label } else { self.renewed(Some(&label), path, kind) }
    }

    /// The label of a file that is known by a former place only.
    pub fn at_path(&self, path: &Path) -> Arc<Label> {
        self.renewed(None, path, FileKind::File)
    }

    /// As [`Labels::of_path`], before the last change of rules.
    pub fn of_path_before(&self, path: &Path, kind: FileKind) -> Sid {
        self.rules.load().before.sid(path, kind)
    }

    /// Whether the last change of rules gave files at `path` another label, or took something of
    /// theirs.
    pub fn has_changed(&self, path: &Path, kind: FileKind) -> bool {
        let now = self.of_path(path, kind);
        now != self.of_path_before(path, kind) || self.rules.load().taken.contains(&now)
    }

    /// The labels of the files with a number, also of those that are gone: of those on `device`, or
    /// of all, as file systems with several devices do not say the same one everywhere.
    pub fn by_number(&self, device: (u32, u32), number: u64) -> Vec<Arc<Label>> {
        let seen = self.lock();
        let all = seen.iter().filter(|(it, _)| it.number == number);
        let (here, elsewhere): (Vec<_>, Vec<_>) = all.partition(|(it, _)| it.device == device);
        let found = if here.is_empty() { elsewhere } else { here };
        found.into_iter().map(|(_, entry)| Arc::clone(&entry.label)).collect()
    }

    /// Whether a file with a number may have a label that [`Labels::by_number`] does not tell:
    /// none with that number is remembered, or none there, where not all are.
    pub fn may_have_another(&self, device: (u32, u32), number: u64) -> bool {
        let seen = self.lock();
        let mut all = seen.keys().filter(|it| it.number == number).peekable();
        let is_unknown = all.peek().is_none();
        let may_miss = self.has_forgotten() || self.untold().contains(&device);
        is_unknown || may_miss && all.all(|it| it.device != device)
    }

    /// Whether more files were seen than are remembered.
    pub fn has_forgotten(&self) -> bool {
        self.has_forgotten.load(Ordering::Acquire)
    }

    /// The label that a file at `path` would have if it were first met there.
    pub fn of_path(&self, path: &Path, kind: FileKind) -> Sid {
        self.newest().sid(path, kind)
    }

    /// The same for a file that a program outside would know as `named`; see
    /// [`PathRules::sid_by_names`].
    pub fn of_path_by_names(&self, path: &Path, named: &Path, kind: FileKind) -> Sid {
        self.newest().sid_by_names(path, named, kind)
    }

    /// Whether a directory may move; see [`PathRules::agree`].
    pub fn agree(&self, from: &Path, to: &Path) -> bool {
        self.newest().agree(from, to)
    }

    /// See [`PathRules::is_even_below`].
    pub fn is_even_below(&self, dir: &Path) -> bool {
        self.newest().is_even_below(dir)
    }

    /// Gives a file that the sandbox has just created the label that the security server computed
    /// for it.
    pub fn created(&self, status: &Status, file: FileRef<'_>, sid: Sid) {
        self.insert(status, file, &self.label(sid), true);
    }

    /// Lets go of files that were kept alive for long enough. To be called now and then.
    pub fn let_go(&self) {
        self.kept_alive.let_go();
    }

    fn newest(&self) -> Arc<PathRules> {
        Arc::clone(&self.rules.load().now)
    }

    fn label(&self, sid: Sid) -> Arc<Label> {
        Arc::new(Label::new(sid, self.newest()))
    }
}

#[cfg(test)]
mod tests;
