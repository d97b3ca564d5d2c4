//! A workspace that is a part of a project: what lies above it is out of reach, and programs that
//! look for it there say that there is none.

use super::RunRequest;
use learn::Judge;
use monitor::visible;
use profile::{Compiled, Variables};
use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// What lies at the top of a project.
const MARKS: [&str; 14] = [
    ".git",
    ".hg",
    ".svn",
    "Cargo.toml",
    "package.json",
    "go.mod",
    "pyproject.toml",
    "setup.py",
    "pom.xml",
    "build.gradle",
    "Gemfile",
    "composer.json",
    "CMakeLists.txt",
    "Makefile",
];

/// That the run reaches a part of a project only, where nobody chose that by `--workspace`.
pub(super) fn notice(
    request: &RunRequest,
    compiled: &Compiled,
    variables: &Variables,
) -> Option<String> {
    if request.workspace.is_some() || request.learning {
        return None;
    }
    let (top, mark) = project(&variables.workspace, &variables.home)?;
    let judge = Judge::new(compiled).ok()?;
    let rights = judge.rights(&top.join(mark), None);
    (!rights.read && !rights.list).then(|| told(&top, mark, &variables.workspace))
}

fn told(top: &Path, mark: &str, workspace: &Path) -> String {
    let up = workspace.strip_prefix(top).map_or(0, |below| below.components().count());
    let option = match up {
        1..=3 => vec![".."; up].join("/"),
        _ => visible(&top.to_string_lossy()),
    };
    format!(
        "{}, which holds {mark}, is out of reach: `dewar run -w {option}` takes in the whole project",
        visible(&top.to_string_lossy())
    )
}

/// The directory above `workspace`, of the same user and on the same file system, that holds a mark
/// of a project; none if the workspace holds one itself. The home and what is above it are no
/// project.
fn project(workspace: &Path, home: &Path) -> Option<(PathBuf, &'static str)> {
    let own = workspace.metadata().ok()?;
    if mark_in(workspace).is_some() {
        return None;
    }
    let is_one = |top: &&Path| {
        let found = top.metadata();
        let is_own = found.is_ok_and(|it| (it.dev(), it.uid()) == (own.dev(), own.uid()));
        is_own && !home.starts_with(top) && !confine::PRIVATE.iter().any(|it| *top == Path::new(it))
    };
    let mut above = workspace.ancestors().skip(1).take_while(is_one);
    above.find_map(|top| Some((top.to_owned(), mark_in(top)?)))
}

fn mark_in(directory: &Path) -> Option<&'static str> {
    MARKS.into_iter().find(|mark| directory.join(mark).symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_project_around_a_workspace_is_found_below_the_home_alone() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path();
        let deep = home.join("u/a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(home.join("package.json"), "").unwrap();
        assert_eq!(project(&deep, home), None);
        fs::write(home.join("u/Cargo.toml"), "").unwrap();
        assert_eq!(project(&deep, home), Some((home.join("u"), "Cargo.toml")));
        let said = told(&home.join("u"), "Cargo.toml", &deep);
        assert!(
            said.contains("holds Cargo.toml") && said.contains("`dewar run -w ../..`"),
            "{said}"
        );
        fs::create_dir(home.join("u/a/.git")).unwrap();
        assert_eq!(project(&deep, home), Some((home.join("u/a"), ".git")));
        assert_eq!(project(&home.join("u/a"), home), None);
        fs::write(deep.join("Makefile"), "").unwrap();
        assert_eq!(project(&deep, home), None);
    }
}
