//! Why no line is proposed for a denial.

use crate::names::asks_for_names;
use learn::{Need, Scope, What};
use monitor::Record;
use std::collections::BTreeSet;

/// What to do where a program was denied a socket, before it said for what.
pub(crate) const NAME_A_HOST: &str = "name what it is to reach, a host and its port, as in network.connect = \
     [\"example.org:443\"]; network.loopback = \"own\" is for servers of the run itself";

/// What is said of a socket for messages that was to be made: to whom they would have gone, it has
/// not said.
pub(crate) const NAME_A_SOCKET: &str = "network.connect = [\"unixgram:${workspace}\"], or for the log \
     network.connect = [\"unixgram:/dev/log\"]";

/// What is said of what the permissions of files refuse, whatever a profile grants.
pub(crate) const NATIVELY: &str =
    "you may not either: the permissions of the file system refuse it without Dewar, too";

/// Why nothing more is granted to who asked for the address of a host that its command names: it
/// was granted that, and there was no address.
pub(crate) fn not_found(
    record: &Record,
    named: &BTreeSet<String>,
    unfound: &BTreeSet<(String, String)>,
) -> Option<String> {
    let domain = flask::domain_of(&record.scontext);
    let is_lost = |endpoint: &&str| {
        let mut lost = unfound.iter().filter(|(of, _)| of == domain);
        lost.any(|(_, host)| endpoint.rsplit_once(':').is_some_and(|(name, _)| name == host))
    };
    let lost: Vec<&str> = named.iter().map(String::as_str).filter(is_lost).collect();
    (asks_for_names(record) && !lost.is_empty()).then(|| {
        let lost = lost.join(" ");
        format!("{lost} is granted, and had no address when the run started; once it has, run the command again")
    })
}

/// Why no line is proposed for something that a list could hold.
pub(crate) fn refusal(need: &Need, scope: &Scope) -> String {
    let path = || need.what.path().map(|path| path.display().to_string());
    let address = need.what.address().or_else(path).unwrap_or_default();
    if let Some(gives) = scope.secrets.power(&address) {
        let name = profile::plain(&address);
        return format!("whoever connects gets {gives}; to allow it, name it in full: {name}");
    }
    match need.what.path() {
        Some(path) if scope.secrets.is_one(path) => {
            format!(
                "it is a secret, or looks like one; to allow it, name it in full: {}",
                path.display()
            )
        }
        Some(path) => {
            let path = path.display();
            let how = match need.what {
                What::Write(_) => format!("by `dewar allow {path}/NAME`, or in a profile"),
                _ => "in a profile".to_owned(),
            };
            format!("all of {path} would be granted; name what is needed of it {how}")
        }
        None => "no line of a profile can say it".into(),
    }
}

/// Why no pattern names an object, and what to do; `None` if one does.
pub(crate) fn unnameable(object: &str) -> Option<&'static str> {
    let is_odd = |c: char| !flask::is_quotable(c) || c == char::REPLACEMENT_CHARACTER;
    (object.starts_with('/') && object.contains(is_odd)).then_some(
        "no line names it: its name holds a control character, a double quote or bytes that are not UTF-8; grant the \
         directory, or give it another name",
    )
}

/// The entry that grants sockets of a class, if it is one of netlink.
pub(crate) fn netlink_line(class: &str) -> Option<String> {
    profile::netlink_protocol(class).map(|name| format!("network.netlink = [\"{name}\"]"))
}

pub(crate) fn unsayable(record: &Record) -> String {
    if let Some(why) = unnameable(&record.object) {
        return why.into();
    }
    match record.tclass.as_str() {
        "process" => {
            "no profile grants it: it is about a process outside, or of another domain".into()
        }
        "unix_dgram_socket" => NAME_A_SOCKET.into(),
        class => {
            netlink_line(class).unwrap_or_else(|| format!("no profile grants that on a {class}"))
        }
    }
}
