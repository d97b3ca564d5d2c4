//! Labels of addresses and ports: as few types as the network rules can tell apart.
//!
//! An address and a port have one label each, so overlapping rules are cut into disjoint groups:
//! two addresses share a type when the same hosts of the profile contain them, two ports when the
//! same ranges do. The hosts and ranges of amendments cut further; a group that was there without
//! them keeps its name.

use crate::hosts::ResolvedHost;
use crate::network::{Endpoints, Host};
use flask::Protocol;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Addresses that share a type.
#[derive(Debug)]
pub(crate) struct AddressGroup {
    /// A name for people.
    pub(crate) label: String,
    pub(crate) networks: Vec<(IpAddr, u8)>,
    /// The hosts that contain them, by index.
    hosts: BTreeSet<usize>,
    /// An amendment's host cut it off: its name must not take one of the profile's.
    pub(crate) cut_off: bool,
}

/// Ports that share a type.
#[derive(Debug)]
pub(crate) struct PortGroup {
    /// A name for people.
    pub(crate) label: String,
    pub(crate) protocol: Protocol,
    pub(crate) ranges: Vec<(u16, u16)>,
    /// The ranges that contain them.
    containing: BTreeSet<(u16, u16)>,
    /// As for addresses.
    pub(crate) cut_off: bool,
}

impl AddressGroup {
    /// Whether all its addresses belong to the host at `index`.
    pub(crate) fn is_in(&self, index: usize) -> bool {
        self.hosts.contains(&index)
    }

    /// Whether all its addresses, of which there are some, belong to `host`, one of those that the
    /// groups were made for.
    pub(crate) fn lies_in(&self, host: &ResolvedHost) -> bool {
        // INVARIANT: a group lies in a host or outside of it, so one network speaks for all.
        self.networks.first().is_some_and(|network| host.contains(*network))
    }
}

impl PortGroup {
    /// Whether all its ports lie in the range of `rule`, of its protocol.
    pub(crate) fn is_in(&self, rule: &Endpoints) -> bool {
        // INVARIANT: a group lies in a range or outside of it, so one port speaks for all.
        let first = self.ranges.first();
        self.protocol == rule.protocol
            && first.is_some_and(|(low, _)| (rule.low..=rule.high).contains(low))
    }
}

/// The groups of all addresses that `hosts`, and those of amendments, contain: first those of the
/// profile, as they would be without amendments.
pub(crate) fn address_groups(
    hosts: &[ResolvedHost],
    amended: &[&ResolvedHost],
) -> Vec<AddressGroup> {
    let plain: Vec<&ResolvedHost> = hosts.iter().collect();
    let known = grouped(&plain);
    if amended.is_empty() {
        return known;
    }
    let mut all = grouped(&[plain.as_slice(), amended].concat());
    all.sort_by_key(|group| group.hosts.len());
    let of_profile = |group: &AddressGroup| -> BTreeSet<usize> {
        group.hosts.iter().copied().filter(|index| *index < hosts.len()).collect()
    };
    heirs(&known, all, of_profile, |group, former| match former {
        Some(former) => group.label.clone_from(&former.label),
        None => group.cut_off = true,
    })
}

/// `all` groups in the order of the `known` ones that they come from, as `of_profile` tells. Of
/// several that come from one, the least is its heir (`mark` is told of whom); the others are cut
/// off.
fn heirs<G, K: PartialEq>(
    known: &[G],
    mut all: Vec<G>,
    of_profile: impl Fn(&G) -> K,
    mark: impl Fn(&mut G, Option<&G>),
) -> Vec<G> {
    let mut groups = Vec::with_capacity(all.len());
    for former in known {
        let key = of_profile(former);
        if let Some(at) = all.iter().position(|group| of_profile(group) == key) {
            let mut heir = all.remove(at);
            mark(&mut heir, Some(former));
            groups.push(heir);
        }
    }
    all.iter_mut().for_each(|group| mark(group, None));
    groups.extend(all);
    groups
}

fn grouped(hosts: &[&ResolvedHost]) -> Vec<AddressGroup> {
    let mut groups: BTreeMap<BTreeSet<usize>, AddressGroup> = BTreeMap::new();
    let all = || hosts.iter().enumerate();
    let group = |label: String, hosts: &BTreeSet<usize>| AddressGroup {
        label,
        networks: Vec::new(),
        hosts: hosts.clone(),
        cut_off: false,
    };
    let networks: BTreeSet<(IpAddr, u8)> = hosts.iter().flat_map(|h| h.networks.clone()).collect();
    for network in networks {
        let key: BTreeSet<usize> =
            all().filter(|(_, host)| host.contains(network)).map(|(index, _)| index).collect();
        let label = hosts.iter().filter(|host| host.networks.contains(&network));
        let label = label.map(|host| label_of(&host.host)).collect::<Vec<_>>().join("_and_");
        groups.entry(key.clone()).or_insert_with(|| group(label, &key)).networks.push(network);
    }
    // A name without addresses has a type of its own, so that the policy shows what it would reach.
    for (index, host) in all().filter(|(_, host)| host.networks.is_empty()) {
        let any = all().filter(|(_, other)| other.host == Host::Any).map(|(any, _)| any);
        let key: BTreeSet<usize> = any.chain([index]).collect();
        let label = label_of(&host.host);
        groups.insert(key.clone(), group(label, &key));
    }
    groups.into_values().collect()
}

fn label_of(host: &Host) -> String {
    match host {
        Host::Any => "any".to_owned(),
        Host::Nameserver => "nameserver".to_owned(),
        Host::Network(..) => format!("ip_{host}"),
        Host::Name(name) => name.clone(),
    }
}

/// The groups of all ports that `rules`, and those of amendments, name: first those of the profile,
/// as they would be without amendments.
pub(crate) fn port_groups(rules: &[&Endpoints], amended: &[&Endpoints]) -> Vec<PortGroup> {
    let known = ports(rules);
    if amended.is_empty() {
        return known;
    }
    let named = |protocol: Protocol, range: &(u16, u16)| {
        rules.iter().any(|rule| rule.protocol == protocol && (rule.low, rule.high) == *range)
    };
    let of_profile = |group: &PortGroup| -> (Protocol, BTreeSet<(u16, u16)>) {
        let ranges = group.containing.iter().copied();
        (group.protocol, ranges.filter(|range| named(group.protocol, range)).collect())
    };
    let mut all = ports(&[rules, amended].concat());
    all.sort_by_key(|group| group.containing.len());
    heirs(&known, all, of_profile, |group, former| match former {
        Some(former) => group.label.clone_from(&former.label),
        None => group.cut_off = true,
    })
}

fn ports(rules: &[&Endpoints]) -> Vec<PortGroup> {
    let ranges = |udp: bool| -> BTreeSet<(u16, u16)> {
        let rules = rules.iter().filter(|rule| (rule.protocol == Protocol::Udp) == udp);
        rules.map(|rule| (rule.low, rule.high)).collect()
    };
    let mut groups = groups_of(Protocol::Tcp, &ranges(false));
    groups.extend(groups_of(Protocol::Udp, &ranges(true)));
    groups
}

fn groups_of(protocol: Protocol, ranges: &BTreeSet<(u16, u16)>) -> Vec<PortGroup> {
    let starts = ranges.iter().map(|(low, _)| u32::from(*low));
    let ends = ranges.iter().map(|(_, high)| u32::from(*high) + 1);
    let cuts: Vec<u32> = starts.chain(ends).collect::<BTreeSet<_>>().into_iter().collect();
    let mut groups: BTreeMap<BTreeSet<(u16, u16)>, PortGroup> = BTreeMap::new();
    for cut in cuts.windows(2) {
        let (Ok(low), Ok(high)) = (u16::try_from(cut[0]), u16::try_from(cut[1] - 1)) else {
            continue;
        };
        let containing = ranges.iter().filter(|(from, to)| *from <= low && high <= *to);
        let key: BTreeSet<(u16, u16)> = containing.copied().collect();
        let Some(smallest) = key.iter().min_by_key(|(from, to)| to - from).copied() else {
            continue;
        };
        let label = port_label(protocol, smallest);
        let group = |containing| PortGroup {
            label,
            protocol,
            ranges: Vec::new(),
            containing,
            cut_off: false,
        };
        groups.entry(key.clone()).or_insert_with(|| group(key)).ranges.push((low, high));
    }
    groups.into_values().collect()
}

fn port_label(protocol: Protocol, range: (u16, u16)) -> String {
    let protocol = protocol_name(protocol);
    match range {
        (0, u16::MAX) => format!("{protocol}_any"),
        (low, high) if low == high => format!("{protocol}_{low}"),
        (low, high) => format!("{protocol}_{low}_{high}"),
    }
}

/// The protocol as CIL spells it. Profiles know TCP and UDP.
pub(crate) fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Udp => "udp",
        _ => "tcp",
    }
}
