//! Where links lead that have a guarded name, and what Git's configuration names: they came with
//! the workspace, and a guard goes by names.

mod git;

use git::Named;
use learn::Judge;
use profile::{Compiled, Documents, GuardLevel, Variables, fixed_path, host_trusted};
use std::{
    cell::OnceCell,
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// So deep is looked below the workspace.
const DEPTH: usize = 3;
/// Where Git keeps content, of which there can be much.
const CONTENT: [&str; 2] = ["objects", "lfs"];

/// The links at the top of a workspace, and in what has a guarded name there, and what Git's
/// configuration names in it; looked for once.
#[derive(Clone)]
pub(crate) struct Links {
    workspace: PathBuf,
    found: OnceCell<Vec<Led>>,
}

/// What somebody outside comes to by a name that is guarded.
#[derive(Clone)]
struct Led {
    /// The guarded name: a link, or Git's configuration.
    by: PathBuf,
    /// What is looked up.
    to: PathBuf,
    /// It may be changed, and that is reported.
    is_free: bool,
}

impl Links {
    pub(crate) fn of(workspace: &Path) -> Self {
        Self { workspace: workspace.to_owned(), found: OnceCell::new() }
    }

    /// The policy of `documents`, which is `compiled` so far, with what the links lead to kept as
    /// it is, as far as some domain may write that and not the link. `variables` say so from then
    /// on.
    pub(crate) fn guard(
        &self,
        compiled: Compiled,
        documents: &Documents,
        variables: &mut Variables,
    ) -> anyhow::Result<Compiled> {
        variables.led = self.led_past(&compiled)?;
        if variables.led.is_empty() {
            return Ok(compiled);
        }
        let known = &mut |names: &[&str]| compiled.addresses(names);
        Ok(documents.compile(variables, known, &[])?)
    }

    /// Links, and what they lead by and to, as far as some domain may write that, and not the link.
    fn led_past(&self, compiled: &Compiled) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
        if !compiled.guarded || self.found().is_empty() {
            return Ok(Vec::new());
        }
        let judge = Judge::new(compiled)?;
        let is_led_past = |(link, place): &(PathBuf, PathBuf)| {
            compiled.domains.iter().any(|domain| {
                let writes = |path: &Path| judge.rights(path, Some(&domain.name)).write;
                !writes(link) && writes(fixed_path(place))
            })
        };
        let places = self.found().iter().filter(|led| !led.is_free).flat_map(|led| {
            let way = realpath::way(&led.to).into_iter().filter(|place| *place != led.by);
            way.map(|place| (led.by.clone(), place))
        });
        Ok(places.filter(is_led_past).collect())
    }

    /// What each of the links leads by, and to, with the link.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (PathBuf, PathBuf)> {
        self.found().iter().flat_map(|led| {
            let way = realpath::way(&led.to).into_iter().map(|place| fixed_path(&place).to_owned());
            way.filter(|place| *place != led.by).map(|place| (place, led.by.clone()))
        })
    }

    fn found(&self) -> &[Led] {
        self.found.get_or_init(|| {
            let mut links = Vec::new();
            look(&self.workspace, Some(&tops()), DEPTH, &mut links);
            let links =
                links.into_iter().map(|by| Led { to: by.clone(), by, is_free: false }).collect();
            [links, self.named_by_git()].concat()
        })
    }

    /// What Git comes to by its configuration, as far as it lies in the workspace: all else is no
    /// project's.
    fn named_by_git(&self) -> Vec<Led> {
        let by = self.workspace.join(".git/config");
        let is_inside = |path: &Path| {
            let end = realpath::way(path).pop().unwrap_or_default();
            end.starts_with(&self.workspace) && end != self.workspace
        };
        let named = git::named(&self.workspace).into_iter();
        let led = named.map(|named| match named {
            Named::Trusted(to) => Led { by: by.clone(), to, is_free: false },
            Named::Executed(to) => Led { by: by.clone(), to, is_free: true },
        });
        led.filter(|led| is_inside(&led.to)).collect()
    }
}

/// The first components of guarded names, in small letters.
fn tops() -> BTreeSet<String> {
    let guarded = host_trusted()
        .filter(|name| name.level != GuardLevel::But)
        .filter_map(|name| name.name.split('/').next());
    guarded.map(str::to_ascii_lowercase).collect()
}

/// Adds the links in `directory`, and in what has one of `names` there; in that, in everything.
fn look(
    directory: &Path,
    names: Option<&BTreeSet<String>>,
    depth: usize,
    links: &mut Vec<PathBuf>,
) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
        let is_wanted = names.is_none_or(|names| names.contains(&name));
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => links.push(entry.path()),
            Ok(kind) if kind.is_dir() && is_wanted && !CONTENT.contains(&&*name) && depth > 0 => {
                look(&entry.path(), None, depth - 1, links);
            }
            _ => {}
        }
    }
}
