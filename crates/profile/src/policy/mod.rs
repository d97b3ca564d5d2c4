//! From a merged profile to a type-enforcement policy in CIL.

mod base;
mod endpoints;
mod files;
mod processes;
mod sockets;
mod writer;

use crate::error::Reporter;
use crate::hosts::ResolvedHost;
use crate::merge::Profile;
use crate::source::Place;
pub(crate) use files::Node;
use writer::Writer;

/// A policy, and what its writing found out.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) cil: String,
    /// Where line n + 1 of `cil` comes from.
    pub(crate) origins: Vec<Option<Place>>,
    /// The types of the profile's domains.
    pub(crate) types: Vec<String>,
    pub(crate) nodes: Vec<Node>,
}

/// Writes the policy that `profile` stands for.
pub(crate) fn write(
    name: &str,
    profile: &Profile,
    hosts: &[ResolvedHost],
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
    let entries = processes::entries(profile, &nodes, reporter);
    let leads_out = processes::leads_out(profile, &nodes, &entries);
    files::write(profile, &types, &nodes, &leads_out, &mut out);
    processes::write(profile, &types, &nodes, &entries, &mut out);
    sockets::write(profile, &types, &nodes, hosts, &mut out);
    let (cil, origins) = out.finish();
    Policy { cil, origins, types, nodes }
}
