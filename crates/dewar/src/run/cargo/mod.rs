//! What a project's configuration has Cargo do where Cargo alone fills `~/.cargo` (profile
//! `cargo`): by an alias in the place of a subcommand, or a place for what it builds, it would be
//! led to write over sources there.

mod below;
mod config;
mod mischief;

use crate::{failure::Usage, output::tell};
use anyhow::bail;
use config::{Config, Unread};
use mischief::Project;
use monitor::visible;
use profile::{Compiled, Documents, Variables};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// The domain that may fill it.
const DOMAIN: &str = "cargo";

/// So many files below the workspace are named.
const MOST_TOLD: usize = 4;

/// Refuses to run where the project's configuration leads Cargo into `~/.cargo`; keeps the run from
/// changing the files that say so. Below the workspace, where a command may go, what leads there is
/// read by nobody. `documents` are `compiled` so far.
pub(super) fn insist(
    compiled: Compiled,
    documents: &Documents,
    variables: &mut Variables,
    tells: bool,
) -> anyhow::Result<Compiled> {
    if !compiled.domains.iter().any(|domain| domain.name == DOMAIN) {
        return Ok(compiled);
    }
    let workspace = variables.workspace.clone();
    let here = std::env::current_dir().unwrap_or_else(|_| workspace.clone());
    let home = end_of(&variables.home.join(".cargo"));
    let directories: HashSet<&Path> = here.ancestors().chain(workspace.ancestors()).collect();
    let (mut looked, mut configs) = (HashSet::new(), Vec::new());
    for directory in directories.into_iter().map(|directory| directory.join(".cargo")) {
        if end_of(&directory) != home {
            let read = config::read_all(&directory, &mut looked, &mut configs);
            read.map_err(|unread| Usage(refused(&unread)))?;
        }
    }
    let inside = looked.iter().filter(|file| file.starts_with(&workspace));
    variables.fixed.extend(inside.flat_map(|file| realpath::way(file)));
    let below = below::Below::of(&workspace, &home, &mut looked);
    let aliases = configs.iter().chain(&below.configs).flat_map(Config::aliases);
    let aliases: HashSet<String> = aliases.map(|(name, _)| name.clone()).collect();
    let project = Project { here: &here, home: &home, aliases: &aliases };
    if let Some(what) = configs.iter().find_map(|config| project.mischief(config)) {
        bail!(Usage(format!(
            "{what}. So this project would have Cargo change what later builds take from ~/.cargo; nothing was started. Remove \
             that line, or run under another profile (`-p workspace`)"
        )));
    }
    let misleading = below.configs.iter().filter_map(|config| {
        let what = project.mischief(config)?;
        Some((config.file.clone(), format!("{what}, and Cargo may go there")))
    });
    let unread = below.unread.iter().map(|it| (it.file.clone(), it.to_string()));
    let closed: Vec<(PathBuf, String)> = misleading.chain(unread).collect();
    variables.misleading.extend(closed.iter().map(|(file, _)| end_of(file)));
    if tells {
        tell_closed(&closed, &below);
    }
    let known = &mut |names: &[&str]| compiled.addresses(names);
    Ok(documents.compile(variables, known, &[])?)
}

fn refused(unread: &Unread) -> String {
    format!(
        "{unread}, so nobody can say whether it leads Cargo into ~/.cargo; nothing was started. Mend it, or run under another \
         profile (`-p workspace`)"
    )
}

fn tell_closed(closed: &[(PathBuf, String)], below: &below::Below) {
    for (_, why) in closed.iter().take(MOST_TOLD) {
        tell!("dewar: {why}; nothing in this run reads that file");
    }
    if let more @ 1.. = closed.len().saturating_sub(MOST_TOLD) {
        tell!("dewar: and {more} more such files");
    }
    if let Some(first) = below.left.first() {
        tell!(
            "dewar: the workspace has too many files to look for all configuration of Cargo: a command that goes to a directory in \
             {} (and {} more) may be led into ~/.cargo",
            visible(&first.to_string_lossy()),
            below.left.len() - 1
        );
    }
}

/// Where `path` leads.
fn end_of(path: &Path) -> PathBuf {
    realpath::way(path).pop().unwrap_or_else(|| path.to_owned())
}
