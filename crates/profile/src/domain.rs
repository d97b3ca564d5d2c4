//! What a domain of a profile is, for those who start it and who tell of it.

use crate::guard::GuardAction;
use crate::hosts::ResolvedHost;
use crate::merged::{self, Direction};
use crate::network::NetworkObject;
use crate::rights::List;
use crate::source::Located;
use flask::Protocol;

/// Hosts with a range of ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointRule {
    /// Index into [`Compiled::hosts`](crate::Compiled::hosts).
    pub host: usize,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// First port, inclusive.
    pub low: u16,
    /// Last port, inclusive.
    pub high: u16,
}

/// A domain.
#[derive(Clone, Debug)]
pub struct Domain {
    /// As the profile names it.
    pub name: String,
    /// The type of its processes.
    pub type_name: String,
    /// Names of class `capability` that it keeps.
    pub capabilities: Vec<String>,
    /// The protocols of netlink that it may use, by name.
    pub netlink: Vec<String>,
    /// Endpoints outside that it may connect and send to.
    pub connect: Vec<EndpointRule>,
    /// Endpoints, other than those of a loopback of the run's own, that it may bind to.
    pub bind: Vec<EndpointRule>,
    /// The unix sockets that it may connect to by name, as rules spell them; with a pattern
    /// of paths where a rule has a glob.
    pub unix: Vec<String>,
    /// The abstract names that it may bind, likewise.
    pub unix_bind: Vec<String>,
    /// What happens to names that programs outside trust; `None` without a guard.
    pub guard: Option<GuardAction>,
    /// Where no guard is set: paths, or patterns of them.
    pub unguarded: Vec<String>,
    /// The programs that enter it, likewise; of the first, those that enter no other.
    pub programs: Vec<String>,
    /// The domains from which they do; `None` for all.
    pub from: Option<Vec<String>>,
    /// The domains whose environment its programs believe.
    pub believes: Vec<String>,
    /// The domains that may connect to ports that it has bound, though they have other rights.
    pub serves: Vec<String>,
    /// It has the rights to files of the first domain.
    pub inherits: bool,
}

impl Domain {
    /// Whether it needs no network at all: it may use no endpoint.
    #[must_use]
    pub fn is_offline(&self) -> bool {
        self.connect.is_empty() && self.bind.is_empty()
    }

    pub(crate) fn new(domain: &merged::Domain, type_name: String, hosts: &[ResolvedHost]) -> Self {
        let endpoints = |direction: Direction| {
            let rules = domain.network.iter().filter(|rule| rule.direction == direction);
            let rule = |rule: &merged::NetworkRule| {
                let NetworkObject::Ip(e) = &rule.target else { return None };
                let host = hosts.iter().position(|host| host.host == e.host)?;
                Some(EndpointRule { host, protocol: e.protocol, low: e.low, high: e.high })
            };
            rules.filter_map(rule).collect::<Vec<_>>()
        };
        let sockets = |direction: Direction| {
            let rules = domain.network.iter().filter(|rule| rule.direction == direction);
            let mut names: Vec<String> = rules.flat_map(|rule| rule.target.sockets()).collect();
            names.dedup();
            names
        };
        let values = |of: &[Located<String>]| of.iter().map(|it| it.value.clone()).collect();
        let entries = domain.entries.iter().filter(|entry| entry.list == List::Unguarded);
        Self {
            name: domain.name.clone(),
            type_name,
            capabilities: values(&domain.capabilities),
            netlink: domain.netlink().map_or_else(Vec::new, |(_, protocols)| protocols.to_vec()),
            connect: endpoints(Direction::Connect),
            bind: endpoints(Direction::Bind),
            unix: sockets(Direction::Connect),
            unix_bind: sockets(Direction::Bind),
            guard: domain.guard.action().map(|(action, _)| action),
            unguarded: entries.map(|entry| entry.pattern.to_string()).collect(),
            programs: domain.program_names(),
            from: domain.from.as_deref().map(values),
            believes: values(&domain.noatsecure),
            serves: values(&domain.serves),
            inherits: domain.inherit,
        }
    }
}
