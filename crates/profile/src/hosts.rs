//! Which addresses the hosts of network rules stand for.

use crate::merged::Profile;
use crate::network::{Host, NetworkObject, bits, masked};
use crate::source::Sources;
use crate::variables::Variables;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// A host that network rules name, with its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedHost {
    /// As the profile names it.
    pub host: Host,
    /// Addresses and networks (address and length of prefix). Empty for a name without addresses:
    /// rules for it stand in the policy, and reach nothing.
    pub networks: Vec<(IpAddr, u8)>,
    /// Why a name has no addresses.
    pub error: Option<String>,
    /// The first file that names it; `None` where only shipped profiles and amendments do.
    pub file: Option<PathBuf>,
}

impl ResolvedHost {
    /// Whether every address of `network` is one of this host.
    #[must_use]
    pub fn contains(&self, network: (IpAddr, u8)) -> bool {
        self.networks.iter().any(|outer| contains(*outer, network))
    }

    /// Whether some address of this machine's loopback is one of this host.
    pub(crate) fn touches_loopback(&self) -> bool {
        let loopback = [(Ipv4Addr::new(127, 0, 0, 0).into(), 8), (Ipv6Addr::LOCALHOST.into(), 128)];
        self.networks.iter().any(|network| {
            loopback.iter().any(|own| contains(*network, *own) || contains(*own, *network))
        })
    }
}

fn contains((outer, length): (IpAddr, u8), (inner, inner_length): (IpAddr, u8)) -> bool {
    outer.is_ipv4() == inner.is_ipv4() && length <= inner_length && masked(inner, length) == outer
}

/// Gives the addresses of each of these host names, or why it has none.
pub type Resolver<'a> = dyn FnMut(&[&str]) -> Vec<Addresses> + 'a;

/// The addresses of a host name, or why it has none.
pub type Addresses = io::Result<Vec<IpAddr>>;

/// The resolver that is asked for no name: names of hosts stay names.
#[must_use]
pub fn unresolved(names: &[&str]) -> Vec<Addresses> {
    names.iter().map(|_| Ok(Vec::new())).collect()
}

/// Every host that `profile` names, once, with its addresses. `resolver` is asked once, for all
/// names.
pub(crate) fn resolve(
    profile: &Profile,
    sources: &Sources,
    variables: &Variables,
    resolver: &mut Resolver<'_>,
) -> Vec<ResolvedHost> {
    let mut hosts: BTreeMap<Host, Option<PathBuf>> = BTreeMap::new();
    for rule in profile.domains.iter().flat_map(|domain| &domain.network) {
        if let NetworkObject::Ip(endpoints) = &rule.target {
            let file = hosts.entry(endpoints.host.clone()).or_default();
            *file = file.take().or_else(|| sources.0.get(rule.place.file())?.path.clone());
        }
    }
    let names: Vec<&str> = hosts.keys().filter_map(looked_up).collect();
    let mut found = if names.is_empty() { Vec::new() } else { resolver(&names) }.into_iter();
    let missing = || Err(io::Error::other("it was not resolved"));
    let mut next = || found.next().unwrap_or_else(missing);
    let resolved = hosts.into_iter().map(|(host, file)| {
        let resolved = resolve_one(host, variables, &mut next);
        ResolvedHost { file, ..resolved }
    });
    resolved.collect()
}

/// The name of a host whose addresses a resolver knows.
fn looked_up(host: &Host) -> Option<&str> {
    match host {
        Host::Name(name) if name != "localhost" => Some(name),
        _ => None,
    }
}

/// `host` with its addresses; those of a name that is looked up are `found`.
pub(crate) fn resolve_one(
    host: Host,
    variables: &Variables,
    found: &mut dyn FnMut() -> Addresses,
) -> ResolvedHost {
    const LOOPBACK: [IpAddr; 2] =
        [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let mut error = None;
    let networks = match &host {
        Host::Any => {
            vec![(Ipv4Addr::UNSPECIFIED.into(), 0), (Ipv6Addr::UNSPECIFIED.into(), 0)]
        }
        Host::Network(address, length) => vec![(*address, *length)],
        Host::Nameserver => whole(variables.nameservers.clone()),
        name if looked_up(name).is_some() => whole(found().unwrap_or_else(|why| {
            error = Some(why.to_string());
            Vec::new()
        })),
        Host::Name(_) => whole(LOOPBACK.to_vec()),
    };
    ResolvedHost { host, networks, error, file: None }
}

/// Addresses as networks of one address, each once.
fn whole(mut addresses: Vec<IpAddr>) -> Vec<(IpAddr, u8)> {
    addresses.iter_mut().for_each(|address| *address = address.to_canonical());
    addresses.sort();
    addresses.dedup();
    addresses.into_iter().map(|address| (address, bits(address))).collect()
}
