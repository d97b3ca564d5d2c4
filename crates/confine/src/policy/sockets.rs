//! Sockets that do without a connect what is to be decided: sending, and taking a port.

use super::allowed;
use flask::{Class, SecurityServer, Sid, Unreachable, perm};
use serde::{Deserialize, Serialize};

/// Sockets that send to any address.
const DATAGRAMS: [Class; 4] =
    [Class::UdpSocket, Class::UnixDgramSocket, Class::RawipSocket, Class::Socket];
/// Sockets that the kernel binds to a port of its choice when they listen.
const LISTENERS: [Class; 2] = [Class::TcpSocket, Class::Socket];
/// Of them, those that reach nobody outside from a network of the run's own.
const INTERNET: [Class; 3] = [Class::UdpSocket, Class::RawipSocket, Class::TcpSocket];

/// Numbers of domains, and of the classes of sockets that they may own.
type Owners = Vec<(u32, u16)>;

/// The domains that may own such sockets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sockets {
    datagrams: Owners,
    listens: Owners,
    /// The numbers of the domains that may bind ports of the machine's loopback as the run's own.
    own_ports: Vec<u32>,
}

impl Sockets {
    pub(super) fn new(server: &dyn SecurityServer, domains: &[Sid]) -> Result<Self, Unreachable> {
        let owners = |classes: &[Class]| {
            let mut owners = Vec::new();
            for &domain in domains {
                for &class in classes {
                    if allowed(server, domain, class)?.contains(perm::socket::CREATE) {
                        owners.push((domain.get(), u16::from(class.number())));
                    }
                }
            }
            Ok(owners)
        };
        let mut own_ports = Vec::new();
        for &domain in domains {
            let tcp = allowed(server, domain, Class::TcpSocket)?;
            own_ports.extend(tcp.contains(perm::tcp_socket::LOOPBACK_BIND).then(|| domain.get()));
        }
        Ok(Self { datagrams: owners(&DATAGRAMS)?, listens: owners(&LISTENERS)?, own_ports })
    }

    /// Whether ports of the machine's loopback can be the run's own: then no two sockets may share
    /// one.
    pub(crate) fn have_own_ports(&self) -> bool {
        !self.own_ports.is_empty()
    }

    /// Whether sends to addresses are to be decided, and whether listening is. In a network of the
    /// run's own, they reach nobody else.
    pub(crate) fn decided(&self, own_network: bool) -> (bool, bool) {
        let inside = |code: u16| {
            own_network && INTERNET.iter().any(|class| u16::from(class.number()) == code)
        };
        let some = |owners: &Owners| owners.iter().any(|(_, code)| !inside(*code));
        (some(&self.datagrams), some(&self.listens))
    }

    /// What `now` gives to somebody who did not have it, if [`Self::decided`] was so at the start,
    /// and [`Self::have_own_ports`] is as it was.
    pub(crate) fn undecided(
        &self,
        now: &Self,
        (sends, listens): (bool, bool),
    ) -> Option<&'static str> {
        let new = |now: &Owners, then: &Owners| now.iter().any(|owner| !then.contains(owner));
        if !sends && new(&now.datagrams, &self.datagrams) {
            return Some(
                "datagram sockets (udp_socket, unix_dgram_socket, rawip_socket): who could make none at its start \
                 gets none, as what they send is not decided",
            );
        }
        if !listens && new(&now.listens, &self.listens) {
            return Some(
                "TCP sockets (tcp_socket): who could make none at its start gets none, as listening is not decided",
            );
        }
        (!self.have_own_ports() && now.have_own_ports()).then_some(
            "ports of its own on the machine's loopback (tcp_socket loopback_bind): its sockets may share ports with \
             others by now",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(domains: &[u32]) -> Sockets {
        let of = |class: Class| {
            domains.iter().map(|domain| (*domain, u16::from(class.number()))).collect()
        };
        Sockets {
            datagrams: of(Class::UdpSocket),
            listens: of(Class::TcpSocket),
            own_ports: vec![],
        }
    }

    #[test]
    fn ports_of_its_own_are_given_to_no_run_that_began_without() {
        let with =
            |own_ports: &[u32]| Sockets { own_ports: own_ports.to_vec(), ..sockets(&[1, 2]) };
        let decided = (true, true);
        assert!(with(&[]).undecided(&with(&[1]), decided).is_some());
        assert_eq!(with(&[1]).undecided(&with(&[1, 2]), decided), None);
        assert_eq!(with(&[1]).undecided(&with(&[]), decided), None);
    }

    #[test]
    fn on_a_loopback_of_ones_own_only_those_who_had_them_have_sockets() {
        let decided = sockets(&[1]).decided(true);
        assert_eq!(decided, (false, false));
        assert_eq!(sockets(&[1]).undecided(&sockets(&[1]), decided), None);
        assert_eq!(sockets(&[1]).undecided(&sockets(&[]), decided), None);
        assert!(sockets(&[1]).undecided(&sockets(&[1, 2]), decided).is_some());
    }

    #[test]
    fn in_the_network_of_the_machine_everything_is_decided() {
        let decided = sockets(&[1]).decided(false);
        assert_eq!(decided, (true, true));
        assert_eq!(sockets(&[1]).undecided(&sockets(&[1, 2]), decided), None);
        assert_eq!(sockets(&[]).decided(false), (false, false));
    }

    #[test]
    fn datagrams_to_names_are_decided_everywhere() {
        let class = Class::UnixDgramSocket.number().into();
        let local = Sockets { datagrams: vec![(1, class)], listens: vec![], own_ports: vec![] };
        assert_eq!(local.decided(true), (true, false));
    }
}
