//! The hosts of a profile: `/etc/hosts` as a run sees it, and those that were not found.

use crate::output::tell;
use confine::launch::Namespaces;
use monitor::visible;
use profile::Compiled;

/// The file with the hosts of the profile, so that they are found without asking a name server.
pub(super) fn text(compiled: &Compiled, namespaces: Namespaces) -> Option<String> {
    let lines: String = compiled
        .named_hosts()
        .flat_map(|(name, found)| found.into_iter().map(move |ip| format!("{ip} {name}\n")))
        .collect();
    if lines.is_empty() || !namespaces.mount {
        return None;
    }
    Some(std::fs::read_to_string("/etc/hosts").unwrap_or_default() + "\n" + &lines)
}

/// Says which hosts have no address, so that the run does not reach them.
pub(super) fn tell_missing(compiled: &Compiled) {
    let missing: Vec<_> = compiled.hosts.iter().filter(|host| host.error.is_some()).collect();
    let [first, rest @ ..] = &*missing else { return };
    let error = first.error.as_deref().unwrap_or_default();
    let names: Vec<String> = missing.iter().map(|host| host.host.to_string()).collect();
    let why = if rest.is_empty() { "" } else { "the first: " };
    tell!("dewar: not found, so not reached: {} ({why}{error})", visible(&names.join(", ")));
}
