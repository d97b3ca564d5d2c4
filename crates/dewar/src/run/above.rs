//! A workspace that is a part of something: of a project, whose top lies above it, or of a
//! repository of Git that lies elsewhere. It is out of reach, and programs that look for it say
//! that there is none.

use super::RunRequest;
use crate::{machine, shell::quoted};
use learn::Judge;
use monitor::visible;
use profile::{Compiled, Variables};
use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// What lies at the top of what is under version control.
const CONTROLLED: [&str; 3] = [".git", ".hg", ".svn"];

/// What else lies at the top of a project. A part of one may have its own.
const MARKS: [&str; 11] = [
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

/// That the run reaches a part of a project or of a repository only; of a project, where nobody
/// chose that by `--workspace`.
pub(super) fn notice(
    request: &RunRequest,
    compiled: &Compiled,
    variables: &Variables,
) -> Option<String> {
    if request.learning.is_some() {
        return None;
    }
    let is_out_of_reach = |path: &Path| {
        let rights = Judge::new(compiled).ok()?.rights(path, None);
        (!rights.read && !rights.list).then_some(())
    };
    if let Some(repository) = repository(&variables.workspace) {
        is_out_of_reach(&repository)?;
        if Judge::new(compiled).ok()?.withholds(&repository, None) {
            return None;
        }
        return Some(told_of_repository(&repository));
    }
    let nobody_chose = request.workspace.is_none();
    let (top, mark) = nobody_chose.then(|| project(&variables.workspace, &variables.home))??;
    is_out_of_reach(&top.join(mark))?;
    Some(told(&top, mark, &variables.workspace))
}

/// The repository that a worktree or a submodule of Git belongs to: `.git` is a file there, which
/// names it. An earlier run may have written that, so it has to be one.
fn repository(workspace: &Path) -> Option<PathBuf> {
    let text = machine::short_text(&workspace.join(".git"))?;
    let named = workspace.join(text.strip_prefix("gitdir: ")?.trim_end_matches('\n'));
    let real = named.canonicalize().ok()?;
    let above = real.parent().filter(|above| above.ends_with("worktrees"));
    let repository = above.and_then(Path::parent).unwrap_or(&real);
    let is_one = repository.join("HEAD").is_file()
        && ["objects", "refs"].iter().all(|name| repository.join(name).is_dir());
    is_one.then(|| repository.to_owned())
}

fn told_of_repository(repository: &Path) -> String {
    let shown = visible(&repository.to_string_lossy());
    format!(
        "the repository of this directory, {shown} by what its .git says, is out of reach, so Git finds none: a profile grants \
         it, by files.read = [\"{shown}\"] to look, by files.write to commit"
    )
}

fn told(top: &Path, mark: &str, workspace: &Path) -> String {
    let up = workspace.strip_prefix(top).map_or(0, |below| below.components().count());
    let option = match up {
        1..=3 => vec![".."; up].join("/"),
        _ => quoted(&visible(&top.to_string_lossy())),
    };
    format!(
        "{}, which holds {mark}, is out of reach: `dewar run -w {option}` takes in the whole project",
        visible(&top.to_string_lossy())
    )
}

/// The directory above `workspace`, of the same user and on the same file system, that holds a mark
/// of a project; where the workspace holds one itself, of version control; none where it holds such
/// a one. The home and what is above it are no project.
fn project(workspace: &Path, home: &Path) -> Option<(PathBuf, &'static str)> {
    let own = workspace.metadata().ok()?;
    if mark_in(workspace, &CONTROLLED).is_some() {
        return None;
    }
    let is_part = mark_in(workspace, &MARKS).is_some();
    let mark = |top: &Path| {
        let other = || if is_part { None } else { mark_in(top, &MARKS) };
        mark_in(top, &CONTROLLED).or_else(other)
    };
    let is_one = |top: &&Path| {
        let found = top.metadata();
        let is_own = found.is_ok_and(|it| (it.dev(), it.uid()) == (own.dev(), own.uid()));
        is_own && !home.starts_with(top) && !confine::PRIVATE.iter().any(|it| *top == Path::new(it))
    };
    let mut above = workspace.ancestors().skip(1).take_while(is_one);
    above.find_map(|top| Some((top.to_owned(), mark(top)?)))
}

fn mark_in(directory: &Path, marks: &[&'static str]) -> Option<&'static str> {
    marks.iter().copied().find(|mark| directory.join(mark).symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_repository_of_a_worktree_and_of_a_submodule_is_found() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let (tree, part) = (top.join("tree"), top.join("repo/part"));
        for directory in ["repo/.git/worktrees/tree", "repo/.git/modules/part"] {
            fs::create_dir_all(top.join(directory)).unwrap();
        }
        fs::create_dir_all(top.join(".ssh")).unwrap();
        for repository in ["repo/.git", "repo/.git/modules/part"] {
            let repository = top.join(repository);
            fs::write(repository.join("HEAD"), "ref: refs/heads/main\n").unwrap();
            fs::create_dir(repository.join("objects")).unwrap();
            fs::create_dir(repository.join("refs")).unwrap();
        }
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(&part).unwrap();
        assert_eq!(repository(&top.join("repo")), None);
        assert_eq!(repository(&tree), None);
        let gitdir = format!("gitdir: {}/repo/.git/worktrees/tree\n", top.display());
        fs::write(tree.join(".git"), gitdir).unwrap();
        assert_eq!(repository(&tree), Some(top.join("repo/.git")));
        fs::write(part.join(".git"), "gitdir: ../.git/modules/part\n").unwrap();
        assert_eq!(repository(&part), Some(top.join("repo/.git/modules/part")));
        // What is no repository, nobody is told to grant.
        for other in ["/no/such", "../../.ssh", "/"] {
            fs::write(part.join(".git"), format!("gitdir: {other}\n")).unwrap();
            assert_eq!(repository(&part), None, "{other}");
        }
        // Nobody waits for who writes there.
        fs::remove_file(part.join(".git")).unwrap();
        let kind = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, part.join(".git"), kind, mode, 0).unwrap();
        assert_eq!(repository(&part), None);
    }

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
        let far = Path::new("/r/$(touch x)");
        let said = told(far, ".git", &far.join("1/2/3/4"));
        assert!(said.contains("`dewar run -w '/r/$(touch x)'`"), "{said}");
        // A part with a mark of its own is a part all the same.
        fs::write(deep.join("Makefile"), "").unwrap();
        assert_eq!(project(&deep, home), Some((home.join("u/a"), ".git")));
        fs::remove_dir(home.join("u/a/.git")).unwrap();
        assert_eq!(project(&deep, home), None);
    }
}
