//! Domains: what processes may do to each other, and which programs lead from one domain to
//! another.

use super::files::Node;
use super::writer::Writer;
use crate::amendment::{Clause, everything};
use crate::error::{Problem, Reporter};
use crate::merged::{ALL_ELSE, Profile};
use crate::pattern::Pattern;
use crate::source::TextSpan;

/// What processes of one domain may do to each other.
const OWN: &[(&str, &str)] =
    &[("process", "fork signal sigkill sigstop signull ptrace getattr setrlimit setsched setpgid")];

/// What is left to processes of a domain from which everything was taken: to end themselves and
/// each other.
const END: &[(&str, &str)] = &[("process", "signal sigkill")];

/// What a process may do to those of a domain that it can start.
const STARTED: &[(&str, &str)] =
    &[("process", "transition signal sigkill sigstop signull setsched setpgid")];

/// The same, where the programs of that domain believe its environment.
const BELIEVED: &[(&str, &str)] = &[("process", "noatsecure")];

/// What a domain may do with a program that leads out of it.
const EXECUTE: &[(&str, &str)] = &[("file", "getattr read open execute")];

/// What a domain may do with its own programs.
const ENTER: &[(&str, &str)] = &[("file", "getattr read open execute execute_no_trans entrypoint")];

/// A program that leads from one domain into another. Indices are those of domains and nodes.
#[derive(Debug)]
pub(crate) struct Entrypoint {
    pub(super) from: usize,
    pub(super) node: usize,
    pub(super) into: usize,
    pub(super) place: TextSpan,
}

/// Every way from a domain into another. Files that are denied or hidden lead nowhere; those that
/// are only not written lead where others do.
pub(crate) fn entries(
    profile: &Profile,
    nodes: &[Node],
    reporter: &mut Reporter,
) -> Vec<Entrypoint> {
    let mut entries = Vec::new();
    for (node, object) in nodes.iter().enumerate() {
        for (from, rights) in object.rights.iter().enumerate() {
            let kept = rights.denied.or(rights.hidden).or(object.taken[from].exec);
            if kept.is_none() {
                entries.extend(entry(profile, from, node, object, reporter));
            }
        }
    }
    entries
}

/// Where a process of domain `from` gets by executing a file of `object`: the most specific program
/// decides; where there is none, and `from` has none itself, the domain for all else.
fn entry(
    profile: &Profile,
    from: usize,
    node: usize,
    object: &Node,
    reporter: &mut Reporter,
) -> Option<Entrypoint> {
    let from_name = &profile.domains[from].name;
    let open = profile.domains.iter().enumerate().filter(|(_, d)| d.is_entered_from(from_name));
    let programs = open.flat_map(|(into, d)| d.programs.iter().map(move |p| (into, p)));
    let mut covering: Vec<_> =
        programs.filter(|(_, (pattern, _))| pattern.covers(&object.part_of)).collect();
    covering.sort_by_key(|(_, (pattern, _))| pattern.stem());
    let Some((into, (pattern, place))) = covering.pop() else {
        let (into, place) = all_else(profile, from, object, reporter)?;
        return Some(Entrypoint { from, node, into, place });
    };
    // From inside a domain, its own programs keep it; only a more specific one leads out, or the
    // same one of a domain that names this one in `from`.
    let names_it = profile.domains[into].names_in_from(from_name);
    let leads_out =
        |own: &Pattern| own.stem() < pattern.stem() || from != 0 && names_it && own == pattern;
    let mut own = profile.domains[from].programs.iter().filter(|(p, _)| p.covers(&object.part_of));
    if !own.all(|(own, _)| leads_out(own)) {
        return None;
    }
    if let Some((other, _)) = covering.iter().find(|(other, (p, _))| *other != into && p == pattern)
    {
        let problem = Problem::AmbiguousDomain {
            program: pattern.literal().unwrap_or_else(|| pattern.label().to_owned()),
            first: profile.domains[*other].name.clone(),
            second: profile.domains[into].name.clone(),
            from: from_name.clone(),
        };
        reporter.report(problem, Some(*place));
    }
    Some(Entrypoint { from, node, into, place: *place })
}

/// The domain that `from` gets into by whatever it may execute and is no program of its own.
fn all_else(
    profile: &Profile,
    from: usize,
    object: &Node,
    reporter: &mut Reporter,
) -> Option<(usize, TextSpan)> {
    let own = &profile.domains[from];
    if object.rights[from].exec.is_none()
        || own.programs.iter().any(|(p, _)| p.covers(&object.part_of))
    {
        return None;
    }
    let open = profile.domains.iter().enumerate().filter(|(_, d)| d.is_entered_from(&own.name));
    let mut open = open.filter_map(|(into, domain)| Some((into, domain.all_else?)));
    let (into, place) = open.next()?;
    if let Some((other, _)) = open.next() {
        let problem = Problem::AmbiguousDomain {
            program: ALL_ELSE.to_owned(),
            first: profile.domains[into].name.clone(),
            second: profile.domains[other].name.clone(),
            from: own.name.clone(),
        };
        reporter.report(problem, Some(place));
    }
    Some((into, place))
}

/// For each domain, which nodes lead out of it.
pub(crate) fn leads_out(
    profile: &Profile,
    nodes: &[Node],
    entries: &[Entrypoint],
) -> Vec<Vec<bool>> {
    let mut out = vec![vec![false; nodes.len()]; profile.domains.len()];
    for entry in entries {
        out[entry.from][entry.node] = true;
    }
    out
}

/// Writes the rules between processes. `types` are the types of the domains.
pub(crate) fn write(
    profile: &Profile,
    types: &[String],
    nodes: &[Node],
    entries: &[Entrypoint],
    clauses: &[Clause],
    out: &mut Writer,
) {
    out.heading("processes");
    for (index, (domain, name)) in profile.domains.iter().zip(types).enumerate() {
        if let Some(place) = everything(clauses, index) {
            out.allow(Some(place), name, "self", END);
            continue;
        }
        out.allow(None, name, "self", OWN);
        for capability in &domain.capabilities {
            let rule = [("capability", capability.value.as_str())];
            out.allow(Some(capability.place), name, "self", &rule);
        }
    }
    let mut started = std::collections::BTreeSet::new();
    let mut programs = std::collections::BTreeSet::new();
    for entry in entries {
        let rights = &nodes[entry.node].rights[entry.into];
        if rights.denied.or(rights.hidden).is_some() {
            // It leads out of the one domain, and the other may not even read it.
            continue;
        }
        let (place, node) = (Some(entry.place), &nodes[entry.node].type_name);
        let (from, into) = (&types[entry.from], &types[entry.into]);
        if started.insert((entry.from, entry.into)) {
            out.allow(place, from, into, STARTED);
            let mut believed = profile.domains[entry.into].noatsecure.iter();
            let name = &profile.domains[entry.from].name;
            if let Some(domain) = believed.find(|domain| domain.value == *name) {
                out.allow(Some(domain.place), from, into, BELIEVED);
            }
        }
        let enterable = nodes[entry.node].taken[entry.into];
        let taken = enterable.everything.or(enterable.exec).or(everything(clauses, entry.into));
        if taken.is_none() && programs.insert((entry.into, entry.node)) {
            out.allow(place, into, node, ENTER);
        }
        out.allow(place, from, node, EXECUTE);
        out.rule(place, format_args!("(typetransition {from} {node} process {into})"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::Class;

    #[test]
    fn every_class_and_permission_in_the_tables_exists() {
        for (class, permissions) in [OWN, END, STARTED, BELIEVED, EXECUTE, ENTER].concat() {
            let class = Class::by_name(class).expect(class);
            for permission in permissions.split(' ') {
                assert!(class.permission(permission).is_some(), "{class} {permission}");
            }
        }
    }
}
