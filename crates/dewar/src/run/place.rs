//! Where a run is started: directories in which nothing starts, and why.

use super::RunRequest;
use crate::{failure::Usage, machine, output::tell};
use anyhow::{Context as _, bail};
use cli::output_file;
use confine::launch::EnterError;
use monitor::{RunError, visible};
use profile::{Compiled, Variables};
use realpath::RealPaths;
use std::path::{Path, PathBuf};

/// Why nothing was run, with the line of the profile that keeps the working directory back.
pub(super) fn told(error: RunError, compiled: &Compiled) -> anyhow::Error {
    if let RunError::View(EnterError::Cwd { path, .. }) = &error
        && let Some(origin) = compiled.keeps_back(path)
    {
        let path = visible(&path.to_string_lossy());
        return Usage(format!(
            "the working directory `{path}` is kept back by {} ({origin}): start in another, or change that line",
            compiled.name
        ))
        .into();
    }
    error.into()
}

/// Refuses directories that nobody means by starting in them: the root, where cron and service
/// managers start commands, and a directory that the run has for itself, in which nothing of the
/// caller's would be.
pub(super) fn insist(
    request: &RunRequest,
    variables: &Variables,
    has_view: bool,
) -> anyhow::Result<()> {
    let workspace = &variables.workspace;
    if workspace == Path::new("/") && request.workspace.is_none() {
        bail!(Usage(
            "the working directory is `/`, and the profile would grant all of it as the workspace: name the directory that the \
             command is about by --workspace (`--workspace /` for all), and change to it: --workspace does not"
                .into()
        ));
    }
    if request.no_home && variables.home.starts_with(workspace) {
        bail!(Usage(
            "the home, and what it lies in, is no project of an agent: start it in a directory of its own".into()
        ));
    }
    if has_view && confine::PRIVATE.iter().any(|private| workspace == Path::new(private)) {
        bail!(Usage(format!(
            "`{0}` cannot be the workspace: each run has a `{0}` of its own, which is empty and goes with it. Make a directory \
             in it and start there, or name another by --workspace",
            workspace.display()
        )));
    }
    Ok(())
}

/// Makes the directories that the profile wants to be there, as the user, before anything is
/// confined: a run could make none whose parent is left out. No link leads there that one has left
/// in the workspace, or below another of them.
pub(super) fn make_directories(compiled: &Compiled, workspace: &Path) -> anyhow::Result<()> {
    let mut near = vec![workspace];
    for path in &compiled.directories {
        if !near.iter().any(|above| path.starts_with(above)) {
            near.push(path);
        }
    }
    for path in compiled.directories.iter().filter(|path| !path.exists()) {
        output_file::make_directory(path, &near, 0o700).with_context(|| {
            format!("cannot make `{}`, which {} wants to be there", path.display(), compiled.name)
        })?;
    }
    Ok(())
}

/// What is there for the run, though policy does not grant it.
pub(super) fn shown(request: &RunRequest, variables: &Variables) -> Vec<PathBuf> {
    [links(request, variables), worktrees(variables)].concat()
}

/// The symbolic links by which the caller's environment and command line lead to the workspace and
/// to the home: programs are told these names, and write them down.
fn links(request: &RunRequest, variables: &Variables) -> Vec<PathBuf> {
    let paths = RealPaths::new();
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let here = variable("PWD");
    let named = request.workspace.as_ref().map(|path| here.join(path)).unwrap_or_default();
    let Variables { workspace, home, .. } = variables;
    let names = [(here, workspace), (named, workspace), (variable("HOME"), home)];
    let leads = |(name, to): &(PathBuf, &PathBuf)| {
        let is_another = name.is_absolute() && !name.starts_with(to);
        is_another && paths.resolve(name).is_ok_and(|real| real.starts_with(to))
    };
    let way = names.into_iter().filter(leads).flat_map(|(name, _)| realpath::way(&name));
    way.filter(|path| path.is_symlink()).collect()
}

/// Worktrees that are looked for.
const MOST_WORKTREES: usize = 64;

/// The `.git` of each worktree of the workspace's repository that lies outside: Git takes one that
/// is not there for one that was removed, and forgets it (`git gc`). That it is there can be seen,
/// and nothing else.
fn worktrees(variables: &Variables) -> Vec<PathBuf> {
    let workspace = &variables.workspace;
    let Ok(entries) = std::fs::read_dir(workspace.join(".git/worktrees")) else {
        return Vec::new();
    };
    let named = entries.flatten().take(MOST_WORKTREES).filter_map(|entry| {
        let text = machine::short_text(&entry.path().join("gitdir"))?;
        let path = PathBuf::from(text.trim_end_matches('\n'));
        let is_one = path.is_absolute() && path.ends_with(".git") && !path.starts_with(workspace);
        let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
        (is_one && is_file).then_some(path)
    });
    named.collect()
}

/// A workspace that holds the home is most likely the wrong directory to start in.
pub(super) fn warn_of_wide_workspace(variables: &Variables) {
    if variables.home.starts_with(&variables.workspace) {
        tell!(
            "dewar: WARNING: the workspace `{}` holds your whole home: what the profile grants in the workspace it grants in \
             all of it, but for what it hides. Start in the directory that the command is about, or name it by --workspace",
            variables.workspace.display()
        );
    }
    if is_of_system(&variables.workspace) {
        tell!(
            "dewar: WARNING: the workspace `{}` is the system's: what the profile grants in the workspace it grants there, as far \
             as you may yourself. Start in the directory that the command is about, or name it by --workspace",
            variables.workspace.display()
        );
    }
}

/// Whether a directory, or the one that it lies in, is one in which programs of the system, or the
/// homes of its users, lie.
fn is_of_system(workspace: &Path) -> bool {
    const TOPS: [&str; 10] = [
        "/etc",
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/boot",
        "/dev",
        "/var/lib",
        "/var/spool",
    ];
    const ALONE: [&str; 4] = ["/home", "/opt", "/var", "/usr/local"];
    let is_any = |path: &Path, all: &[&str]| all.iter().any(|it| path == Path::new(it));
    let is_src = workspace.ends_with("src");
    is_any(workspace, &TOPS)
        || is_any(workspace, &ALONE)
        || (workspace.parent().is_some_and(|above| is_any(above, &TOPS)) && !is_src)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_the_system_are_known_and_those_of_sources_are_none() {
        for system in ["/etc", "/etc/cron.d", "/usr", "/usr/bin", "/usr/local", "/home", "/dev"] {
            assert!(is_of_system(Path::new(system)), "{system}");
        }
        for other in
            ["/usr/src", "/usr/src/linux", "/usr/local/src/x", "/home/me", "/srv", "/opt/x"]
        {
            assert!(!is_of_system(Path::new(other)), "{other}");
        }
    }
}
