//! What `network.loopback` stands for: a loopback of the run's own, that of the machine, or the
//! ports of that which the run has bound itself.

use crate::error::{Problem, Reporter};
use crate::merged::{Direction, Loopback, NetworkRule, Profile};
use crate::network::{Endpoints, Host, NetworkObject};
use crate::source::TextSpan;
use flask::Protocol;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SHARED: &str = "a run that reaches endpoints outside shares their network, and so the loopback of this machine. Write \
                      `loopback = \"own\"` for the ports that the run has bound itself, `loopback = \"none\"`, or name the \
                      ports: `connect = [\"127.0.0.1:8000-8999\"]` and the same for `bind`";

/// Lets every domain use that loopback, if it `gets` one of its own where it asks for that.
pub(crate) fn open(
    profile: &mut Profile,
    (loopback, place): (Loopback, TextSpan),
    gets: bool,
    reporter: &mut Reporter,
) {
    if loopback == Loopback::Machine {
        for domain in &mut profile.domains {
            domain.network.extend(rules(place).filter(is_on_this_machine));
        }
        return;
    }
    let shares = reaches_outside(profile);
    // In a network of the run's own, all ports are.
    if loopback == Loopback::Own && (shares || !gets) {
        profile.own_ports = Some(place);
        return;
    }
    if shares {
        let problem = Problem::bad("private", "possible beside rules for hosts and ports", SHARED);
        reporter.report(problem, Some(place));
        return;
    }
    profile.private_loopback = Some(gets);
    if gets {
        for domain in &mut profile.domains {
            domain.network.extend(rules(place));
        }
    }
}

/// Whether some rule is about hosts and ports.
pub(crate) fn reaches_outside(profile: &Profile) -> bool {
    let mut given = profile.domains.iter().flat_map(|domain| &domain.network);
    given.any(|rule| matches!(rule.target, NetworkObject::Ip(_)))
}

/// Not of the addresses that stand for every interface.
fn is_on_this_machine(rule: &NetworkRule) -> bool {
    let NetworkObject::Ip(Endpoints { host: Host::Network(address, _), .. }) = &rule.target else {
        return false;
    };
    !address.is_unspecified()
}

/// Every port of this machine, to connect to, and to bind also at no address in particular.
fn rules(place: TextSpan) -> impl Iterator<Item = NetworkRule> {
    let hosts: [(IpAddr, u8, bool); 4] = [
        (Ipv4Addr::new(127, 0, 0, 0).into(), 8, true),
        (Ipv6Addr::LOCALHOST.into(), 128, true),
        (Ipv4Addr::UNSPECIFIED.into(), 32, false),
        (Ipv6Addr::UNSPECIFIED.into(), 128, false),
    ];
    let of = move |(address, length, reached)| {
        let directions: &[Direction] =
            if reached { &[Direction::Connect, Direction::Bind] } else { &[Direction::Bind] };
        let protocols = [Protocol::Tcp, Protocol::Udp];
        protocols.into_iter().flat_map(move |protocol| {
            directions.iter().map(move |direction| NetworkRule {
                target: NetworkObject::Ip(Endpoints {
                    host: Host::Network(address, length),
                    protocol,
                    low: 0,
                    high: u16::MAX,
                }),
                direction: *direction,
                place,
            })
        })
    };
    hosts.into_iter().flat_map(of)
}

/// Which loopback the run is to have, if any.
pub(crate) fn parse(text: &str) -> Result<Option<Loopback>, Problem> {
    match text {
        "private" => Ok(Some(Loopback::Private)),
        "machine" => Ok(Some(Loopback::Machine)),
        "own" => Ok(Some(Loopback::Own)),
        "none" => Ok(None),
        _ => {
            let help = "write `private`, `own`, `machine` or `none`";
            Err(Problem::bad(text, "a loopback", help.to_owned()))
        }
    }
}
