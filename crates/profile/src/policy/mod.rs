//! From a merged profile to a type-enforcement policy in CIL.

mod abstract_names;
mod base;
mod carve;
mod endpoints;
mod files;
mod guards;
mod processes;
mod shared;
mod sockets;
mod standing;
mod writable_entrypoints;
mod writer;

use crate::amendment::{AmendmentKind, Clause, ClauseObject};
use crate::error::Reporter;
use crate::hosts::ResolvedHost;
use crate::merged::Profile;
use crate::source::TextSpan;
pub(crate) use files::Node;
pub(crate) use standing::Standing;
pub(crate) use writable_entrypoints::WritableEntrypoint;
use writer::Writer;

/// A policy, and what its writing found out.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) cil: String,
    /// Where line n + 1 of `cil` comes from.
    pub(crate) origins: Vec<Option<TextSpan>>,
    /// The types of the profile's domains.
    pub(crate) types: Vec<String>,
    pub(crate) nodes: Vec<Node>,
    /// Types of endpoints and abstract names that an amendment took: domain, type, and which.
    pub(crate) taken: Vec<(usize, String, TextSpan)>,
    /// The last amendment grants files that the profile denies or hides, and no others; where it
    /// does.
    pub(crate) in_vain: Option<TextSpan>,
    /// Programs that whoever enters a domain by them may exchange.
    pub(crate) writable_entrypoints: Vec<WritableEntrypoint>,
}

/// Writes the policy that `profile` stands for.
pub(crate) fn write(
    name: &str,
    profile: &Profile,
    hosts: &[ResolvedHost],
    clauses: &[Clause],
    reporter: &mut Reporter,
) -> Policy {
    let mut out = Writer::default();
    out.line(format_args!("; The type-enforcement policy of {}.", name.escape_default()));
    base::write(&mut out);
    out.heading("domains");
    let domains = profile.domains.iter();
    let types: Vec<String> = domains.map(|domain| out.names.fresh(&domain.name, "t")).collect();
    types.iter().for_each(|name| out.domain_type(name));
    let nodes = files::nodes(profile, &mut out);
    let mut nodes =
        carve::carve(nodes, (clauses, profile.domains.len()), &mut out).unwrap_or_else(|problem| {
            reporter.report(problem, None);
            Vec::new()
        });
    nodes.iter_mut().for_each(|node| node.amend(clauses));
    let in_vain = in_vain(&nodes, clauses);
    let ways = files::ways(&nodes, &profile.left, &mut out);
    nodes.extend(ways);
    nodes.extend(guards::guards(profile, &nodes, &mut out));
    let entries = processes::entries(profile, &nodes, reporter);
    let leads_out = processes::leads_out(profile, &nodes, &entries);
    files::write((profile, &types), &nodes, &leads_out, clauses, &mut out);
    processes::write(profile, &types, &nodes, &entries, clauses, &mut out);
    let taken = sockets::write((profile, &types), &nodes, hosts, clauses, &mut out);
    let writable_entrypoints = writable_entrypoints::open(profile, &nodes, &entries);
    let (cil, origins) = out.finish();
    Policy { cil, origins, types, nodes, taken, in_vain, writable_entrypoints }
}

/// What keeps all of the files away that the last clause grants.
fn in_vain(nodes: &[Node], clauses: &[Clause]) -> Option<TextSpan> {
    let last = clauses.len().checked_sub(1)?;
    let clause = &clauses[last];
    if clause.kind != AmendmentKind::Grant || !matches!(clause.object, ClauseObject::Paths(..)) {
        return None;
    }
    let mut why = None;
    for node in nodes.iter().filter(|node| node.clauses.contains(&last)) {
        for (domain, rights) in node.rights.iter().enumerate() {
            if clause.is_about(domain) {
                why = Some(rights.hidden.or(rights.denied)?);
            }
        }
    }
    why
}
