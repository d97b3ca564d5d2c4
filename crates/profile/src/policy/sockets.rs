//! Sockets: which families a domain may use, and which endpoints and names it may reach.

use super::endpoints::{self, AddressGroup, PortGroup, protocol_name};
use super::files::Node;
use super::writer::{Writer, object};
use crate::hosts::ResolvedHost;
use crate::merge::{Direction, Domain, NetworkRule, Profile};
use crate::network::{AbstractName, Endpoints, Flavour, Target, netmask};
use crate::pattern::Pattern;
use crate::source::Place;
use flask::Protocol;

/// Unix sockets of its own: socket pairs, and names that the domain itself has bound, which carry its label. No
/// datagrams: they reach any name without connecting, so with them every send would have to be decided.
const UNIX: &[(&str, &str)] = &[("unix_stream_socket", "create bind connect listen connectto")];
/// The same for datagrams, if a rule names some.
const DATAGRAM: &[(&str, &str)] = &[("unix_dgram_socket", "create bind connect sendto")];
const TCP: &[(&str, &str)] = &[("tcp_socket", "create bind connect listen")];
const UDP: &[(&str, &str)] = &[("udp_socket", "create bind connect")];
const NETLINK: &[(&str, &str)] = &[("netlink_socket", "create bind connect")];
const NAME_CONNECT: &[(&str, &str)] = &[("endpoint", "name_connect sendto")];
const NAME_BIND: &[(&str, &str)] = &[("endpoint", "name_bind")];
const STREAM_CONNECT: &[(&str, &str)] = &[("unix_stream_socket", "connectto")];
const STREAM_BIND: &[(&str, &str)] = &[("unix_stream_socket", "bind")];
const DATAGRAM_CONNECT: &[(&str, &str)] = &[("unix_dgram_socket", "sendto")];
const DATAGRAM_BIND: &[(&str, &str)] = &[("unix_dgram_socket", "bind")];

/// What a rule for a unix name grants.
fn unix_rights(flavour: Flavour, direction: Direction) -> &'static [(&'static str, &'static str)] {
    match (flavour, direction) {
        (Flavour::Stream, Direction::Connect) => STREAM_CONNECT,
        (Flavour::Stream, Direction::Bind) => STREAM_BIND,
        (Flavour::Datagram, Direction::Connect) => DATAGRAM_CONNECT,
        (Flavour::Datagram, Direction::Bind) => DATAGRAM_BIND,
    }
}

/// Writes the rules for sockets. `types` are the types of the domains.
pub(crate) fn write(
    profile: &Profile,
    types: &[String],
    nodes: &[Node],
    hosts: &[ResolvedHost],
    out: &mut Writer,
) {
    out.heading("sockets: families");
    for (domain, name) in profile.domains.iter().zip(types) {
        write_families(domain, name, out);
    }
    write_endpoints(profile, types, hosts, out);
    write_abstract(profile, types, out);
    out.heading("sockets: names in the file system");
    for (index, domain) in profile.domains.iter().enumerate() {
        for (rule, flavour, patterns) in unix_rules(domain) {
            let rights = unix_rights(flavour, rule.direction);
            for node in nodes.iter().filter(|node| reaches(patterns, node, index)) {
                out.allow(Some(rule.place), &types[index], &node.type_name, rights);
            }
        }
    }
}

fn write_families(domain: &Domain, name: &str, out: &mut Writer) {
    out.allow(None, name, "self", UNIX);
    let mut rules = domain.network.iter();
    if let Some(rule) = rules.find(|rule| is_datagram(&rule.target)) {
        out.allow(Some(rule.place), name, "self", DATAGRAM);
    }
    for (protocol, rules) in [(Protocol::Tcp, TCP), (Protocol::Udp, UDP)] {
        let mut endpoints = ip_rules(domain);
        if let Some((place, _, _)) = endpoints.find(|(_, _, rule)| rule.protocol == protocol) {
            out.allow(Some(place), name, "self", rules);
        }
    }
    if let Some(place) = domain.netlink() {
        out.allow(Some(place), name, "self", NETLINK);
    }
}

fn is_datagram(target: &Target) -> bool {
    matches!(target, Target::Unix(Flavour::Datagram, _) | Target::Abstract(Flavour::Datagram, _))
}

fn ip_rules(domain: &Domain) -> impl Iterator<Item = (Place, Direction, &Endpoints)> {
    domain.network.iter().filter_map(|rule| match &rule.target {
        Target::Ip(endpoints) => Some((rule.place, rule.direction, endpoints)),
        _ => None,
    })
}

fn unix_rules(domain: &Domain) -> impl Iterator<Item = (&NetworkRule, Flavour, &[Pattern])> {
    domain.network.iter().filter_map(|rule| match &rule.target {
        Target::Unix(flavour, patterns) => Some((rule, *flavour, patterns.as_slice())),
        _ => None,
    })
}

/// Whether one of `patterns` covers `node`, and the domain is not kept from it by something more specific.
fn reaches(patterns: &[Pattern], node: &Node, domain: usize) -> bool {
    let rights = &node.rights[domain];
    let kept = rights.denied.or(rights.hidden).is_some();
    patterns.iter().any(|p| *p == node.pattern || (!kept && p.covers(&node.pattern)))
}

fn write_endpoints(profile: &Profile, types: &[String], hosts: &[ResolvedHost], out: &mut Writer) {
    let addresses = endpoints::address_groups(hosts);
    let rules = profile.domains.iter().flat_map(ip_rules).map(|(_, _, endpoints)| endpoints);
    let ports = endpoints::port_groups(rules);
    out.heading("sockets: addresses and ports");
    let nodes: Vec<String> = addresses.iter().map(|group| write_addresses(group, out)).collect();
    let port_types: Vec<String> = ports.iter().map(|group| write_ports(group, out)).collect();
    out.heading("sockets: endpoints, pairs of an address and a port");
    for (address, node) in addresses.iter().zip(&nodes) {
        for (port, port_type) in ports.iter().zip(&port_types) {
            write_pair(profile, types, (address, node), (port, port_type), out);
        }
    }
}

fn write_addresses(group: &AddressGroup, out: &mut Writer) -> String {
    let name = out.names.fresh(&group.label, "node_t");
    out.object_type(&name);
    if group.networks.is_empty() {
        out.line(format_args!("; {} has no address (yet)", group.label));
    }
    for (address, length) in &group.networks {
        let (mask, context) = (netmask(*address, *length), object(&name));
        out.line(format_args!("(nodecon ({address}) ({mask}) {context})"));
    }
    name
}

fn write_ports(group: &PortGroup, out: &mut Writer) -> String {
    let name = out.names.fresh(&group.label, "port_t");
    out.object_type(&name);
    for (low, high) in &group.ranges {
        let (protocol, context) = (protocol_name(group.protocol), object(&name));
        out.line(format_args!("(portcon {protocol} ({low} {high}) {context})"));
    }
    name
}

/// The type of what both groups make together, if a rule speaks about it.
fn write_pair(
    profile: &Profile,
    types: &[String],
    (address, node): (&AddressGroup, &str),
    (port, port_type): (&PortGroup, &str),
    out: &mut Writer,
) {
    let mut pair: Option<String> = None;
    for (domain, domain_type) in profile.domains.iter().zip(types) {
        let mut granted = Vec::new();
        for (place, direction, rule) in ip_rules(domain) {
            if !address.is_in(rule) || !port.is_in(rule) || granted.contains(&direction) {
                continue;
            }
            granted.push(direction);
            let pair = pair.get_or_insert_with(|| {
                let label = format!("{}_{}", address.label, port.label);
                let name = out.names.fresh(&label, "t");
                out.object_type(&name);
                out.rule(
                    Some(place),
                    format_args!("(typetransition {node} {port_type} endpoint {name})"),
                );
                name
            });
            let rules = if direction == Direction::Connect { NAME_CONNECT } else { NAME_BIND };
            out.allow(Some(place), domain_type, pair, rules);
        }
    }
}

/// Abstract names carry the label of the rule for `@NAME`, or that of the initial SID `any_socket`.
fn write_abstract(profile: &Profile, types: &[String], out: &mut Writer) {
    out.heading("sockets: abstract names");
    let mut names: Vec<(AbstractName, String)> = Vec::new();
    let rules = profile.domains.iter().flat_map(|domain| &domain.network);
    for rule in rules {
        let Target::Abstract(_, Some(name)) = &rule.target else { continue };
        if names.iter().all(|(known, _)| known != name) {
            let type_name = out.names.fresh(&name.label(), "t");
            out.object_type(&type_name);
            let (regex, context) = (name.regex(), object(&type_name));
            let line = format_args!("(filecon \"{regex}\" socket {context})");
            out.rule(Some(rule.place), line);
            for domain in types {
                let visible = super::files::visible(domain);
                out.line(format_args!("(typeattributeset {visible} ({type_name}))"));
            }
            names.push((name.clone(), type_name));
        }
    }
    for (domain, domain_type) in profile.domains.iter().zip(types) {
        for rule in &domain.network {
            let Target::Abstract(flavour, name) = &rule.target else { continue };
            let covers = |other: &AbstractName| name.as_ref().is_none_or(|n| n.covers(other));
            let mut targets: Vec<&str> = Vec::new();
            if name.is_none() {
                targets.push("any_socket_t");
            }
            targets.extend(names.iter().filter(|(n, _)| covers(n)).map(|(_, t)| t.as_str()));
            let rules = unix_rights(*flavour, rule.direction);
            for target in targets {
                out.allow(Some(rule.place), domain_type, target, rules);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::Class;

    #[test]
    fn every_class_and_permission_in_the_tables_exists() {
        let unix = [STREAM_CONNECT, STREAM_BIND, DATAGRAM_CONNECT, DATAGRAM_BIND].concat();
        let tables = [UNIX, DATAGRAM, TCP, UDP, NETLINK, NAME_CONNECT, NAME_BIND, unix.as_slice()];
        for (class, permissions) in tables.concat() {
            let class = Class::by_name(class).expect(class);
            for permission in permissions.split(' ') {
                assert!(class.permission(permission).is_some(), "{class} {permission}");
            }
        }
    }
}
