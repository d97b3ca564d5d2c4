//! Sockets: which families a domain may use, and which endpoints and names it may reach.

use super::abstract_names;
use super::endpoints::{self, AddressGroup, PortGroup, protocol_name};
use super::files::Node;
use super::standing::{Standing, Taken, about};
use super::writer::{Writer, object};
use crate::amendment::{AmendmentKind, Clause, ClauseObject, everything};
use crate::classes::netlink_class;
use crate::hosts::ResolvedHost;
use crate::merged::{Direction, Domain, NetworkRule, Profile, Said};
use crate::network::{Endpoints, Flavour, NetworkObject, netmask};
use crate::pattern::Pattern;
use crate::source::TextSpan;
use flask::Protocol;

/// Unix sockets of its own: socket pairs, and names that the domain itself has bound, which carry
/// its label. No datagrams: they reach any name without connecting, so with them every send has to
/// be decided.
const UNIX: &[(&str, &str)] = &[("unix_stream_socket", "create bind connect listen connectto")];
/// The same for datagrams, if some rule is about datagrams, and so every send is decided.
const DATAGRAM: &[(&str, &str)] = &[("unix_dgram_socket", "create bind connect sendto")];
const TCP: &[(&str, &str)] = &[("tcp_socket", "create bind connect listen")];
/// Ports of the machine's loopback that the run has bound itself.
const OWN_PORTS: &[(&str, &str)] = &[("tcp_socket", "loopback_bind")];
const OWN_PORTS_CONNECT: &[(&str, &str)] = &[("tcp_socket", "connectto")];
const UDP: &[(&str, &str)] = &[("udp_socket", "create bind connect")];
const NETLINK: &str = "create bind connect";
const NAME_CONNECT: &[(&str, &str)] = &[("endpoint", "name_connect sendto")];
const NAME_BIND: &[(&str, &str)] = &[("endpoint", "name_bind")];
pub(super) const STREAM_CONNECT: &[(&str, &str)] = &[("unix_stream_socket", "connectto")];
const STREAM_BIND: &[(&str, &str)] = &[("unix_stream_socket", "bind")];
const DATAGRAM_CONNECT: &[(&str, &str)] = &[("unix_dgram_socket", "sendto")];
const DATAGRAM_BIND: &[(&str, &str)] = &[("unix_dgram_socket", "bind")];

/// What a rule for a unix name grants.
pub(super) fn unix_rights(
    flavour: Flavour,
    direction: Direction,
) -> &'static [(&'static str, &'static str)] {
    match (flavour, direction) {
        (Flavour::Stream, Direction::Connect) => STREAM_CONNECT,
        (Flavour::Stream, Direction::Bind) => STREAM_BIND,
        (Flavour::Datagram, Direction::Connect) => DATAGRAM_CONNECT,
        (Flavour::Datagram, Direction::Bind) => DATAGRAM_BIND,
    }
}

/// Writes the rules for sockets; what amendments took of them.
pub(crate) fn write(
    (profile, types): (&Profile, &[String]),
    nodes: &[Node],
    hosts: &[ResolvedHost],
    clauses: &[Clause],
    out: &mut Writer,
) -> Taken {
    out.heading("sockets: families");
    // A family that no domain has when a run starts is not guarded there, so amendments give it to
    // nobody.
    let used = |given: &Endpoints| {
        let mut rules = profile.domains.iter().flat_map(ip_rules);
        rules.any(|(_, _, rule)| rule.protocol == given.protocol)
    };
    let datagrams = profile.domains.iter().flat_map(|domain| &domain.network);
    let datagrams = datagrams.map(|rule| (rule.place, &rule.target));
    // In a network of its own, nothing is to be decided about datagrams to addresses.
    let decides = |target: &NetworkObject| {
        is_datagram(target)
            && !(profile.private_loopback == Some(true) && matches!(target, NetworkObject::Ip(_)))
    };
    let datagrams = datagrams.filter(|(_, target)| decides(target)).map(|it| it.0).next();
    let has_own_ports = profile.own_ports.is_some();
    let said: Vec<_> = profile.domains.iter().filter(|_| has_own_ports).map(Domain::said).collect();
    for (index, (domain, name)) in profile.domains.iter().zip(types).enumerate() {
        if everything(clauses, index).is_none() {
            let given = about(clauses, index).filter(|clause| clause.kind == AmendmentKind::Grant);
            let given: Vec<_> =
                given.flat_map(endpoints_of).filter(|(_, rule)| used(rule)).collect();
            write_families((domain, name), datagrams, &given, out);
            if let Some(place) = own_ports(profile, clauses, index) {
                out.allow(Some(place), name, "self", TCP);
                out.allow(Some(place), name, "self", OWN_PORTS);
                let owners = said.iter().zip(&profile.domains).zip(types);
                let is_served = |(other, owner): (&Said, &Domain)| {
                    said[index].is_equal_to(other) || owner.serves(&domain.name)
                };
                for (_, owner) in owners.filter(|(owner, _)| is_served(*owner)) {
                    out.allow(Some(place), name, owner, OWN_PORTS_CONNECT);
                }
            }
        }
    }
    let mut taken = write_endpoints((profile, types), hosts, clauses, out);
    taken.extend(abstract_names::write((profile, types), clauses, out));
    out.heading("sockets: names in the file system");
    for (index, domain) in profile.domains.iter().enumerate() {
        for (rule, flavour, patterns) in unix_rules(domain) {
            let rights = unix_rights(flavour, rule.direction);
            for node in nodes.iter().filter(|node| reaches(patterns, node, index)) {
                out.allow(Some(rule.place), &types[index], &node.type_name, rights);
            }
        }
        for node in nodes {
            let given = node.taken[index].connect_given.filter(|_| !is_withheld(node, index));
            if given.is_some() {
                out.allow(given, &types[index], &node.type_name, STREAM_CONNECT);
            }
        }
    }
    taken
}

/// What grants a domain ports of its own on the loopback, if no clause has taken some address
/// there: whose port is at which, no rule can say.
fn own_ports(profile: &Profile, clauses: &[Clause], domain: usize) -> Option<TextSpan> {
    let is_about = |object: &ClauseObject| match object {
        ClauseObject::Endpoints(host, rules) => {
            host.touches_loopback() && rules.iter().any(|rule| rule.protocol == Protocol::Tcp)
        }
        _ => false,
    };
    Standing::new(profile.own_ports, about(clauses, domain), is_about, false).granted
}

fn is_withheld(node: &Node, domain: usize) -> bool {
    node.rights[domain].withheld().is_some()
}

fn write_families(
    (domain, name): (&Domain, &str),
    datagrams: Option<TextSpan>,
    given: &[(TextSpan, &Endpoints)],
    out: &mut Writer,
) {
    out.allow(None, name, "self", UNIX);
    if let Some(place) = datagrams {
        out.allow(Some(place), name, "self", DATAGRAM);
    }
    for (protocol, rules) in [(Protocol::Tcp, TCP), (Protocol::Udp, UDP)] {
        let endpoints = ip_rules(domain).map(|(place, _, rule)| (place, rule));
        let mut endpoints = endpoints.chain(given.iter().copied());
        if let Some((place, _)) = endpoints.find(|(_, rule)| rule.protocol == protocol) {
            out.allow(Some(place), name, "self", rules);
        }
    }
    if let Some((place, protocols)) = domain.netlink() {
        let classes = protocols.iter().filter_map(|protocol| netlink_class(protocol).ok());
        for class in classes {
            out.allow(Some(place), name, "self", &[(class, NETLINK)]);
        }
    }
}

/// The endpoints of a clause about some.
fn endpoints_of(clause: &Clause) -> impl Iterator<Item = (TextSpan, &Endpoints)> {
    let endpoints = match &clause.object {
        ClauseObject::Endpoints(_, endpoints) => endpoints.as_slice(),
        _ => &[],
    };
    endpoints.iter().map(|endpoints| (clause.place, endpoints))
}

/// Whether a rule lets some socket send to any address, so that every send is decided in that run.
fn is_datagram(target: &NetworkObject) -> bool {
    match target {
        NetworkObject::Ip(endpoints) => endpoints.protocol == Protocol::Udp,
        NetworkObject::Unix(flavour, _) | NetworkObject::Abstract(flavour, _) => {
            *flavour == Flavour::Datagram
        }
    }
}

fn ip_rules(domain: &Domain) -> impl Iterator<Item = (TextSpan, Direction, &Endpoints)> {
    domain.network.iter().filter_map(|rule| match &rule.target {
        NetworkObject::Ip(endpoints) => Some((rule.place, rule.direction, endpoints)),
        _ => None,
    })
}

fn unix_rules(domain: &Domain) -> impl Iterator<Item = (&NetworkRule, Flavour, &[Pattern])> {
    domain.network.iter().filter_map(|rule| match &rule.target {
        NetworkObject::Unix(flavour, patterns) => Some((rule, *flavour, patterns.as_slice())),
        _ => None,
    })
}

/// Whether one of `patterns` covers `node`, and the domain is not kept from it by something more
/// specific.
fn reaches(patterns: &[Pattern], node: &Node, domain: usize) -> bool {
    let kept = is_withheld(node, domain);
    let covers = |p: &Pattern| *p == node.part_of || (!kept && p.covers(&node.part_of));
    node.taken[domain].connect.is_none() && patterns.iter().any(covers)
}

fn write_endpoints(
    (profile, types): (&Profile, &[String]),
    hosts: &[ResolvedHost],
    clauses: &[Clause],
    out: &mut Writer,
) -> Taken {
    let amended: Vec<(&ResolvedHost, &[Endpoints])> =
        clauses.iter().filter_map(endpoints_with_host).collect();
    let amended_hosts: Vec<&ResolvedHost> = amended.iter().map(|(host, _)| *host).collect();
    let addresses = endpoints::address_groups(hosts, &amended_hosts);
    let rules = profile.domains.iter().flat_map(ip_rules).map(|(_, _, endpoints)| endpoints);
    let amended_rules: Vec<&Endpoints> = amended.iter().flat_map(|(_, rules)| *rules).collect();
    let ports = endpoints::port_groups(&rules.collect::<Vec<_>>(), &amended_rules);
    out.heading("sockets: addresses and ports");
    let nodes: Vec<String> = addresses.iter().map(|group| write_addresses(group, out)).collect();
    let port_types: Vec<String> = ports.iter().map(|group| write_ports(group, out)).collect();
    out.heading("sockets: endpoints, pairs of an address and a port");
    let mut pairs = Pairs { profile, types, hosts, clauses, taken: Vec::new() };
    for (address, node) in addresses.iter().zip(&nodes) {
        for (port, port_type) in ports.iter().zip(&port_types) {
            pairs.write((address, node), (port, port_type), out);
        }
    }
    pairs.taken
}

fn endpoints_with_host(clause: &Clause) -> Option<(&ResolvedHost, &[Endpoints])> {
    match &clause.object {
        ClauseObject::Endpoints(host, endpoints) => Some((host, endpoints)),
        _ => None,
    }
}

fn write_addresses(group: &AddressGroup, out: &mut Writer) -> String {
    let name = out.names.fresh(&group.label, if group.cut_off { "_node_t" } else { "node_t" });
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
    let name = out.names.fresh(&group.label, if group.cut_off { "_port_t" } else { "port_t" });
    out.object_type(&name);
    for (low, high) in &group.ranges {
        let (protocol, context) = (protocol_name(group.protocol), object(&name));
        out.line(format_args!("(portcon {protocol} ({low} {high}) {context})"));
    }
    name
}

/// Writes pairs of an address and a port.
struct Pairs<'a> {
    profile: &'a Profile,
    types: &'a [String],
    hosts: &'a [ResolvedHost],
    clauses: &'a [Clause],
    taken: Taken,
}

impl Pairs<'_> {
    /// Writes the type of what both groups make together, if something speaks about it.
    fn write(
        &mut self,
        (address, node): (&AddressGroup, &str),
        (port, port_type): (&PortGroup, &str),
        out: &mut Writer,
    ) {
        let mut pair: Option<String> = None;
        for (index, domain_type) in self.types.iter().enumerate() {
            for direction in [Direction::Connect, Direction::Bind] {
                let standing = self.standing(index, direction, address, port);
                let Some(place) = standing.granted.or(standing.taken) else { continue };
                let pair = pair.get_or_insert_with(|| {
                    let label = format!("{}_{}", address.label, port.label);
                    let cut_off = address.cut_off || port.cut_off;
                    let name = out.names.fresh(&label, if cut_off { "_t" } else { "t" });
                    out.object_type(&name);
                    out.rule(
                        Some(place),
                        format_args!("(typetransition {node} {port_type} endpoint {name})"),
                    );
                    name
                });
                if standing.granted.is_some() {
                    let rules =
                        if direction == Direction::Connect { NAME_CONNECT } else { NAME_BIND };
                    out.allow(Some(place), domain_type, pair, rules);
                } else {
                    self.taken.push((index, pair.clone(), place));
                }
            }
        }
    }

    fn standing(
        &self,
        domain: usize,
        direction: Direction,
        address: &AddressGroup,
        port: &PortGroup,
    ) -> Standing {
        let mut rules = ip_rules(&self.profile.domains[domain]).filter(|rule| rule.1 == direction);
        let granted = rules.find(|(_, _, rule)| {
            let host = self.hosts.iter().position(|host| host.host == rule.host);
            host.is_some_and(|host| address.is_in(host)) && port.is_in(rule)
        });
        let in_clause = |object: &ClauseObject| match object {
            ClauseObject::Endpoints(host, rules) => {
                address.lies_in(host) && rules.iter().any(|rule| port.is_in(rule))
            }
            _ => false,
        };
        let granted = granted.map(|(place, _, _)| place);
        let may_give = direction == Direction::Connect;
        Standing::new(granted, about(self.clauses, domain), in_clause, may_give)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flask::Class;

    #[test]
    fn every_class_and_permission_in_the_tables_exists() {
        let unix = [STREAM_CONNECT, STREAM_BIND, DATAGRAM_CONNECT, DATAGRAM_BIND].concat();
        let tables = [
            UNIX,
            DATAGRAM,
            TCP,
            OWN_PORTS,
            OWN_PORTS_CONNECT,
            UDP,
            NAME_CONNECT,
            NAME_BIND,
            unix.as_slice(),
        ];
        for (class, permissions) in tables.concat() {
            let class = Class::by_name(class).expect(class);
            for permission in permissions.split(' ') {
                assert!(class.permission(permission).is_some(), "{class} {permission}");
            }
        }
    }
}
