//! The labels of what addresses name, as a subject sees them: also one of a run inside.

use super::{
    SocketAsker,
    label::label_of,
    peers::{abstract_label, abstract_label_by},
};
use flask::{Class, Sid};
use mediation::call::Asker;
use rustix::io::{Errno, Result};
use std::net::IpAddr;

/// The label of an address with a port, which is remembered.
pub(super) fn endpoint(asker: SocketAsker<'_>, class: Class, ip: IpAddr, port: u16) -> Result<Sid> {
    let endpoints = &asker.sockets.endpoints;
    let sid = endpoints.label(asker.state, class, ip, port)?;
    endpoints.remember((class, ip, port), sid);
    asker
        .labels()
        .try_compose(sid, |layer| label_of(&layer.networks, &*layer.server, (class, ip, port)))
}

/// The label of what `owner` inside has made, if somebody has; else `by_rule`.
pub(super) fn owned(asker: Asker<'_>, owner: Option<Sid>, by_rule: Sid) -> Result<Sid> {
    match owner {
        None => Ok(by_rule),
        Some(owner) if !asker.is_inside() => Ok(owner),
        Some(owner) => asker.state.inside.stack.owned(owner, by_rule).ok_or(Errno::ACCESS),
    }
}

/// The label, for `asker`, of an abstract name that the sandbox has not bound.
pub(super) fn abstract_label_for(asker: Asker<'_>, name: &[u8]) -> Sid {
    let outer = abstract_label(asker.state, name).1;
    asker.labels().compose(outer, |layer| abstract_label_by(&layer.labels, name))
}
