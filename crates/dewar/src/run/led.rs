//! Where links lead that have a guarded name: they came with the workspace, and a guard goes by
//! names.

use crate::machine;
use learn::Judge;
use profile::{Compiled, GuardLevel, Variables, host_trusted};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// So deep is looked below the workspace.
const DEPTH: usize = 3;
/// The most links that the kernel follows, one to the other.
const LINKS: usize = 40;
/// Where Git keeps content, of which there can be much.
const CONTENT: [&str; 2] = ["objects", "lfs"];

/// What links at the top of the workspace, and in guarded directories there, lead to, as far as
/// some domain may write that and not the link.
pub(super) fn led_to(compiled: &Compiled, variables: &Variables) -> anyhow::Result<Vec<PathBuf>> {
    if !compiled.guarded {
        return Ok(Vec::new());
    }
    let mut links = Vec::new();
    look(&variables.workspace, Some(&tops()), DEPTH, &mut links);
    if links.is_empty() {
        return Ok(links);
    }
    let judge = Judge::new(compiled)?;
    let is_led_past = |link: &Path, place: &Path| {
        compiled.domains.iter().any(|domain| {
            let writes = |path: &Path| judge.rights(path, Some(&domain.name)).write;
            !writes(link) && writes(place)
        })
    };
    let places = links.into_iter().map(|link| (place_of(&link), link));
    let led = places.filter(|(place, link)| is_led_past(link, place));
    Ok(led.map(|(place, _)| place).collect())
}

/// The first components of guarded names, in small letters.
fn tops() -> BTreeSet<String> {
    let guarded = host_trusted()
        .filter(|name| !matches!(name.level, GuardLevel::Report | GuardLevel::But))
        .filter_map(|name| name.name.split('/').next());
    guarded.map(str::to_ascii_lowercase).collect()
}

/// Where a link leads, also to nothing.
fn place_of(link: &Path) -> PathBuf {
    let real = machine::real(link);
    let next = |link: &Path| Some(machine::real(&link.parent()?.join(fs::read_link(link).ok()?)));
    std::iter::successors(Some(real), |place| next(place)).take(LINKS).last().unwrap_or_default()
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
