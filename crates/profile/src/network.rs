//! Network rules as text: `github.com:443`, `10.0.0.0/8:*`, `[::1]:8080/udp`, `unix:/run/x.sock`.

use crate::error::Problem;
use crate::pattern::{self, Pattern};
use crate::variables::Variables;
use flask::Protocol;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a network rule speaks about.
#[derive(Clone, Debug)]
pub(crate) enum NetworkObject {
    /// Endpoints: hosts and ports.
    Ip(Endpoints),
    /// Sockets in the file system.
    Unix(Flavour, Vec<Pattern>),
    /// Abstract unix names; `None` for all of them.
    Abstract(Flavour, Option<AbstractName>),
}

impl NetworkObject {
    /// The unix sockets that it names, as rules spell them; none for endpoints.
    pub(crate) fn sockets(&self) -> Vec<String> {
        let scheme = |flavour: &Flavour| match flavour {
            Flavour::Stream => "unix",
            Flavour::Datagram => "unixgram",
        };
        match self {
            Self::Ip(_) => Vec::new(),
            Self::Unix(flavour, patterns) => {
                let spelled = |pattern: &Pattern| format!("{}:{pattern}", scheme(flavour));
                patterns.iter().map(spelled).collect()
            }
            Self::Abstract(flavour, name) => {
                let (stem, any) = name.as_ref().map_or(("", true), |it| (&it.stem, it.any));
                vec![format!("{}:@{stem}{}", scheme(flavour), if any { "*" } else { "" })]
            }
        }
    }
}

/// Which unix sockets a rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// `unix:`, streams and sequenced packets.
    Stream,
    /// `unixgram:`, datagrams. Apart, because they reach any name without connecting: where they
    /// are granted, every send has to be decided.
    Datagram,
}

/// `unix:@NAME`, or `unix:@PREFIX*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AbstractName {
    stem: String,
    any: bool,
}

impl AbstractName {
    /// A regular expression over `@NAME`.
    pub(crate) fn regex(&self) -> String {
        let escaped = self.stem.replace('.', r"\.").replace('+', r"\+");
        format!("@{escaped}{}", if self.any { ".*" } else { "" })
    }

    /// A name for people, not unique.
    pub(crate) fn label(&self) -> String {
        format!("abstract_{}", self.stem)
    }

    /// Whether it stands for every name that starts with it.
    pub(crate) fn is_prefix(&self) -> bool {
        self.any
    }

    /// Whether every name of `other` is one of `self`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self == other || (self.any && other.stem.starts_with(&self.stem))
    }
}

/// Hosts with a range of ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoints {
    pub(crate) host: Host,
    pub(crate) protocol: Protocol,
    pub(crate) low: u16,
    pub(crate) high: u16,
}

impl Endpoints {
    /// Whether both are about some port.
    pub(crate) fn shares_port(&self, other: &Self) -> bool {
        self.protocol == other.protocol && self.low <= other.high && other.low <= self.high
    }
}

/// The hosts of a network rule, as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// `*`
    Any,
    /// An address or a network: all addresses that share so many leading bits.
    Network(IpAddr, u8),
    /// A name, resolved when the profile is loaded.
    Name(String),
    /// `${nameserver}`.
    Nameserver,
}

impl Host {
    /// Whether every host of `other` is one of `self`. Says no when in doubt.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Network(own, length), Self::Network(address, longer)) => {
                length <= longer && masked(*address, *length) == *own
            }
            (own, other) => own == other,
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Network(address, length) if *length == bits(*address) => address.fmt(f),
            Self::Network(address, length) => write!(f, "{address}/{length}"),
            Self::Name(name) => f.write_str(name),
            Self::Nameserver => f.write_str("${nameserver}"),
        }
    }
}

/// How long addresses of that family are.
pub(crate) fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// `address` with all but its first `length` bits cleared.
pub(crate) fn masked(address: IpAddr, length: u8) -> IpAddr {
    match (address, netmask(address, length)) {
        (IpAddr::V4(a), IpAddr::V4(mask)) => {
            Ipv4Addr::from_bits(a.to_bits() & mask.to_bits()).into()
        }
        (IpAddr::V6(a), IpAddr::V6(mask)) => {
            Ipv6Addr::from_bits(a.to_bits() & mask.to_bits()).into()
        }
        (address, _) => address,
    }
}

/// The mask of `length` leading bits, of the family of `address`.
pub(crate) fn netmask(address: IpAddr, length: u8) -> IpAddr {
    let zeros = u32::from(bits(address).saturating_sub(length));
    match address {
        IpAddr::V4(_) => Ipv4Addr::from_bits(u32::MAX.checked_shl(zeros).unwrap_or(0)).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(u128::MAX.checked_shl(zeros).unwrap_or(0)).into(),
    }
}

/// Reads one network rule.
pub(crate) fn parse(rule: &str, variables: &Variables) -> Result<NetworkObject, Problem> {
    for (scheme, flavour) in [("unix:", Flavour::Stream), ("unixgram:", Flavour::Datagram)] {
        if let Some(path) = rule.strip_prefix(scheme) {
            return parse_unix(rule, path, flavour, variables);
        }
    }
    parse_endpoints(rule).map(NetworkObject::Ip)
}

/// Reads one rule for endpoints.
pub(crate) fn parse_endpoints(rule: &str) -> Result<Endpoints, Problem> {
    parse_ip(rule).map_err(|(reason, help)| bad(rule, reason, help))
}

fn bad(rule: &str, reason: &'static str, help: String) -> Problem {
    Problem::BadEndpoint { rule: rule.to_owned(), reason, help }
}

/// What is wrong, and what to write instead.
type Bad = (&'static str, String);

fn parse_unix(
    rule: &str,
    path: &str,
    flavour: Flavour,
    variables: &Variables,
) -> Result<NetworkObject, Problem> {
    let Some(name) = path.strip_prefix('@') else {
        let patterns = pattern::parse(path, variables)?;
        return Ok(NetworkObject::Unix(flavour, patterns));
    };
    let (stem, any) = match name.strip_suffix('*') {
        Some(stem) => (stem, true),
        None => (name, false),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:@+".contains(c);
    if !stem.chars().all(plain) || (stem.is_empty() && !any) {
        let help = "write `unix:@NAME`, `unix:@PREFIX*`, or `unix:@*` for every abstract name";
        return Err(bad(rule, "not an abstract name that a policy can hold", help.to_owned()));
    }
    if stem.is_empty() {
        return Ok(NetworkObject::Abstract(flavour, None));
    }
    Ok(NetworkObject::Abstract(flavour, Some(AbstractName { stem: stem.to_owned(), any })))
}

fn parse_ip(rule: &str) -> Result<Endpoints, Bad> {
    if let Some((_, rest)) = rule.split_once("://") {
        let host = rest.split(['/', ':']).next().unwrap_or(rest);
        return Err(("it is a URL", format!("write host and port: `{host}:443`")));
    }
    let no_port =
        || ("no port is named", format!("write `{rule}:443`, or `{rule}:*` for every port"));
    let (host, port) = rule.rsplit_once(':').ok_or_else(no_port)?;
    let (port, protocol) = match port.split_once('/') {
        None | Some((_, "tcp")) => (port.split('/').next().unwrap_or(port), Protocol::Tcp),
        Some((port, "udp")) => (port, Protocol::Udp),
        Some(_) => return Err(("unknown protocol", "write `/tcp` or `/udp`".to_owned())),
    };
    let host = parse_host(host)?;
    let (low, high) = parse_ports(port)?;
    Ok(Endpoints { host, protocol, low, high })
}

fn parse_ports(text: &str) -> Result<(u16, u16), Bad> {
    const HELP: &str = "write a number up to 65535, a range `8000-8999`, or `*`";
    let number = |text: &str| -> Result<u16, Bad> {
        let plain = text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|_| plain).ok_or_else(|| ("not a port", named_port(text)))
    };
    if text == "*" {
        return Ok((0, u16::MAX));
    }
    let (low, high) = match text.split_once('-') {
        Some((low, high)) if !low.is_empty() => (number(low)?, number(high)?),
        _ => (number(text)?, number(text)?),
    };
    if low <= high {
        Ok((low, high))
    } else {
        Err(("the range of ports is empty", HELP.to_owned()))
    }
}

fn named_port(text: &str) -> String {
    let known =
        [("https", 443), ("http", 80), ("ssh", 22), ("git", 9418), ("dns", 53), ("domain", 53)];
    match known.iter().find(|(name, _)| *name == text) {
        Some((name, number)) => format!("write {number} for `{name}`"),
        None => "write a number up to 65535, a range `8000-8999`, or `*`".to_owned(),
    }
}

fn parse_host(text: &str) -> Result<Host, Bad> {
    match text {
        "*" => return Ok(Host::Any),
        "${nameserver}" => return Ok(Host::Nameserver),
        _ => {}
    }
    if text.contains("${") {
        let help = "the only variable for hosts is `${nameserver}`".to_owned();
        return Err(("unknown variable", help));
    }
    if text.starts_with('[') {
        return parse_bracketed(text);
    }
    if text.contains(':') {
        return Err(("an IPv6 address stands in brackets", format!("write `[{text}]:PORT`")));
    }
    if let Some((address, length)) = text.split_once('/') {
        return parse_network(address, length);
    }
    match text.parse::<Ipv4Addr>() {
        Ok(address) => Ok(Host::Network(address.into(), 32)),
        Err(_) => parse_name(text),
    }
}

/// `[::1]`, `[fd00::/8]` or `[fd00::]/8`.
fn parse_bracketed(text: &str) -> Result<Host, Bad> {
    let bad = || ("not an IPv6 address", "write `[::1]:8080` or `[fd00::/8]:443`".to_owned());
    let (inside, behind) = text[1..].split_once(']').ok_or_else(bad)?;
    let (address, length) = match (inside.split_once('/'), behind.strip_prefix('/')) {
        (Some((address, length)), None) if behind.is_empty() => (address, length),
        (None, Some(length)) => (inside, length),
        (None, None) if behind.is_empty() => (inside, "128"),
        _ => return Err(bad()),
    };
    address.parse::<Ipv6Addr>().map_err(|_| bad())?;
    parse_network(address, length)
}

fn parse_network(address: &str, length: &str) -> Result<Host, Bad> {
    let bad = || ("not a network", "write `10.0.0.0/8:*`".to_owned());
    let address: IpAddr = address.parse().map_err(|_| bad())?;
    let length: u8 = length.parse().map_err(|_| bad())?;
    if length > bits(address) {
        return Err(bad());
    }
    let network = masked(address, length);
    if network != address {
        let help = format!("write `{network}/{length}`, or `{address}` for that address alone");
        return Err(("the address has bits beyond the length of the network", help));
    }
    match address {
        // One host, one label: mapped addresses are the IPv4 addresses that they stand for.
        IpAddr::V6(v6) if length >= 96 && v6.to_ipv4_mapped().is_some() => {
            Ok(Host::Network(address.to_canonical(), length - 96))
        }
        _ => Ok(Host::Network(address, length)),
    }
}

fn parse_name(text: &str) -> Result<Host, Bad> {
    if text.contains('*') {
        let help = "name each host, or write `*` for every host".to_owned();
        return Err(("names are resolved at launch, so they cannot hold a `*`", help));
    }
    let label = |part: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !part.is_empty() && part.len() <= 63 && part.bytes().all(plain)
    };
    let numeric = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if numeric || text.len() > 253 || !text.trim_end_matches('.').split('.').all(label) {
        let help = "write `github.com:443`, `10.0.0.0/8:*`, `[::1]:8080` or `*:53/udp`".to_owned();
        return Err(("not a host", help));
    }
    Ok(Host::Name(text.to_ascii_lowercase()))
}
