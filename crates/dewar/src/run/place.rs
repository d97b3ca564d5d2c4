//! Where a run is started: directories in which nothing starts, and why.

use super::RunRequest;
use crate::{failure::Usage, output::tell};
use anyhow::bail;
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
    if has_view && confine::PRIVATE.iter().any(|private| workspace == Path::new(private)) {
        bail!(Usage(format!(
            "`{0}` cannot be the workspace: each run has a `{0}` of its own, which is empty and goes with it. Make a directory \
             in it and start there, or name another by --workspace",
            workspace.display()
        )));
    }
    Ok(())
}

/// The symbolic links by which the caller's environment and command line lead to the workspace and
/// to the home: programs are told these names, and write them down.
pub(super) fn links(request: &RunRequest, variables: &Variables) -> Vec<PathBuf> {
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

/// A workspace that holds the home is most likely the wrong directory to start in.
pub(super) fn warn_of_wide_workspace(variables: &Variables) {
    if variables.home.starts_with(&variables.workspace) {
        tell!(
            "dewar: WARNING: the workspace `{}` holds your whole home: what the profile grants in the workspace it grants in \
             all of it, but for what it hides. Start in the directory that the command is about, or name it by --workspace",
            variables.workspace.display()
        );
    }
}
