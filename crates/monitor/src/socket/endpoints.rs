//! Labels of addresses with ports, and which of them were decided about.

use super::{SocketAsker, UnixDiag, own::OwnNames, ports::OwnPorts};
use arc_swap::ArcSwap;
use flask::{Class, LabelRules, Protocol, SecurityServer, Sid};
use labelling::Networks;
use mediation::state::MonitorState;
use rustix::io::{Errno, Result};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Labels of addresses and ports, and of the names that the sandbox itself has bound.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    networks: ArcSwap<Networks>,
    pub(super) own: OwnNames,
    pub(crate) ports: OwnPorts,
    decided: Mutex<Decided>,
}

/// The addresses that were decided about.
#[derive(Debug, Default)]
struct Decided {
    /// Each with a port, and the label that it had.
    labels: HashMap<(Class, IpAddr, u16), Sid>,
    /// There were more than are remembered.
    has_forgotten: bool,
}

impl Endpoints {
    /// Addresses that are remembered, in about 4 MiB.
    const MOST_DECIDED: usize = 65_536;

    pub(crate) fn new(rules: &LabelRules, diag: UnixDiag) -> Self {
        let networks = ArcSwap::from_pointee(Networks::new(rules));
        Self { networks, own: OwnNames::new(diag), ..Self::default() }
    }

    /// From now on these rules hold.
    pub(crate) fn change(&self, rules: &LabelRules) {
        self.networks.store(Arc::new(Networks::new(rules)));
    }

    /// The label that an address with a port had when it was last decided; `None` if it never was,
    /// or that is forgotten.
    pub(crate) fn label_before(&self, class: Class, ip: IpAddr, port: u16) -> Option<Sid> {
        self.decided().labels.get(&(class, ip, port)).copied()
    }

    /// Whether more addresses were decided than are remembered.
    pub(crate) fn has_forgotten(&self) -> bool {
        self.decided().has_forgotten
    }

    /// All addresses that were decided about, each with the label that it had.
    pub(crate) fn remembered(&self) -> Vec<((Class, IpAddr, u16), Sid)> {
        self.decided().labels.iter().map(|(key, sid)| (*key, *sid)).collect()
    }

    /// Labels what was decided as the policy in force does. What has no label any more is as good
    /// as forgotten.
    pub(crate) fn relabel(&self, state: &MonitorState) {
        for ((class, ip, port), _) in self.remembered() {
            let sid = self.label(state, class, ip, port);
            let mut decided = self.decided();
            if let Ok(sid) = sid {
                decided.labels.insert((class, ip, port), sid);
            } else {
                decided.labels.remove(&(class, ip, port));
                decided.has_forgotten = true;
            }
        }
    }

    /// The label of an address with a port.
    pub(crate) fn label(
        &self,
        state: &MonitorState,
        class: Class,
        ip: IpAddr,
        port: u16,
    ) -> Result<Sid> {
        label_of(&self.networks.load(), &*state.server, (class, ip, port))
    }

    /// Remembers the label that an address with a port had when it was decided.
    pub(super) fn remember(&self, address: (Class, IpAddr, u16), sid: Sid) {
        let mut decided = self.decided();
        if decided.labels.len() >= Self::MOST_DECIDED {
            *decided = Decided { has_forgotten: true, ..Decided::default() };
        }
        decided.labels.insert(address, sid);
    }

    fn decided(&self) -> MutexGuard<'_, Decided> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The label of an address with a port, as a subject sees it, also one of a run inside; it is
/// remembered.
pub(super) fn endpoint(asker: SocketAsker<'_>, class: Class, ip: IpAddr, port: u16) -> Result<Sid> {
    let endpoints = &asker.sockets.endpoints;
    let sid = endpoints.label(asker.state, class, ip, port)?;
    endpoints.remember((class, ip, port), sid);
    asker
        .labels()
        .try_compose(sid, |layer| label_of(&layer.networks, &*layer.server, (class, ip, port)))
}

fn label_of(
    networks: &Networks,
    server: &dyn SecurityServer,
    (class, ip, port): (Class, IpAddr, u16),
) -> Result<Sid> {
    let protocol = if class == Class::UdpSocket { Protocol::Udp } else { Protocol::Tcp };
    networks.endpoint(server, (protocol, ip, port)).map_err(|_| Errno::ACCESS)
}
