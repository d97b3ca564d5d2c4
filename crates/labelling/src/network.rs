//! Labels of addresses and ports.

use flask::{
    Class, InitialSid, LabelError, LabelRules, NodeRule, PortRule, Protocol, Question,
    SecurityServer, Sid,
};
use std::net::IpAddr;

/// The rules for addresses and ports.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    nodes: Vec<NodeRule>,
    ports: Vec<PortRule>,
}

impl Networks {
    /// Those of a policy.
    #[must_use]
    pub fn new(rules: &LabelRules) -> Self {
        Self { nodes: rules.nodes.clone(), ports: rules.ports.clone() }
    }

    /// The label of an address: that of the rule with the longest mask.
    #[must_use]
    pub fn node(&self, ip: IpAddr) -> Sid {
        let fits = |rule: &&NodeRule| match (ip, rule.address, rule.mask) {
            (IpAddr::V4(ip), IpAddr::V4(net), IpAddr::V4(mask)) => ip & mask == net & mask,
            (IpAddr::V6(ip), IpAddr::V6(net), IpAddr::V6(mask)) => ip & mask == net & mask,
            _ => false,
        };
        let ones = |rule: &&NodeRule| match rule.mask {
            IpAddr::V4(mask) => mask.to_bits().count_ones(),
            IpAddr::V6(mask) => mask.to_bits().count_ones(),
        };
        let best = self.nodes.iter().filter(fits).max_by_key(ones);
        best.map_or(InitialSid::Node.into(), |rule| rule.sid)
    }

    /// The label of a port: that of the narrowest range.
    #[must_use]
    pub fn port(&self, protocol: Protocol, port: u16) -> Sid {
        let fits =
            |rule: &&PortRule| rule.protocol == protocol && (rule.low..=rule.high).contains(&port);
        let best = self.ports.iter().filter(fits).min_by_key(|rule| rule.high - rule.low);
        best.map_or(InitialSid::Port.into(), |rule| rule.sid)
    }

    /// The label of an address with a port.
    ///
    /// # Errors
    ///
    /// As [`SecurityServer::compute_create`].
    pub fn endpoint(
        &self,
        server: &dyn SecurityServer,
        (protocol, ip, port): (Protocol, IpAddr, u16),
    ) -> Result<Sid, LabelError> {
        let (ssid, tsid) = (self.node(ip), self.port(protocol, port));
        server.compute_create(Question { ssid, tsid, tclass: Class::Endpoint }, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sid(number: u32) -> Sid {
        Sid::new(number).unwrap()
    }

    #[test]
    fn the_longest_mask_and_the_narrowest_range_win() {
        let node = |address: &str, mask: &str, number| NodeRule {
            address: address.parse().unwrap(),
            mask: mask.parse().unwrap(),
            sid: sid(number),
        };
        let port =
            |low, high, number| PortRule { protocol: Protocol::Tcp, low, high, sid: sid(number) };
        let networks = Networks::new(&LabelRules {
            files: Vec::new(),
            ports: vec![port(0, 65535, 201), port(443, 443, 202), port(1, 1023, 203)],
            nodes: vec![node("0.0.0.0", "0.0.0.0", 101), node("10.0.0.0", "255.0.0.0", 102)],
        });
        for (port, want) in [(443, 202), (80, 203), (8080, 201), (0, 201)] {
            assert_eq!(networks.port(Protocol::Tcp, port), sid(want), "{port}");
        }
        assert_eq!(networks.port(Protocol::Udp, 443), InitialSid::Port.into());
        for (ip, want) in
            [("10.1.2.3", sid(102)), ("1.1.1.1", sid(101)), ("::1", InitialSid::Node.into())]
        {
            assert_eq!(networks.node(ip.parse().unwrap()), want, "{ip}");
        }
    }
}
