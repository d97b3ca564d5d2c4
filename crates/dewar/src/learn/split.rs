//! `dewar learn --domains`: programs that alone reach the network get a domain of their own, if the
//! command runs with it as it has run without.

use super::{LearnArgs, Learned, read, watch};
use crate::{output::tell, words::words};
use anyhow::Context as _;
use learn::{Access, OwnDomain};
use monitor::visible;
use std::collections::{BTreeMap, BTreeSet};

/// What of an access is the same in the next run.
type Key<'a> = (&'a str, &'a str, &'a str, &'a [String]);

/// What `learned` would be with `domains`, tried by a run; `None` if that is denied what the first
/// run was not, or ends otherwise: then it is said what.
pub(super) fn split(
    args: &LearnArgs,
    learned: &Learned,
    (accesses, status): (&BTreeMap<Access, u64>, i32),
    domains: &[OwnDomain],
) -> anyhow::Result<Option<Learned>> {
    let names = names(domains);
    tell!("dewar: only {names} reached the network: running again, with a domain for that");
    let scope = &learned.fitting.scope;
    let own: Vec<_> = domains.iter().map(|domain| domain.line(scope)).collect();
    let fitting = learned.fitting.extended(&own)?;
    let moved = learn::as_in(accesses, domains);
    let split = Learned::of(fitting, &moved, &learned.addresses)?;
    if lasting(domains.to_vec(), &split, true)?.is_empty() {
        return Ok(None);
    }
    // A place of its own: in that of the first run, the command could have left a link.
    let place = tempfile::tempdir().context("cannot make a temporary directory")?;
    let (profile, trail) = (place.path().join("domains.toml"), place.path().join("trail"));
    let text = split.fitting.with(&split.lines)?;
    std::fs::write(&profile, text).context("cannot write the profile with domains")?;
    let again = watch(args, &profile, &trail)?;
    if again != status || !trail.exists() {
        tell!(
            "dewar: no domain for {names}: with it, the command ended with {again}, not {status}"
        );
        return Ok(None);
    }
    let tried = read(&trail)?;
    let left = accesses.keys().filter(|access| !access.granted).chain(&learned.settled.left);
    let known: BTreeSet<Key<'_>> = left.map(key).collect();
    // Libraries try how they would reach a host; they do without, as the command has ended alike.
    let is_tried = |access: &Access| access.tclass == "udp_socket" && access.wants("create");
    let denied = tried.keys().filter(|access| !access.granted && !is_tried(access));
    let denied = denied.into_iter().find(|access| !known.contains(&key(access)));
    if let Some(access) = denied {
        tell!(
            "dewar: no domain for {names}: with it, {} may not {} {}",
            visible(access.who()),
            words(&access.requested),
            visible(&access.object)
        );
        return Ok(None);
    }
    tell!("dewar: {names}: a domain of its own; nothing else reaches the network");
    Ok(Some(split))
}

/// `domains`; none, if what was learned lets the run write to the program of one: whoever puts
/// another in its place has the domain's rights. Where it was `asked` for, that is said.
pub(super) fn lasting(
    domains: Vec<OwnDomain>,
    learned: &Learned,
    asked: bool,
) -> anyhow::Result<Vec<OwnDomain>> {
    let judge = learned.fitting.judge(&learned.lines)?;
    // Who may write to a directory on its way may put another into its place.
    let is_open = |it: &&OwnDomain| it.program.ancestors().any(|at| judge.is_writable(at));
    let open: Vec<OwnDomain> = domains.iter().filter(is_open).cloned().collect();
    if open.is_empty() {
        return Ok(domains);
    }
    if asked {
        let names = names(&open);
        tell!(
            "dewar: no domain for {names}: the command writes where the program is, and could put another there"
        );
    }
    Ok(Vec::new())
}

fn key(access: &Access) -> Key<'_> {
    (&access.program, &access.tclass, &access.object, &access.requested)
}

/// As people read them.
pub(super) fn names(domains: &[OwnDomain]) -> String {
    let names = domains.iter().map(|it| it.program.file_name().unwrap_or_default());
    let names: Vec<String> = names.map(|name| visible(&name.to_string_lossy())).collect();
    names.join(", ")
}
