//! Programs that enter a domain, and that whoever enters it by them may exchange: then the domain's
//! rights are that domain's, too.

use super::files::Node;
use super::processes::Entrypoint;
use crate::merged::{Domain, NetworkRule, Profile};
use crate::network::{Endpoints, NetworkObject};
use crate::rights::Rights;
use crate::source::TextSpan;
use std::collections::HashMap;

/// A program that enters a domain, with what lets the domain that it is entered from write it.
/// Indices are those of domains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WritableEntrypoint {
    pub(crate) from: usize,
    pub(crate) into: usize,
    /// Where the program is named.
    pub(crate) program: TextSpan,
    /// What grants writing, or making.
    pub(crate) grant: TextSpan,
}

/// All of them, each pattern of programs once; none by which nothing is gained.
pub(crate) fn open(
    profile: &Profile,
    nodes: &[Node],
    entries: &[Entrypoint],
) -> Vec<WritableEntrypoint> {
    let mut open: Vec<WritableEntrypoint> = Vec::new();
    let mut gained = HashMap::new();
    for entry in entries {
        let Entrypoint { from, into, node, place: program } = *entry;
        let rights = &nodes[node].rights[from];
        let Some(grant) = rights.write.or(rights.make) else { continue };
        let is_known =
            |it: &WritableEntrypoint| (it.from, it.into, it.program) == (from, into, program);
        if open.iter().any(is_known) {
            continue;
        }
        let gains = || gains(profile, nodes, entries, (from, into));
        if *gained.entry((from, into)).or_insert_with(gains) {
            open.push(WritableEntrypoint { from, into, program, grant });
        }
    }
    open
}

/// Whether domain `into` may do what `from` may not. Says yes when in doubt.
fn gains(
    profile: &Profile,
    nodes: &[Node],
    entries: &[Entrypoint],
    (from, into): (usize, usize),
) -> bool {
    let (less, more) = (&profile.domains[from], &profile.domains[into]);
    let leads = |from: usize, to: &Entrypoint| {
        entries.iter().any(|it| (it.from, it.into, it.node) == (from, to.into, to.node))
    };
    nodes.iter().any(|node| exceeds(&node.rights[into], &node.rights[from]))
        || more.network.iter().any(|rule| !less.network.iter().any(|own| covers(own, rule)))
        || netlink(more).iter().any(|protocol| !netlink(less).contains(protocol))
        || more.capabilities.iter().any(|it| less.capabilities.iter().all(|c| c.value != it.value))
        || entries.iter().any(|it| it.from == into && it.into != from && !leads(from, it))
}

fn exceeds(more: &Rights, less: &Rights) -> bool {
    let lacks = |has: Option<TextSpan>, own: Option<TextSpan>| has.is_some() && own.is_none();
    lacks(more.list, less.list.or(less.readable()))
        || lacks(more.readable(), less.readable())
        || lacks(more.write, less.write)
        || lacks(more.exec, less.exec)
        || lacks(more.make, less.make.or(less.write))
        || lacks(less.hidden, more.hidden)
}

fn netlink(domain: &Domain) -> &[String] {
    domain.netlink().map_or(&[], |(_, protocols)| protocols)
}

/// Whether `own` grants all that `other` does. Says no when in doubt.
fn covers(own: &NetworkRule, other: &NetworkRule) -> bool {
    let is_covered = match (&own.target, &other.target) {
        (NetworkObject::Ip(own), NetworkObject::Ip(other)) => reaches(own, other),
        (NetworkObject::Unix(own, patterns), NetworkObject::Unix(other, others)) => {
            let covered = |it| patterns.iter().any(|pattern| pattern.covers(it));
            own == other && others.iter().all(covered)
        }
        (NetworkObject::Abstract(own, name), NetworkObject::Abstract(other, named)) => {
            let named = named.as_ref();
            own == other
                && name.as_ref().is_none_or(|name| named.is_some_and(|named| name.covers(named)))
        }
        _ => false,
    };
    own.direction == other.direction && is_covered
}

fn reaches(own: &Endpoints, other: &Endpoints) -> bool {
    own.host.covers(&other.host)
        && own.protocol == other.protocol
        && own.low <= other.low
        && own.high >= other.high
}
