//! `/etc/hosts` as a run sees it.

use confine::launch::Namespaces;
use profile::Compiled;

/// The file with the hosts of the profile, so that they are found without asking a name server.
pub(super) fn text(compiled: &Compiled, namespaces: Namespaces) -> Option<String> {
    let named = compiled.hosts.iter().filter_map(|host| match &host.host {
        profile::Host::Name(name) => Some((name, &host.networks)),
        _ => None,
    });
    let lines: String = named
        .flat_map(|(name, networks)| networks.iter().map(move |(ip, _)| format!("{ip} {name}\n")))
        .collect();
    if lines.is_empty() || !namespaces.mount {
        return None;
    }
    Some(std::fs::read_to_string("/etc/hosts").unwrap_or_default() + "\n" + &lines)
}
