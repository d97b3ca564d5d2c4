//! Names that programs outside trust, where somebody is to be let change one.

use super::planted::{is_of_a_package, names, trusted};
use crate::machine;
use learn::Scope;
use profile::{GuardLevel, GuardedName, host_trusted};
use std::path::Path;

/// Whether programs outside would execute what is written to `path`, or do what it says.
pub(crate) fn is_trusted_outside(path: &Path, scope: &Scope) -> bool {
    let (trees, files) = trusted();
    let (in_trees, alone) = (names(&trees), names(&files));
    let in_tree = path.ancestors().any(|top| in_trees.find(top, false).is_some());
    in_tree || alone.find(path, false).is_some() || executed_for(path, true, scope).is_some()
}

/// The same where a guard keeps its name from being made or changed, or, outside of the workspace,
/// tells of it at once: names of homes, places where programs look, `PATH`.
pub(crate) fn executed_for(path: &Path, is_file: bool, scope: &Scope) -> Option<&'static str> {
    let of_home = || {
        let homes: Vec<GuardedName> =
            host_trusted().filter(|name| name.level == GuardLevel::Home).collect();
        let known = names(&homes);
        let at = path.ancestors().find_map(|top| known.find(top, false))?;
        Some(homes[at].runs)
    };
    let by_path = || {
        let searched = std::env::var_os("PATH")?;
        let mut searched = std::env::split_paths(&searched).filter(|place| place.is_absolute());
        let is_there = searched.any(|place| path.starts_with(machine::real(&place)));
        is_there.then_some("whoever calls it by its name: it is in PATH")
    };
    let outside = !path.starts_with(&scope.workspace);
    let by_place = || of_home().or_else(|| scope.executes(path)).or_else(by_path);
    guarded_for(path, is_file).or_else(|| outside.then(by_place).flatten())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outside_of_the_workspace_what_a_home_has_executed_counts_as_guarded() {
        let scope =
            Scope { home: "/home/me".into(), workspace: "/home/me/w".into(), ..Scope::default() };
        let is_guarded = |path: &str| executed_for(Path::new(path), true, &scope).is_some();
        for name in [
            ".bash_login",
            ".zlogout",
            ".xsessionrc",
            ".inputrc",
            ".emacs",
            ".gitconfig",
            ".tmux.conf",
            ".config/kitty/kitty.conf",
            ".config/starship.toml",
            ".ipython/profile_default/startup/x.py",
            ".local/bin/ls",
            ".local/lib/python3.11/site-packages/x.pth",
            ".local/share/nautilus/scripts/x",
            "x.desktop",
        ] {
            assert!(is_guarded(&format!("/home/me/{name}")), "{name}");
            assert!(!is_guarded(&format!("/home/me/w/{name}")), "{name}");
        }
        for name in ["notes.txt", ".config/foo", "other/Makefile", ".local/share/x"] {
            assert!(!is_guarded(&format!("/home/me/{name}")), "{name}");
        }
        assert!(is_guarded("/home/me/w/.git/hooks/x"));
    }

    #[test]
    fn names_that_programs_look_for_in_their_working_directory_are_told() {
        for name in [
            "jupyter_server_config.py",
            "ipython_config.py",
            "app.pro.user",
            "nbproject/project.xml",
            "x.kdev4",
            "tsconfig.json",
            "node_modules/typescript/lib/tsserver.js",
            ".svn/wc.db",
            ".releaserc.js",
            "Earthfile",
            ".moon/tasks.yml",
        ] {
            let path = Path::new("/w").join(name);
            assert!(is_trusted_outside(&path, &Scope::default()), "{name}");
        }
    }
}
