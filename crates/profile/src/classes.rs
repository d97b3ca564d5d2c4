//! Names in profiles that stand for classes and permissions of the policy.

use crate::error::{Problem, closest};
use flask::Class;

/// The protocols of netlink as profiles name them, each with the class of its sockets.
const PROTOCOLS: [(&str, &str); 10] = [
    (crate::document::ROUTE, "netlink_socket"),
    ("sock_diag", "netlink_tcpdiag_socket"),
    ("usersock", "netlink_usersock_socket"),
    ("xfrm", "netlink_xfrm_socket"),
    ("audit", "netlink_audit_socket"),
    ("connector", "netlink_connector_socket"),
    ("netfilter", "netlink_netfilter_socket"),
    ("kobject_uevent", "netlink_kobject_uevent_socket"),
    ("generic", "netlink_generic_socket"),
    ("crypto", "netlink_crypto_socket"),
];

/// The name that profiles give the protocol of a class of netlink sockets.
#[must_use]
pub fn netlink_protocol(class: &str) -> Option<&'static str> {
    PROTOCOLS.iter().find(|(_, known)| *known == class).map(|(name, _)| *name)
}

/// The class of the sockets of a protocol of netlink, by the name that profiles give it.
pub(crate) fn netlink_class(name: &str) -> Result<&'static str, Problem> {
    let known = PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, class)| *class);
    known.ok_or_else(|| {
        let names = PROTOCOLS.map(|(name, _)| name);
        let help = match closest(name, names.into_iter()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("they are {}", names.join(", ")),
        };
        Problem::bad(name, "a protocol of netlink", help)
    })
}

/// Whether a capability has that name.
pub(crate) fn check_capability(name: &str) -> Result<(), Problem> {
    let known = Class::Capability.permissions();
    if known.contains(&name) {
        return Ok(());
    }
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix("cap_").unwrap_or(&lower);
    let help = match closest(bare, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "write the name without `CAP_`, in lower case: `net_bind_service`".to_owned(),
    };
    Err(Problem::bad(name, "a capability", help))
}
