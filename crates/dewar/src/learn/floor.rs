//! The profile of a run that is learned from: everything, above a floor.

use super::hosts;
use learn::Secrets;
use profile::{Compiled, Variables};
use std::{fmt::Write as _, path::Path};

/// What belongs to the machine: to be read, as far as the base grants it, and never changed.
const SYSTEM: [&str; 16] = [
    "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt",
    "/boot", "/snap", "/nix", "/gnu", "/proc", "/sys",
];

/// Secrets by their names that are denied one by one; more than anybody has.
const MOST_SECRETS: usize = 1_000;

/// The text of the profile, and how many files it keeps back because of their names.
pub(super) fn profile(
    base: &str,
    (compiled, variables): (&Compiled, &Variables),
    secrets: &Secrets,
    output: &Path,
    command: &str,
) -> anyhow::Result<(String, usize)> {
    let judge = learn::Judge::new(compiled)?;
    let rights = |path: &Path| judge.rights(path, None);
    let (found, is_all) = secrets.found(&variables.home, MOST_SECRETS);
    if !is_all {
        crate::output::tell!(
            "dewar: there is more in {} than was looked through for secrets; what the base profile hides stays hidden",
            variables.home.display()
        );
    }
    // What the base grants, its runs have always had.
    let kept = found.iter().filter(|path| !rights(path).read);
    let kept: Vec<String> = kept.filter_map(|path| path.to_str().map(learn::literal)).collect();
    let system = SYSTEM.iter().filter(|path| !rights(Path::new(path)).write);
    let mut fixed: Vec<String> = system.map(|path| (*path).to_owned()).collect();
    fixed.extend(output.to_str().map(learn::literal));
    let unguarded = if compiled.guarded { "" } else { "unguarded = ['${workspace}', '${tmp}']\n" };
    let mut text = format!(
        "extends = {}\ndescription = \"everything that can be granted, above {}\"\nmode = \"all\"\n\
         [files]\nguard = \"host-trusted\"\n{unguarded}write = ['/']\nexec = ['/']\nreadonly = {}\ndeny = {}\n",
        json(base)?,
        base.replace(['"', '\\'], "_"),
        json(&fixed)?,
        json([devices(&judge), kept.clone()].concat())?,
    );
    let names = hosts::candidates(command, variables);
    let named = names.iter().map(|name| format!("{name}:*"));
    let any = ["*:*", "*:*/udp", "unix:/", "unixgram:/"].map(str::to_owned);
    let network = format!(
        "connect = {}\nbind = ['*:0-65535', '*:0-65535/udp']\nnetlink = true\n",
        json(any.into_iter().chain(named).collect::<Vec<_>>())?
    );
    write!(text, "[network]\n{network}")?;
    for domain in compiled.domains.iter().skip(1) {
        let name = &domain.name;
        write!(text, "[domains.{name}.files]\nwrite = ['/']\n[domains.{name}.network]\n{network}")?;
    }
    Ok((text, kept.len()))
}

/// The machine's devices that the base does not grant.
fn devices(judge: &learn::Judge) -> Vec<String> {
    let entries = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| !path.is_symlink());
    let kept = paths.filter(|path| !judge.rights(path, None).read);
    let mut kept: Vec<String> = kept.filter_map(|path| path.to_str().map(learn::literal)).collect();
    kept.sort();
    kept
}

/// A value as TOML takes it, too: strings and lists of them.
fn json(value: impl serde::Serialize) -> serde_json::Result<String> {
    serde_json::to_string(&value)
}
