//! Options of sockets that run undecided: they tell how a socket behaves at its own end, and
//! neither lead packets elsewhere than their address says nor need a capability. Read from Linux
//! 6.18 (`net/core/sock.c`, `net/ipv4/{ip_sockglue,tcp,udp}.c`, `net/ipv6/ipv6_sockglue.c`,
//! `net/netlink/af_netlink.c`). Every option that is not listed, and every level, is decided.
//!
//! Left out on purpose: source routes and extension headers (`IP_OPTIONS`, `IPV6_RTHDR`, `HOPOPTS`,
//! `DSTOPTS`, their ancestors `IPV6_2292*`, and `FLOWLABEL_MGR`, which holds them), the choice of
//! an interface (`SO_BINDTODEVICE`, `UNICAST_IF`, `IPV6_PKTINFO`), of a foreign source (`FREEBIND`,
//! `TRANSPARENT`), membership of groups, which sends packets of its own, `SO_MARK`, policies of
//! IPsec, `TCP_REPAIR`, `TCP_FASTOPEN_CONNECT`, which connects after the decision, `TCP_ULP`,
//! programs in the kernel (`SO_ATTACH_*`), `IPV6_ADDRFORM`, which makes a socket one of another
//! family, and `SO_PASSRIGHTS`, which lets in descriptors that Dewar keeps out.

use crate::bpf::{Action, Rule, Test};
use libc::{
    IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_UDPLITE, SOL_NETLINK, SOL_SOCKET,
};

/// Level, first and last name. Those that programs set most often come first.
const ALLOWED: &[(i32, u32, u32)] = &[
    // SO_DEBUG to SO_SECURITY_ENCRYPTION_NETWORK
    (SOL_SOCKET, 1, 24),
    // TCP_NODELAY to TCP_WINDOW_CLAMP
    (IPPROTO_TCP, 1, 10),
    // TCP_QUICKACK, TCP_CONGESTION
    (IPPROTO_TCP, 12, 13),
    // TCP_THIN_LINEAR_TIMEOUTS, TCP_THIN_DUPACK, TCP_USER_TIMEOUT
    (IPPROTO_TCP, 16, 18),
    // TCP_FASTOPEN (of a listener) to TCP_SAVED_SYN
    (IPPROTO_TCP, 23, 28),
    // TCP_INQ, TCP_TX_DELAY
    (IPPROTO_TCP, 36, 37),
    // SO_PEERNAME to SO_PASSSEC, SO_TIMESTAMPNS
    (SOL_SOCKET, 28, 35),
    // SO_TIMESTAMPING to SO_NOFCS
    (SOL_SOCKET, 37, 43),
    // SO_SELECT_ERR_QUEUE to SO_INCOMING_CPU
    (SOL_SOCKET, 45, 49),
    // SO_CNX_ADVICE to SO_PEERGROUPS; not SO_ZEROCOPY: of what the monitor sends it would show more
    (SOL_SOCKET, 53, 59),
    // SO_TIMESTAMP_NEW to SO_SNDTIMEO_NEW
    (SOL_SOCKET, 63, 67),
    // SO_PREFER_BUSY_POLL to SO_TXREHASH
    (SOL_SOCKET, 69, 74),
    // SO_PASSPIDFD, SO_PEERPIDFD
    (SOL_SOCKET, 76, 77),
    // IP_TOS, IP_TTL
    (IPPROTO_IP, 1, 2),
    // IP_RECVOPTS to IP_PKTINFO: of what is received
    (IPPROTO_IP, 6, 8),
    // IP_MTU_DISCOVER to IP_MTU
    (IPPROTO_IP, 10, 14),
    // IP_PASSSEC
    (IPPROTO_IP, 18, 18),
    // IP_RECVORIGDSTADDR to IP_RECVERR_RFC4884
    (IPPROTO_IP, 20, 26),
    // IP_MULTICAST_IF to IP_MULTICAST_LOOP
    (IPPROTO_IP, 32, 34),
    // IP_MULTICAST_ALL
    (IPPROTO_IP, 49, 49),
    // IP_LOCAL_PORT_RANGE
    (IPPROTO_IP, 51, 51),
    // IPV6_FLOWINFO: of what is received
    (IPPROTO_IPV6, 11, 11),
    // IPV6_UNICAST_HOPS to IPV6_MULTICAST_LOOP
    (IPPROTO_IPV6, 16, 19),
    // IPV6_MTU_DISCOVER to IPV6_V6ONLY
    (IPPROTO_IPV6, 23, 26),
    // IPV6_MULTICAST_ALL to IPV6_RECVERR_RFC4884
    (IPPROTO_IPV6, 29, 31),
    // IPV6_RECVPKTINFO
    (IPPROTO_IPV6, 49, 49),
    // IPV6_RECVHOPLIMIT to IPV6_RECVHOPOPTS
    (IPPROTO_IPV6, 51, 53),
    // IPV6_RECVRTHDR
    (IPPROTO_IPV6, 56, 56),
    // IPV6_RECVDSTOPTS
    (IPPROTO_IPV6, 58, 58),
    // IPV6_RECVPATHMTU to IPV6_DONTFRAG
    (IPPROTO_IPV6, 60, 62),
    // IPV6_RECVTCLASS, IPV6_TCLASS
    (IPPROTO_IPV6, 66, 67),
    // IPV6_AUTOFLOWLABEL
    (IPPROTO_IPV6, 70, 70),
    // IPV6_ADDR_PREFERENCES to IPV6_RECVORIGDSTADDR
    (IPPROTO_IPV6, 72, 74),
    // IPV6_RECVFRAGSIZE
    (IPPROTO_IPV6, 77, 77),
    // UDP_CORK
    (IPPROTO_UDP, 1, 1),
    // UDP_NO_CHECK6_TX to UDP_GRO
    (IPPROTO_UDP, 101, 104),
    // UDP_CORK of UDP-Lite, and how much its checksums cover
    (IPPROTO_UDPLITE, 1, 1),
    (IPPROTO_UDPLITE, 10, 11),
    // NETLINK_ADD_MEMBERSHIP to NETLINK_NO_ENOBUFS
    (SOL_NETLINK, 1, 5),
    // NETLINK_CAP_ACK to NETLINK_GET_STRICT_CHK
    (SOL_NETLINK, 10, 12),
];

/// What becomes of setsockopt, by its level and name, arguments 1 and 2. Where ports can be the
/// run's own, `SO_REUSEPORT` is decided: by it, sockets of others share a port.
pub(super) fn options(own_ports: bool) -> Rule {
    let shares = |(level, low, high): (i32, u32, u32)| {
        let shared = libc::SO_REUSEPORT as u32;
        if own_ports && level == SOL_SOCKET && (low..=high).contains(&shared) {
            vec![(level, low, shared - 1), (level, shared + 1, high)]
        } else {
            vec![(level, low, high)]
        }
    };
    let tests = ALLOWED.iter().copied().flat_map(shares);
    let tests = tests.map(|(level, low, high)| (pair(level, low, high), Action::Allow));
    Rule { tests: tests.collect(), otherwise: Action::Notify }
}

/// Whether an option of a socket, arguments 1 and 2, has this level and a name from `low` to
/// `high`.
fn pair(level: i32, low: u32, high: u32) -> Test {
    Test::Within { arg: 1, value: level as u32, of: 2, low, high }
}
