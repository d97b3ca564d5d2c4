//! Files that whoever makes a change names.

use super::held::Comparison;
use crate::file::class_of;
use confine::file_kind;
use flask::{AccessVector, FileKind, FileRule, Sid};
use labelling::{BadRule, PathRules};
use rustix::{fs::FileType, io::Result};
use std::path::PathBuf;

/// Patterns of paths, if there are any.
pub(super) struct NamedFiles(Option<PathRules>);

impl NamedFiles {
    /// What one of `regexes` matches, over whole paths.
    pub(super) fn new(regexes: &[String]) -> std::result::Result<Self, BadRule> {
        let rule = |path: &String| FileRule { path: path.clone(), kind: FileKind::Any, sid: None };
        let rules = regexes.iter().map(rule).collect::<Vec<_>>();
        (!rules.is_empty()).then(|| PathRules::new(&rules)).transpose().map(Self)
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
        let NamedFiles(Some(named)) = &self.named else { return AccessVector::NONE };
        let Ok(path) = path() else { return AccessVector::NONE };
        if named.rule(&path, FileKind::Any).is_none() {
            return AccessVector::NONE;
        }
        let here = self.gate.state.labels.of_path(&path, file_kind(kind));
        self.denied(ssid, here, class_of(kind))
    }
}
