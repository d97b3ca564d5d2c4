//! Files that whoever makes a change names.

use super::held::{Comparison, WATCHED};
use confine::file_kind;
use file_manager::class_of;
use flask::{AccessVector, Class, FileKind, FileRule, Sid, perm};
use inode_labels::RuleChange;
use labelling::{BadRule, PathRules, stem_dir};
use rustix::{fs::FileType, io::Result};
use std::path::{Path, PathBuf};

/// What a change says of files by their names.
#[derive(Clone, Copy, Debug)]
pub enum ByName<'a> {
    /// Nothing.
    Nothing,
    /// It takes something of what these regular expressions match, over whole paths: what lies
    /// there by now is meant, wherever it lay when the sandbox met it.
    Takes(&'a [String]),
    /// It takes nothing, and gives what lies by now where these say.
    Gives(&'a [String]),
}

/// The files that a change names.
pub(super) struct NamedFiles {
    taken: Option<PathRules>,
    given: Option<PathRules>,
    /// The directories that what is given lies in.
    stems: Vec<PathBuf>,
    pub(super) change: RuleChange,
    /// It takes something that is no file.
    pub(super) takes_others: bool,
}

impl NamedFiles {
    pub(super) fn new(named: ByName<'_>) -> std::result::Result<Self, BadRule> {
        let rule = |path: &String| FileRule { path: path.clone(), kind: FileKind::Any, sid: None };
        let rules = |regexes: &[String]| {
            let rules: Vec<FileRule> = regexes.iter().map(rule).collect();
            (!rules.is_empty()).then(|| PathRules::new(&rules)).transpose()
        };
        let (taken, given): (&[String], &[String]) = match named {
            ByName::Nothing => (&[], &[]),
            ByName::Takes(taken) => (taken, &[]),
            ByName::Gives(given) => (&[], given),
        };
        let change = match named {
            ByName::Gives(_) => RuleChange::Gives,
            ByName::Nothing | ByName::Takes(_) => RuleChange::MayTake,
        };
        let takes_others = matches!(named, ByName::Takes([]));
        let stems = given.iter().map(|regex| stem_dir(regex)).collect();
        Ok(Self { taken: rules(taken)?, given: rules(given)?, stems, change, takes_others })
    }

    /// What of what passed once it takes, where policy does not grant it: everything, if it takes
    /// something that is no file. Else what does not tell where it lies: watches, and connections
    /// to sockets. Files tell (`denied_by_name`).
    pub(super) fn meant_of_once(&self, class: Class) -> AccessVector {
        match class {
            _ if self.takes_others => AccessVector::ALL,
            _ if self.taken.is_none() => AccessVector::NONE,
            Class::UnixStreamSocket | Class::UnixDgramSocket => AccessVector::ALL,
            class if WATCHED.contains(&class) => perm::file::WATCH,
            _ => AccessVector::NONE,
        }
    }

    /// Whether it gives something at `path`, or by a pattern in it.
    pub(super) fn gives_at(&self, path: &Path) -> bool {
        let given = self.given.as_ref();
        given.is_some_and(|given| given.rule(path, FileKind::Any).is_some())
            || self.stems.iter().any(|stem| stem == path)
    }
}

impl Comparison<'_> {
    /// What `ssid` may not do to files where the one at `path` lies, if the change names that: its
    /// label is that of where it was met, and somebody outside may have renamed it since. Whoever
    /// names a file means what lies there.
    pub(super) fn denied_by_name(
        &self,
        ssid: Option<Sid>,
        kind: FileType,
        path: impl FnOnce() -> Result<PathBuf>,
    ) -> AccessVector {
        let Some(taken) = &self.named.taken else { return AccessVector::NONE };
        let Ok(path) = path() else { return AccessVector::NONE };
        if taken.rule(&path, FileKind::Any).is_none() {
            return AccessVector::NONE;
        }
        let here = self.gate.state.labels.of_path(&path, file_kind(kind));
        self.denied(ssid, here, class_of(kind))
    }
}
