//! `/etc/hosts` as a run sees it.

use confine::launch::Namespaces;
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
