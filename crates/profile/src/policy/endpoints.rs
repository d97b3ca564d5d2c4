//! Labels of addresses and ports: as few types as the network rules can tell apart.
//!
//! An address and a port have one label each, so overlapping rules are cut into disjoint groups: two addresses
//! share a type when the same hosts of the profile contain them, two ports when the same ranges do.

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
    /// The hosts that contain them.
    hosts: BTreeSet<Host>,
}

/// Ports that share a type.
#[derive(Debug)]
pub(crate) struct PortGroup {
    /// A name for people.
    pub(crate) label: String,
    pub(crate) protocol: Protocol,
    pub(crate) ranges: Vec<(u16, u16)>,
}

impl AddressGroup {
    /// Whether all its addresses belong to the host of `rule`.
    pub(crate) fn is_in(&self, rule: &Endpoints) -> bool {
        self.hosts.contains(&rule.host)
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

/// The groups of all addresses that `hosts` contain.
pub(crate) fn address_groups(hosts: &[ResolvedHost]) -> Vec<AddressGroup> {
    let mut groups: BTreeMap<BTreeSet<Host>, AddressGroup> = BTreeMap::new();
    let networks: BTreeSet<(IpAddr, u8)> = hosts.iter().flat_map(|h| h.networks.clone()).collect();
    for network in networks {
        let containing = hosts.iter().filter(|host| host.contains(network));
        let key: BTreeSet<Host> = containing.map(|host| host.host.clone()).collect();
        let label = hosts.iter().filter(|host| host.networks.contains(&network));
        let label = label.map(|host| label_of(&host.host)).collect::<Vec<_>>().join("_and_");
        let group = groups.entry(key.clone()).or_insert_with(|| AddressGroup {
            label,
            networks: Vec::new(),
            hosts: key,
        });
        group.networks.push(network);
    }
    // A name without addresses has a type of its own, so that the policy shows what it would reach.
    for host in hosts.iter().filter(|host| host.networks.is_empty()) {
        let any = hosts.iter().filter(|other| other.host == Host::Any);
        let key: BTreeSet<Host> =
            any.map(|any| any.host.clone()).chain([host.host.clone()]).collect();
        let label = label_of(&host.host);
        groups.insert(key.clone(), AddressGroup { label, networks: Vec::new(), hosts: key });
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

/// The groups of all ports that `rules` name.
pub(crate) fn port_groups<'a>(rules: impl Iterator<Item = &'a Endpoints>) -> Vec<PortGroup> {
    let (mut tcp, mut udp) = (BTreeSet::new(), BTreeSet::new());
    for rule in rules {
        match rule.protocol {
            Protocol::Udp => udp.insert((rule.low, rule.high)),
            _ => tcp.insert((rule.low, rule.high)),
        };
    }
    let mut groups = groups_of(Protocol::Tcp, &tcp);
    groups.extend(groups_of(Protocol::Udp, &udp));
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
        let group =
            groups.entry(key).or_insert_with(|| PortGroup { label, protocol, ranges: Vec::new() });
        group.ranges.push((low, high));
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
