//! Names that programs outside trust, where somebody is to be let change one.

use super::planted::{is_of_a_package, names, trusted};
use profile::{GuardLevel, GuardedName, host_trusted};
use std::path::Path;

/// Whether programs outside would execute what is written to `path`, or do what it says.
pub(crate) fn is_trusted_outside(path: &Path) -> bool {
    let (trees, files) = trusted();
    let (in_trees, alone) = (names(&trees), names(&files));
    let in_tree = path.ancestors().any(|top| in_trees.find(top, false).is_some());
    in_tree || alone.find(path, false).is_some()
}

/// Who outside would execute what is written to `path`, or do what it says, where a guard keeps its
/// name from being made or changed. Some names it keeps for files only.
pub(crate) fn guarded_for(path: &Path, is_file: bool) -> Option<&'static str> {
    let runs = |top: &Path, is_kept: &dyn Fn(GuardLevel) -> bool| {
        let kept: Vec<GuardedName> = host_trusted().filter(|name| is_kept(name.level)).collect();
        Some(kept[names(&kept).find(top, false)?].runs)
    };
    let is_of_project = !is_of_a_package(path);
    let is_tree = |level| match level {
        GuardLevel::Deny => is_of_project,
        level => level == GuardLevel::Always,
    };
    let in_tree = path.ancestors().find_map(|top| runs(top, &is_tree));
    let pointer = || runs(path, &|level| level == GuardLevel::Make).filter(|_| is_file);
    in_tree.or_else(pointer)
}
