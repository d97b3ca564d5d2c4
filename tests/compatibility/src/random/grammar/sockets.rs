//! Calls on sockets and pipes.

use super::{fd, one};
use rand::{RngExt as _, rngs::SmallRng};

/// A call on sockets and pipes.
pub(crate) fn call(rng: &mut SmallRng) -> String {
    let (a, b) = (fd(rng), fd(rng));
    let address = one(rng, &["s", "s", "d/s", "@%NAME", "@%NAME", "m/s", "a", "%/s", "''"]);
    match rng.random_range(0..26) {
        0 | 1 => format!("socket 1 {} 0", one(rng, &[1, 1, 2, 5, 3])),
        2 | 3 => format!("socketpair {}", one(rng, &[1, 1, 2, 5])),
        4 | 5 => format!("pipe {}", one(rng, &[0, 0o2_000_000, 0o40_000])),
        6 | 7 => format!("bind {a} {address}"),
        8 | 9 => format!("connect {a} {address}"),
        10 => format!("listen {a} {}", one(rng, &[0, 1, 5])),
        11 => format!("accept {a}"),
        12 => format!("send {a} {}", rng.random_range(0..5)),
        13 => match rng.random_range(0..3) {
            0 => format!("sendto {a} {address}"),
            1 => format!("sockname {a}"),
            _ => format!("shutdown {a} {}", rng.random_range(0..4)),
        },
        14 => format!("recv {a} {}", one(rng, &[0, 1, 10])),
        15 => {
            if rng.random() {
                match rng.random_range(0..4) {
                    0 => format!("send_fd {a} {b} {a} {}", fd(rng)),
                    _ => format!("send_fd {a} {b}"),
                }
            } else {
                format!("receive_fd {a} {}", one(rng, &[0, 0, 0, 2, 0x4000_0000, 0x20]))
            }
        }
        16 => match rng.random_range(0..2) {
            0 => format!(
                "setsockopt {a} 1 {} {}",
                one(rng, &[2, 6, 7, 8, 9, 15, 16, 20]),
                rng.random_range(0..2)
            ),
            _ => format!("getsockopt {a} 1 {}", one(rng, &[2, 3, 4, 9, 16, 30, 38, 39])),
        },
        17..21 => internet(rng, a, b),
        21 => format!("receive_fd {a} 0"),
        // Refused to everybody, which ends what is compared.
        22 if rng.random_ratio(1, 8) => {
            format!("send_credentials {a} {}", one(rng, &[-1, -1, 0, 12345]))
        }
        23 => format!("peercred {a}"),
        24 => format!(
            "{} {a} {} {}",
            one(rng, &["accept_name", "peername", "recvfrom", "sendmmsg", "recvmmsg"]),
            one(rng, &[0, 1, 2]),
            one(rng, &[0, 2, 0x20])
        ),
        25 if rng.random_ratio(1, 16) => format!(
            "{} {} {} {}",
            one(rng, &["any_socket", "any_socket", "any_pair"]),
            one(rng, &[1, 2, 10, 16, 17, 38, 40, 99]),
            one(rng, &[1, 2, 3, 5]),
            one(rng, &[0, 0, 6, 17, 132, 262])
        ),
        _ => format!(
            "{} {} {} 0",
            one(rng, &["any_socket", "any_socket", "any_pair"]),
            one(rng, &[1, 2, 10]),
            one(rng, &[1, 2])
        ),
    }
}

/// A call on sockets of the internet, all on the loopback.
fn internet(rng: &mut SmallRng, a: i32, b: i32) -> String {
    match rng.random_range(0..14) {
        0..4 => format!("any_socket {} {} 0", one(rng, &[2, 2, 10]), one(rng, &[1, 1, 2])),
        4 | 5 => format!("bind_port {a}"),
        6 | 7 => format!("connect_to {a} {b} 0"),
        8 => format!("connect_to {a} {b} {}", rng.random_range(0..2)),
        9 => format!("send_to {a} {b}"),
        10 => format!("port {a}"),
        11 => format!("listen {a} 1"),
        _ => {
            let (level, option) =
                one(rng, &[(6, 1), (6, 9), (0, 1), (0, 2), (41, 26), (1, 2), (1, 9), (1, 15)]);
            match rng.random() {
                true => format!("setsockopt {a} {level} {option} {}", rng.random_range(0..3)),
                false => format!("getsockopt {a} {level} {option}"),
            }
        }
    }
}
