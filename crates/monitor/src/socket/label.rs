//! The labels of addresses with ports, by the rules of a security server.

use flask::{Class, Protocol, Question, SecurityServer, Sid};
use labelling::Networks;
use rustix::io::{Errno, Result};
use std::net::IpAddr;

/// The label of an address with a port, by the rules of a security server.
pub(super) fn label_of(
    networks: &Networks,
    server: &dyn SecurityServer,
    (class, ip, port): (Class, IpAddr, u16),
) -> Result<Sid> {
    let question = Question {
        ssid: networks.node(ip),
        tsid: networks.port(protocol(class), port),
        tclass: Class::Endpoint,
    };
    server.compute_create(question, None).map_err(|_| Errno::ACCESS)
}

fn protocol(class: Class) -> Protocol {
    if class == Class::UdpSocket { Protocol::Udp } else { Protocol::Tcp }
}
