//! The classes of sockets.

use flask::Class;

/// The class of a socket by its family, type and protocol.
pub(crate) fn class_of(family: i32, kind: i32, protocol: i32) -> Class {
    let kind = kind & 0xf;
    match (family, kind, protocol) {
        (libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_SEQPACKET, _) => Class::UnixStreamSocket,
        (libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_RAW, _) => Class::UnixDgramSocket,
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => {
            Class::TcpSocket
        }
        // UDP-Lite has UDP's calls, addresses and ports; only what its checksums cover differs.
        (
            libc::AF_INET | libc::AF_INET6,
            libc::SOCK_DGRAM,
            0 | libc::IPPROTO_UDP | libc::IPPROTO_UDPLITE,
        ) => Class::UdpSocket,
        (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM | libc::SOCK_RAW, _) => {
            Class::RawipSocket
        }
        (libc::AF_NETLINK, _, protocol) => match protocol {
            libc::NETLINK_ROUTE => Class::NetlinkSocket,
            libc::NETLINK_USERSOCK => Class::NetlinkUsersockSocket,
            libc::NETLINK_SOCK_DIAG => Class::NetlinkTcpdiagSocket,
            libc::NETLINK_XFRM => Class::NetlinkXfrmSocket,
            libc::NETLINK_AUDIT => Class::NetlinkAuditSocket,
            libc::NETLINK_CONNECTOR => Class::NetlinkConnectorSocket,
            libc::NETLINK_NETFILTER => Class::NetlinkNetfilterSocket,
            libc::NETLINK_KOBJECT_UEVENT => Class::NetlinkKobjectUeventSocket,
            libc::NETLINK_GENERIC => Class::NetlinkGenericSocket,
            libc::NETLINK_CRYPTO => Class::NetlinkCryptoSocket,
            _ => Class::Socket,
        },
        // Families without an object manager of their own; also TCP's relatives that the envelope
        // does not know.
        _ => Class::Socket,
    }
}
