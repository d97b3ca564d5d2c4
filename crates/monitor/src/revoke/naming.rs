//! Files that whoever makes a change names.

use super::held::Comparison;
use crate::file::class_of;
use confine::file_kind;
use flask::{AccessVector, FileKind, FileRule, Sid};
use inode_labels::RuleChange;
use labelling::{BadRule, PathRules};
use rustix::{fs::FileType, io::Result};
use std::path::PathBuf;

/// What a change says of files by their names.
#[derive(Clone, Copy, Debug)]
pub enum ByName<'a> {
    /// Nothing.
    Nothing,
    /// It takes something of what these regular expressions match, over whole paths: what lies
    /// there by now is meant, wherever it lay when the sandbox met it.
    Takes(&'a [String]),
    /// It takes nothing, and gives what lies where it says by now.
    Gives,
}

/// The files that a change names.
pub(super) struct NamedFiles {
    taken: Option<PathRules>,
    pub(super) change: RuleChange,
}

impl NamedFiles {
    pub(super) fn new(named: ByName<'_>) -> std::result::Result<Self, BadRule> {
        let taken = if let ByName::Takes(regexes) = named { regexes } else { &[] };
        let rule = |path: &String| FileRule { path: path.clone(), kind: FileKind::Any, sid: None };
        let rules = taken.iter().map(rule).collect::<Vec<_>>();
        let taken = (!rules.is_empty()).then(|| PathRules::new(&rules)).transpose()?;
        let change = match named {
            ByName::Gives => RuleChange::Gives,
            ByName::Nothing | ByName::Takes(_) => RuleChange::MayTake,
        };
        Ok(Self { taken, change })
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
