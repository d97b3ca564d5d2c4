//! Ways onto the network that a profile does not name.

use crate::{
    case::{Case, Judge, Severity},
    outside::{
        look::{came_out, has_socket},
        witness::{self, Packets, heard, reached},
    },
    scene::{Scene, hold, loot},
    stage::Stage,
    sys,
};
use std::{
    io::{self, Write as _},
    net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket},
    os::fd::AsFd as _,
};

/// An address of IPv4 on this machine, of any family.
pub(super) fn v4(family: i32, port: u16) -> [u8; 16] {
    let mut address = [0; 16];
    address[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    address
}

/// An address of IPv6 on this machine, of any family.
fn v6(family: i32, port: u16) -> [u8; 28] {
    let mut address = [0; 28];
    address[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&port.to_be_bytes());
    address[8..24].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
    address
}

/// Nobody's rules name this listener of TCP.
fn listener(stage: &mut Stage, what: &'static str) -> io::Result<Judge> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    stage.tell("port", listener.local_addr()?.port());
    let mark = stage.mark();
    Ok(Judge::after(move |_| reached(&listener, &mark).then(|| what.to_owned())))
}

/// Nobody's rules name this receiver of UDP.
fn receiver(stage: &mut Stage, what: &'static str) -> io::Result<Judge> {
    let (receiver, mark) = (stage.receiver("127.0.0.1:0")?, stage.mark());
    Ok(Judge::after(move |_| heard(&receiver, &mark).then(|| what.to_owned())))
}

fn holding(socket: io::Result<std::os::fd::OwnedFd>) -> io::Result<()> {
    let _socket = socket?;
    hold();
    Ok(())
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "tcp-to-anyone",
        severity: Severity::High,
        claim: "Connects by TCP to a port that nothing names.",
        source: "tcp(7)",
        outside: |stage| listener(stage, "a connection with data arrived"),
        attack: |scene| TcpStream::connect(("127.0.0.1", scene.port()))?.write_all(scene.mark()),
    },
    Case {
        name: "udp-to-anyone",
        severity: Severity::High,
        claim: "Sends a datagram to a port that nothing names.",
        source: "udp(7)",
        outside: |stage| receiver(stage, "a datagram arrived"),
        attack: |scene| {
            let socket = UdpSocket::bind("0.0.0.0:0").or_else(|_| UdpSocket::bind("127.0.0.1:0"));
            let socket = match socket {
                Ok(socket) => socket.into(),
                // Nobody has to bind.
                Err(_) => sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?,
            };
            sys::send_to(socket.as_fd(), scene.mark(), 0, &v4(libc::AF_INET, scene.port()))
        },
    },
    Case {
        name: "udp-of-no-family",
        severity: Severity::Critical,
        claim: "Sends a datagram to an address of no family, which the kernel takes for IPv4.",
        source: "net/ipv4/udp.c, udp_sendmsg: AF_UNSPEC",
        outside: |stage| receiver(stage, "a datagram arrived"),
        attack: |scene| {
            let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
            sys::send_to(socket.as_fd(), scene.mark(), 0, &v4(libc::AF_UNSPEC, scene.port()))
        },
    },
    Case {
        name: "ipv4-by-ipv6",
        severity: Severity::High,
        claim: "Reaches an address of IPv4 by a socket of IPv6.",
        source: "ipv6(7), mapped addresses",
        outside: |stage| receiver(stage, "a datagram arrived"),
        attack: |scene| {
            let socket = sys::socket(libc::AF_INET6, libc::SOCK_DGRAM, 0)?;
            let mut mapped = v6(libc::AF_INET6, scene.port());
            mapped[8..24].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 0, 0, 1]);
            let first = sys::send_to(socket.as_fd(), scene.mark(), 0, &mapped);
            let plain = v4(libc::AF_INET, scene.port());
            sys::send_to(socket.as_fd(), scene.mark(), 0, &plain).or(first)
        },
    },
    Case {
        name: "tcp-fast-open",
        severity: Severity::High,
        claim: "Connects by sending, which is no call to connect.",
        source: "tcp(7), MSG_FASTOPEN",
        outside: |stage| listener(stage, "a connection with data arrived"),
        attack: |scene| {
            let socket = sys::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
            let to = v4(libc::AF_INET, scene.port());
            sys::send_to(socket.as_fd(), scene.mark(), libc::MSG_FASTOPEN, &to)
        },
    },
    Case {
        name: "multipath-tcp",
        severity: Severity::High,
        claim: "Connects by MPTCP, which is not the protocol that rules for TCP are about.",
        source: "Linux docs, networking/mptcp; Landlock docs (TCP only)",
        outside: |stage| listener(stage, "a connection with data arrived"),
        attack: |scene| {
            let socket = sys::socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP)?;
            sys::connect(socket.as_fd(), &v4(libc::AF_INET, scene.port()))?;
            Ok(rustix::io::write(&socket, scene.mark()).map(drop)?)
        },
    },
    Case {
        name: "ipv6-routing-header",
        severity: Severity::Medium,
        claim: "Sends a packet that names another destination in a routing header.",
        source: "RFC 5095; net/ipv6/datagram.c, IPV6_RTHDR",
        outside: |stage| {
            let receiver = stage.receiver("[::1]:0")?;
            let port = receiver.local_addr()?.port();
            stage.rules = format!("[network]\nconnect = [\"[::1]:{port}/udp\"]\n");
            let packets = Packets::begin()?;
            let mark = stage.mark();
            Ok(Judge::after(move |_| {
                let _open = &receiver;
                // Behind 14 bytes of Ethernet: the next header of IPv6 is 43, routing.
                let is = |packet: &[u8]| {
                    packet.get(20) == Some(&43)
                        && packet.windows(mark.len()).any(|piece| piece == mark.as_bytes())
                };
                packets.any(is).then(|| "a packet with a routing header left".to_owned())
            }))
        },
        attack: |scene| {
            let socket = sys::socket(libc::AF_INET6, libc::SOCK_DGRAM, 0)?;
            // By way of ::1. Type 2 of mobile IPv6, where the kernel has it; else type 4, segments.
            let mut header = [0; 24];
            header[..4].copy_from_slice(&[0, 2, 2, 1]);
            header[8..].copy_from_slice(&Ipv6Addr::LOCALHOST.octets());
            let option = (libc::IPPROTO_IPV6, libc::IPV6_RTHDR);
            if sys::set_option(socket.as_fd(), option, &header).is_err() {
                header[..4].copy_from_slice(&[0, 2, 4, 0]);
                sys::set_option(socket.as_fd(), option, &header)?;
            }
            sys::send_to(socket.as_fd(), scene.mark(), 0, &v6(libc::AF_INET6, scene.port()))
        },
    },
    Case {
        name: "listening-unbound",
        severity: Severity::Medium,
        claim: "Opens a port to everybody by listening without having bound one.",
        source: "net/ipv4/af_inet.c, inet_listen: inet_autobind",
        outside: |_| Ok(listening()),
        attack: |_| {
            let socket = sys::socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
            rustix::net::listen(&socket, 1)?;
            hold();
            Ok(())
        },
    },
    Case {
        name: "raw-socket",
        severity: Severity::High,
        claim: "Makes packets of its own by a raw socket.",
        source: "raw(7)",
        outside: |_| {
            Ok(has_socket(libc::AF_INET, Some(libc::SOCK_RAW), None, "it has a raw socket"))
        },
        attack: |_| holding(sys::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)),
    },
    Case {
        name: "packet-socket",
        severity: Severity::High,
        claim: "Listens to all packets of the machine.",
        source: "CVE-2020-14386, CVE-2016-8655 (AF_PACKET)",
        outside: |_| Ok(has_socket(libc::AF_PACKET, None, None, "it has a packet socket")),
        attack: |_| holding(sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)),
    },
    Case {
        name: "vsock",
        severity: Severity::Medium,
        claim: "Talks to the machine that this virtual machine runs on.",
        source: "CVE-2021-26708 (AF_VSOCK); vsock(7)",
        outside: |_| Ok(has_socket(libc::AF_VSOCK, None, None, "it has a vsock socket")),
        attack: |_| holding(sys::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0)),
    },
    Case {
        name: "odd-families",
        severity: Severity::Medium,
        claim: "Gets sockets of families that hardly anybody uses, and few have read.",
        source: "CVE-2017-6074 (DCCP): code that nobody needs",
        outside: |_| {
            // Crypto, Bluetooth, CAN, TIPC, XDP, QIPCRTR.
            let kinds = [libc::AF_ALG, 31, libc::AF_CAN, libc::AF_TIPC, libc::AF_XDP, 42];
            let judges = kinds.map(|kind| has_socket(kind, None, None, "it has such a socket"));
            Ok(Judge::during(move |processes| {
                judges.iter().find_map(|judge| judge.during.as_ref()?(processes))
            }))
        },
        attack: |_| {
            let kinds = [libc::AF_ALG, 31, libc::AF_CAN, libc::AF_TIPC, libc::AF_XDP, 42];
            let forms = [libc::SOCK_SEQPACKET, libc::SOCK_RAW, libc::SOCK_DGRAM];
            let pairs = kinds.iter().flat_map(|&kind| forms.map(|form| (kind, form)));
            let mut last = io::Error::other("no family");
            let mut open = Vec::new();
            for (kind, form) in pairs {
                match sys::socket(kind, form, 0) {
                    Ok(socket) => open.push(socket),
                    Err(error) => last = error,
                }
            }
            if open.is_empty() {
                return Err(last);
            }
            hold();
            Ok(())
        },
    },
    Case {
        name: "netlink-sockets-of-all",
        severity: Severity::Low,
        claim: "Lists the sockets of everybody on this machine by netlink.",
        source: "sock_diag(7)",
        outside: |_| {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let port = listener.local_addr()?.port();
            let word = format!("listens at port {port}\n");
            let judge = came_out(word, "it knows which ports are listened at outside");
            let mut after = judge.after;
            Ok(Judge::after(move |ran| {
                let _open = &listener;
                after.as_mut().and_then(|after| after(ran))
            }))
        },
        attack: list_listeners,
    },
    Case {
        name: "netlink-to-a-process",
        severity: Severity::Medium,
        claim: "Sends messages to a process outside by netlink.",
        source: "netlink(7), NETLINK_USERSOCK",
        outside: |stage| {
            let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 2)?;
            let port = std::process::id() ^ 0x4000_0000;
            sys::bind(socket.as_fd(), &netlink(port))?;
            stage.tell("at", port);
            let mark = stage.mark();
            Ok(Judge::after(move |_| {
                let mut buffer = [0; 256];
                let length = rustix::io::read(&socket, &mut buffer).ok()?;
                let all = String::from_utf8_lossy(&buffer[..length]);
                all.contains(&mark).then(|| "a process outside got the message".to_owned())
            }))
        },
        attack: |scene| {
            let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, 2)?;
            let mark = scene.mark();
            let mut message = Vec::new();
            message.extend((16 + mark.len() as u32).to_ne_bytes());
            message.extend([0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            message.extend(mark);
            let to = netlink(scene.number("at").cast_unsigned());
            sys::send_to(socket.as_fd(), &message, 0, &to)
        },
    },
    Case {
        name: "netfilter-by-netlink",
        severity: Severity::High,
        claim: "Gets a netlink socket to the packet filter.",
        source: "CVE-2024-1086 (nf_tables)",
        outside: |_| {
            let what = "it has a netlink socket to the packet filter";
            Ok(has_socket(libc::AF_NETLINK, None, Some(libc::NETLINK_NETFILTER), what))
        },
        attack: |_| holding(sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)),
    },
    Case {
        name: "dns-labels",
        severity: Severity::Medium,
        claim: "Sends data out in the labels of a name that it asks the name server for.",
        source: "MITRE ATT&CK T1048.003; RFC 1035",
        outside: |stage| {
            let asked = witness::name_server("127.0.0.153:53")?;
            let resolv = stage.file("resolv.conf", "nameserver 127.0.0.153\n")?;
            stage.nameserver = Some(resolv);
            let mark = stage.mark();
            Ok(Judge::after(move |_| {
                asked.with(&mark).then(|| "the name server was asked for the data".to_owned())
            }))
        },
        attack: |scene| {
            let mark = scene.mark();
            let mut query = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, mark.len() as u8];
            query.extend(mark);
            query.extend(b"\x07example\x00\x00\x01\x00\x01");
            let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
            let mut to = v4(libc::AF_INET, 53);
            to[7] = 153;
            sys::send_to(socket.as_fd(), &query, 0, &to)
        },
    },
];

fn netlink(port: u32) -> [u8; 12] {
    let mut address = [0; 12];
    address[..2].copy_from_slice(&(libc::AF_NETLINK as u16).to_ne_bytes());
    address[4..8].copy_from_slice(&port.to_ne_bytes());
    address
}

/// Whether something can be reached that the attack listens at, told by connecting.
fn listening() -> Judge {
    Judge::during(|processes| {
        let attack = processes.iter().filter(|process| process.is_attack);
        for process in attack {
            let table = std::fs::read_to_string(format!("/proc/{}/net/tcp", process.pid));
            let ports = table.ok()?;
            let own = crate::outside::look::sockets(process.pid);
            for line in ports.lines().skip(1) {
                let fields: Vec<&str> = line.split_whitespace().collect();
                let (Some(local), Some(&"0A"), Some(inode)) =
                    (fields.get(1), fields.get(3), fields.get(9))
                else {
                    continue;
                };
                // At the loopback alone, it is not open to everybody.
                if local.starts_with("0100007F:") {
                    continue;
                }
                let port = local.split(':').nth(1).and_then(|it| u16::from_str_radix(it, 16).ok());
                let is_own = own.iter().any(|it| it == &format!("socket:[{inode}]"));
                if is_own && port.is_some_and(|it| TcpStream::connect(("127.0.0.1", it)).is_ok()) {
                    return Some("a port of its own is open to everybody".to_owned());
                }
            }
        }
        None
    })
}

/// Prints the ports that are listened at, as `sock_diag` tells.
fn list_listeners(_: &Scene) -> io::Result<()> {
    let socket = sys::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG)?;
    // SOCK_DIAG_BY_FAMILY, a dump of TCP over IPv4 in state LISTEN.
    let mut request = vec![0; 72];
    request[..4].copy_from_slice(&72_u32.to_ne_bytes());
    request[4..8].copy_from_slice(&[20, 0, 1, 3]);
    request[16..18].copy_from_slice(&[2, 6]);
    request[20..24].copy_from_slice(&(1_u32 << 10).to_ne_bytes());
    sys::send_to(socket.as_fd(), &request, 0, &netlink(0))?;
    let mut buffer = vec![0; 1 << 16];
    for _ in 0..64 {
        let length = rustix::io::read(&socket, &mut buffer)?;
        let mut rest = &buffer[..length];
        while let Some(head) = rest.get(..16) {
            let size = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
            if u16::from_ne_bytes([head[4], head[5]]) <= 3 || size < 24 || size > rest.len() {
                return Ok(());
            }
            let port = u16::from_be_bytes([rest[20], rest[21]]);
            loot(format!("listens at port {port}").as_bytes());
            rest = &rest[size.next_multiple_of(4).min(rest.len())..];
        }
    }
    Ok(())
}
