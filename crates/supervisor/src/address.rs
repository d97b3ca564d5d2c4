//! A socket address that the program gave, copied and parsed.

use rustix::io::{Errno, Result};
use std::{
    ffi::OsStr,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// An address, and the bytes that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// As the program gave it.
    pub bytes: Vec<u8>,
    /// What it names.
    pub kind: Kind,
}

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `AF_UNSPEC`: dissolves an association.
    None,
    /// A host and a port.
    Ip(IpAddr, u16),
    /// A name in the file system.
    Path(PathBuf),
    /// A name in the abstract namespace; empty for one that the kernel chooses.
    Abstract(Vec<u8>),
    /// A family that nobody labels addresses of.
    Other(u16),
}

impl Address {
    /// Parses `struct sockaddr` and its relatives.
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        let word = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let family =
            u16::from_ne_bytes(bytes.get(..2).and_then(|b| b.try_into().ok()).ok_or(Errno::INVAL)?);
        let kind = match i32::from(family) {
            libc::AF_UNSPEC => Kind::None,
            libc::AF_INET => {
                let ip: [u8; 4] = slice(&bytes, 4).ok_or(Errno::INVAL)?;
                Kind::Ip(Ipv4Addr::from(ip).into(), word(2).ok_or(Errno::INVAL)?)
            }
            libc::AF_INET6 => {
                let ip: [u8; 16] = slice(&bytes, 8).ok_or(Errno::INVAL)?;
                // A mapped address reaches the IPv4 host, so it is that host.
                Kind::Ip(Ipv6Addr::from(ip).to_canonical(), word(2).ok_or(Errno::INVAL)?)
            }
            libc::AF_UNIX => unix(&bytes[2..]),
            _ => Kind::Other(family),
        };
        Ok(Self { bytes, kind })
    }

    /// The bytes of the same address and port, but of the host `ip`; `EAFNOSUPPORT` for one that
    /// its family does not know.
    pub fn of_host(&self, ip: IpAddr) -> Result<Vec<u8>> {
        let mut bytes = self.bytes.clone();
        let (at, host) = match (self.family(), ip) {
            (libc::AF_INET, IpAddr::V4(ip)) => (4, ip.octets().to_vec()),
            (libc::AF_INET6, IpAddr::V4(ip)) => (8, ip.to_ipv6_mapped().octets().to_vec()),
            (libc::AF_INET6, IpAddr::V6(ip)) => (8, ip.octets().to_vec()),
            _ => return Err(Errno::AFNOSUPPORT),
        };
        bytes.get_mut(at..at + host.len()).ok_or(Errno::INVAL)?.copy_from_slice(&host);
        Ok(bytes)
    }

    /// The link that an address is on which each link has one of (`sin6_scope_id`); of others the
    /// kernel does not look at it.
    fn scope(&self) -> u32 {
        let is_of_a_link = match self.kind {
            Kind::Ip(IpAddr::V6(ip), _) => {
                ip.is_unicast_link_local() || ip.is_multicast() && ip.segments()[0] & 0xf <= 2
            }
            _ => false,
        };
        let scope = slice(&self.bytes, 24).filter(|_| is_of_a_link);
        scope.map_or(0, u32::from_ne_bytes)
    }

    /// The family that the kernel reads.
    pub fn family(&self) -> i32 {
        let family = self.bytes.first_chunk().map_or(0, |bytes| u16::from_ne_bytes(*bytes));
        family.into()
    }
}

fn slice<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn unix(name: &[u8]) -> Kind {
    match name {
        [] => Kind::Abstract(Vec::new()),
        [0, name @ ..] => Kind::Abstract(name.to_vec()),
        _ => {
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            Kind::Path(Path::new(OsStr::from_bytes(&name[..end])).to_owned())
        }
    }
}

/// `struct sockaddr_un` for a name in the file system; `ENAMETOOLONG` where it does not fit.
pub fn unix_bytes(path: &[u8]) -> Result<Vec<u8>> {
    const PATH_MAX: usize = 108;
    if path.len() >= PATH_MAX {
        return Err(Errno::NAMETOOLONG);
    }
    let family = (libc::AF_UNIX as u16).to_ne_bytes();
    Ok([&family, path, &[0]].concat())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::None => f.write_str("no address"),
            Kind::Ip(IpAddr::V6(ip), port) => SocketAddrV6::new(*ip, *port, 0, self.scope()).fmt(f),
            Kind::Ip(ip, port) => SocketAddr::new(*ip, *port).fmt(f),
            Kind::Path(path) => write!(f, "unix:{}", path.display()),
            Kind::Abstract(name) => write!(f, "unix:@{}", String::from_utf8_lossy(name)),
            Kind::Other(family) => write!(f, "an address of family {family}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(family: i32, rest: &[u8]) -> Result<Kind> {
        let family = (family as u16).to_ne_bytes();
        Address::parse([&family, rest].concat()).map(|address| address.kind)
    }

    #[test]
    fn addresses_are_what_the_kernel_makes_of_them() {
        let v4 = parse(libc::AF_INET, &[0, 80, 10, 0, 0, 1]).unwrap();
        assert_eq!(v4, Kind::Ip([10, 0, 0, 1].into(), 80));
        let mapped = [&[0, 80, 0, 0, 0, 0][..], &[0; 10], &[255, 255, 10, 0, 0, 1]].concat();
        assert_eq!(parse(libc::AF_INET6, &mapped).unwrap(), v4);
        assert_eq!(parse(libc::AF_UNIX, b"/a\0junk").unwrap(), Kind::Path("/a".into()));
        assert_eq!(parse(libc::AF_UNIX, b"\0a\0b").unwrap(), Kind::Abstract(b"a\0b".to_vec()));
        assert_eq!(parse(libc::AF_INET, &[0, 80]), Err(Errno::INVAL));
        assert_eq!(Address::parse(vec![1]), Err(Errno::INVAL));
    }

    #[test]
    fn the_same_address_on_two_links_has_two_names() {
        let told = |first: u16, scope: u32| {
            let ip = Ipv6Addr::from([first, 0, 0, 0, 0, 0, 0, 1]).octets();
            let family = (libc::AF_INET6 as u16).to_ne_bytes();
            let bytes = [&family[..], &[0, 80], &[0; 4], &ip, &scope.to_ne_bytes()].concat();
            Address::parse(bytes).unwrap().to_string()
        };
        assert_eq!(told(0xfe80, 2), "[fe80::1%2]:80");
        assert_eq!(told(0xfe80, 3), "[fe80::1%3]:80");
        assert_eq!(told(0xff02, 3), "[ff02::1%3]:80");
        assert_eq!(told(0xfe80, 0), "[fe80::1]:80");
        // It is one host whatever stands there.
        assert_eq!(told(0x2001, 3), "[2001::1]:80");
        let short = Address::parse([&(libc::AF_INET6 as u16).to_ne_bytes()[..], &[0; 22]].concat());
        assert_eq!(short.unwrap().to_string(), "[::]:0");
    }

    #[test]
    fn a_host_takes_the_place_of_another() {
        let of = |family: i32, len: usize, ip: [u16; 8]| {
            let bytes = [&(family as u16).to_ne_bytes()[..], &[0, 80], &[0; 24][..len]].concat();
            let ip = Ipv6Addr::from(ip).to_canonical();
            Address::parse(bytes)?.of_host(ip).and_then(Address::parse).map(|it| it.kind)
        };
        let (v4, v6) = ([0, 0, 0, 0, 0, 0xffff, 0x7f00, 1], [0, 0, 0, 0, 0, 0, 0, 1]);
        let kind = |ip: [u16; 8]| Ok(Kind::Ip(Ipv6Addr::from(ip).to_canonical(), 80));
        assert_eq!(of(libc::AF_INET, 12, v4), kind(v4));
        assert_eq!(of(libc::AF_INET6, 24, v4), kind(v4));
        assert_eq!(of(libc::AF_INET6, 24, v6), kind(v6));
        assert_eq!(of(libc::AF_INET, 12, v6), Err(Errno::AFNOSUPPORT));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(0u8.., 0..128)) {
            let _ = Address::parse(bytes);
        }
    }
}
