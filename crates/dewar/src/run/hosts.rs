//! The hosts of a profile: `/etc/hosts` as a run sees it, and those that were not found.

use crate::output::tell;
use confine::launch::Namespaces;
use monitor::visible;
use profile::{Compiled, ResolvedHost};

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

/// Says which hosts have no address, so that the run does not reach them: those that a file of the
/// user's names, or all of them.
pub(super) fn tell_missing(compiled: &Compiled, all: bool) {
    let is_told = |host: &&ResolvedHost| host.error.is_some() && (all || host.file.is_some());
    let missing: Vec<_> = compiled.hosts.iter().filter(is_told).collect();
    let [first, rest @ ..] = &*missing else { return };
    let error = first.error.as_deref().unwrap_or_default();
    let names: Vec<String> = missing.iter().map(|host| host.host.to_string()).collect();
    let why = if rest.is_empty() { "" } else { "the first: " };
    tell!("dewar: not found, so not reached: {} ({why}{error})", visible(&names.join(", ")));
}
