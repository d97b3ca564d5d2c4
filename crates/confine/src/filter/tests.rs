//! The filter, run on calls as the kernel would.

use super::*;
use crate::bpf::tests::{run, run_on};

const STRICT: Traps = Traps {
    mode: Mode::All,
    reads_exact: false,
    lists: true,
    looks: true,
    forks: false,
    lineage: true,
    datagrams: true,
    listens: true,
    own_ports: false,
    keeps_sockets: false,
    one_id: true,
    private_ipc: false,
};
const LOOSE: Traps = Traps {
    mode: Mode::Fast,
    reads_exact: true,
    lists: false,
    looks: false,
    forks: true,
    lineage: false,
    datagrams: false,
    listens: false,
    own_ports: false,
    keeps_sockets: false,
    one_id: false,
    private_ipc: true,
};

fn runs() -> impl Iterator<Item = Sysno> {
    RUNS.iter().flat_map(|group| group.calls).copied()
}

fn ask(traps: Traps, call: Sysno, args: &[u64]) -> u32 {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    run(&compile(traps).unwrap(), 0xc000_003e, call.id() as u32, all)
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const NOTIFY: u32 = libc::SECCOMP_RET_USER_NOTIF;

fn errno(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

#[test]
fn no_call_stands_in_two_lists() {
    let mut seen = std::collections::HashSet::new();
    let decided = DECIDED.map(|(_, calls)| calls).concat();
    for call in runs().chain(decided) {
        assert!(seen.insert(call), "{call}");
    }
}

#[test]
fn only_plain_reads_escape_the_gate_and_only_in_fast_mode() {
    let write = libc::O_WRONLY as u64;
    let create = libc::O_CREAT as u64;
    let tmpfile = libc::O_TMPFILE as u64;
    for (traps, flags, want) in [
        (LOOSE, 0, ALLOW),
        (LOOSE, libc::O_CLOEXEC as u64, ALLOW),
        (LOOSE, libc::O_DIRECTORY as u64, ALLOW),
        (Traps { lists: true, ..LOOSE }, libc::O_DIRECTORY as u64, NOTIFY),
        (Traps { lists: true, ..LOOSE }, 0, ALLOW),
        (LOOSE, write, NOTIFY),
        (LOOSE, create, NOTIFY),
        (LOOSE, tmpfile, NOTIFY),
        (LOOSE, libc::O_TRUNC as u64, NOTIFY),
        (LOOSE, libc::O_PATH as u64, ALLOW),
        (STRICT, 0, NOTIFY),
        (STRICT, libc::O_PATH as u64, NOTIFY),
    ] {
        assert_eq!(ask(traps, Sysno::openat, &[0, 0, flags]), want, "{traps:?} {flags:#o}");
        assert_eq!(ask(traps, Sysno::open, &[0, flags]), want, "{traps:?} {flags:#o}");
    }
}

/// The kernel remembers which calls a filter allows whatever their arguments, by running it
/// once on the number alone.
#[test]
fn what_always_runs_is_decided_by_its_number() {
    let argued: Vec<Sysno> = special(LOOSE).iter().map(|(call, _)| *call).collect();
    let program = compile(LOOSE).unwrap();
    for call in runs()
        .chain(LOOKS.iter().copied())
        .chain([Sysno::chdir])
        .filter(|call| !argued.contains(call))
    {
        let word = |offset| match offset {
            0 => call.id() as u32,
            4 => 0xc000_003e,
            _ => panic!("{call}: an argument is looked at"),
        };
        assert_eq!(run_on(&program, word), ALLOW, "{call}");
    }
}

#[test]
fn namespaces_cannot_be_made() {
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID] {
        for traps in [STRICT, LOOSE] {
            let flags = flag as u64 | libc::CLONE_THREAD as u64;
            assert_eq!(ask(traps, Sysno::clone, &[flags]), NOTIFY);
            assert_eq!(ask(traps, Sysno::unshare, &[flag as u64]), NOTIFY);
        }
    }
    assert_eq!(ask(LOOSE, Sysno::clone3, &[]), errno(libc::ENOSYS));
    assert_eq!(ask(LOOSE, Sysno::unshare, &[libc::CLONE_FILES as u64]), ALLOW);
    for unknown in [0x0010_0000, 0x0100, 1] {
        assert_eq!(
            ask(LOOSE, Sysno::unshare, &[unknown]),
            match unknown {
                0x0100 => ALLOW,
                _ => errno(libc::EINVAL),
            }
        );
    }
}

#[test]
fn forks_run_where_everybody_may() {
    let fork = [libc::SIGCHLD as u64];
    for mode in [Mode::All, Mode::Fast] {
        let loose = Traps { mode, ..LOOSE };
        assert_eq!(ask(loose, Sysno::clone, &fork), ALLOW);
        assert_eq!(ask(loose, Sysno::vfork, &[]), ALLOW);
        assert_eq!(ask(Traps { lineage: true, ..loose }, Sysno::clone, &fork), ALLOW);
        assert_eq!(ask(Traps { forks: false, ..loose }, Sysno::clone, &fork), NOTIFY);
    }
}

#[test]
fn a_process_cannot_choose_another_parent() {
    let flags = (libc::CLONE_PARENT | libc::SIGCHLD) as u64;
    assert_eq!(ask(STRICT, Sysno::clone, &[flags]), NOTIFY);
    assert_eq!(ask(LOOSE, Sysno::clone, &[flags]), NOTIFY);
    assert_eq!(ask(STRICT, Sysno::clone, &[libc::SIGCHLD as u64]), NOTIFY);
    assert_eq!(ask(STRICT, Sysno::clone, &[libc::CLONE_THREAD as u64]), ALLOW);
    for other in [libc::CLONE_THREAD, libc::CLONE_VM | libc::CLONE_FILES, libc::SIGCHLD] {
        let untraced = (libc::CLONE_UNTRACED | other) as u64;
        assert_eq!(ask(LOOSE, Sysno::clone, &[untraced]), NOTIFY);
    }
    for (traps, shares) in [(LOOSE, ALLOW), (Traps { datagrams: true, ..LOOSE }, NOTIFY)] {
        let thread = (libc::CLONE_FILES | libc::CLONE_THREAD) as u64;
        assert_eq!(ask(traps, Sysno::clone, &[libc::CLONE_FILES as u64]), shares);
        assert_eq!(ask(traps, Sysno::clone, &[thread]), ALLOW);
    }
    let subreaper = libc::PR_SET_CHILD_SUBREAPER as u64;
    assert_eq!(ask(STRICT, Sysno::prctl, &[subreaper]), NOTIFY);
    assert_eq!(ask(LOOSE, Sysno::prctl, &[subreaper]), ALLOW);
}

#[test]
fn a_process_tunes_itself_and_no_other() {
    for traps in [STRICT, LOOSE] {
        for call in [Sysno::sched_setaffinity, Sysno::sched_setscheduler, Sysno::prlimit64] {
            // The kernel reads the low half.
            for (pid, want) in [(0, ALLOW), (1 << 32, ALLOW), (7, NOTIFY), (1 << 31, NOTIFY)] {
                assert_eq!(ask(traps, call, &[pid, 0, 1]), want, "{call} {pid}");
            }
        }
        assert_eq!(ask(traps, Sysno::prlimit64, &[7, 0, 0]), ALLOW);
        assert_eq!(ask(traps, Sysno::prlimit64, &[7, 0, 1 << 40]), NOTIFY);
    }
}

#[test]
fn to_begin_tracing_is_decided_and_with_one_domain_nothing_more() {
    let begins = [libc::PTRACE_TRACEME, libc::PTRACE_ATTACH, libc::PTRACE_SEIZE];
    for request in begins.map(u64::from) {
        for request in [request, 1 << 32 | request] {
            assert_eq!(ask(LOOSE, Sysno::ptrace, &[request, 7]), NOTIFY, "{request:#x}");
        }
    }
    for request in [libc::PTRACE_CONT, libc::PTRACE_SYSCALL, libc::PTRACE_POKEDATA] {
        assert_eq!(ask(LOOSE, Sysno::ptrace, &[request.into(), 7]), ALLOW, "{request:#x}");
        assert_eq!(ask(STRICT, Sysno::ptrace, &[request.into(), 7]), NOTIFY, "{request:#x}");
    }
}

#[test]
fn nobody_changes_the_mark_of_a_label() {
    let locks = u64::from(libc::RLIMIT_LOCKS);
    let want = errno(libc::EPERM);
    for traps in [STRICT, LOOSE] {
        // The kernel reads the low half.
        for resource in [locks, 1 << 32 | locks] {
            assert_eq!(ask(traps, Sysno::setrlimit, &[resource, 1]), want);
            assert_eq!(ask(traps, Sysno::prlimit64, &[0, resource, 1]), want);
        }
        assert_eq!(ask(traps, Sysno::prlimit64, &[7, locks, 0]), ALLOW);
        assert_eq!(ask(traps, Sysno::setrlimit, &[0, 1]), ALLOW);
    }
    assert_eq!(ask(STRICT, Sysno::prlimit64, &[7, locks, 1]), errno(libc::EPERM));
}

#[test]
fn processes_end_without_a_word() {
    for call in [Sysno::exit, Sysno::exit_group] {
        assert_eq!(ask(STRICT, call, &[]), ALLOW, "a signal could end {call}");
    }
}

#[test]
fn only_connected_local_sockets_escape_the_gate() {
    let (unix, inet) = (libc::AF_UNIX as u64, libc::AF_INET as u64);
    let stream = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64;
    let datagram = (libc::SOCK_DGRAM | libc::SOCK_NONBLOCK) as u64;
    for call in [Sysno::socket, Sysno::socketpair] {
        assert_eq!(ask(LOOSE, call, &[unix, stream]), ALLOW);
        assert_eq!(ask(LOOSE, call, &[unix, datagram]), NOTIFY);
        assert_eq!(ask(LOOSE, call, &[inet, stream]), NOTIFY);
    }
    assert_eq!(ask(STRICT, Sysno::sendto, &[0, 0, 0, 0, 0]), ALLOW);
    assert_eq!(ask(STRICT, Sysno::sendto, &[0, 0, 0, 0, 1 << 40]), NOTIFY);
}

#[test]
fn no_ports_are_shared_where_they_can_be_the_runs_own() {
    let own = Traps { own_ports: true, ..LOOSE };
    let ask = |traps, name: i32| ask(traps, Sysno::setsockopt, &[3, 1, name as u64]);
    assert_eq!(ask(own, libc::SO_REUSEPORT), NOTIFY);
    assert_eq!(ask(LOOSE, libc::SO_REUSEPORT), ALLOW);
    for name in [libc::SO_LINGER, libc::SO_PASSCRED, libc::SO_REUSEADDR, libc::SO_SNDTIMEO] {
        assert_eq!(ask(own, name), ALLOW, "{name}");
    }
}

#[test]
fn no_socket_stops_to_listen_undecided_where_ports_can_be_the_runs_own() {
    let own = Traps { own_ports: true, ..LOOSE };
    for how in [libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_RDWR] {
        assert_eq!(ask(own, Sysno::shutdown, &[3, how as u64]), NOTIFY);
        assert_eq!(ask(LOOSE, Sysno::shutdown, &[3, how as u64]), ALLOW);
    }
}

#[test]
fn options_run_that_lead_packets_nowhere_else() {
    use libc::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, SOL_SOCKET};
    let ask = |level: i32, name: i32| {
        ask(LOOSE, Sysno::setsockopt, &[3, level as u64, 1 << 32 | name as u64])
    };
    for (level, name) in [
        (SOL_SOCKET, libc::SO_REUSEADDR),
        (SOL_SOCKET, libc::SO_PASSCRED),
        (SOL_SOCKET, libc::SO_RCVTIMEO),
        (IPPROTO_TCP, libc::TCP_NODELAY),
        (IPPROTO_TCP, libc::TCP_KEEPIDLE),
        (IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
        (IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
        (IPPROTO_IP, libc::IP_TOS),
        (IPPROTO_IP, libc::IP_RECVERR),
        (IPPROTO_IP, libc::IP_PKTINFO),
        (IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT),
        (IPPROTO_IPV6, libc::IPV6_V6ONLY),
        (IPPROTO_IPV6, libc::IPV6_RECVERR),
        (IPPROTO_IPV6, libc::IPV6_RECVPKTINFO),
        (libc::SOL_NETLINK, libc::NETLINK_EXT_ACK),
        (libc::IPPROTO_UDPLITE, 10), // UDPLITE_SEND_CSCOV
    ] {
        assert_eq!(ask(level, name), ALLOW, "{level} {name}");
    }
    for (level, name) in [
        (SOL_SOCKET, libc::SO_BINDTODEVICE),
        (SOL_SOCKET, libc::SO_MARK),
        (SOL_SOCKET, libc::SO_ATTACH_FILTER),
        (SOL_SOCKET, libc::SO_ATTACH_BPF),
        (SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF),
        (SOL_SOCKET, 62), // SO_BINDTOIFINDEX
        (SOL_SOCKET, 83), // SO_PASSRIGHTS
        (IPPROTO_IP, libc::IP_OPTIONS),
        (IPPROTO_IP, libc::IP_HDRINCL),
        (IPPROTO_IP, libc::IP_TRANSPARENT),
        (IPPROTO_IP, libc::IP_FREEBIND),
        (IPPROTO_IP, libc::IP_ADD_MEMBERSHIP),
        (IPPROTO_IP, 64), // IPT_SO_SET_REPLACE
        (IPPROTO_IPV6, libc::IPV6_RTHDR),
        (IPPROTO_IPV6, libc::IPV6_HOPOPTS),
        (IPPROTO_IPV6, libc::IPV6_DSTOPTS),
        (IPPROTO_IPV6, libc::IPV6_RTHDRDSTOPTS),
        (IPPROTO_IPV6, 5),  // IPV6_2292RTHDR
        (IPPROTO_IPV6, 6),  // IPV6_2292PKTOPTIONS
        (IPPROTO_IPV6, 32), // IPV6_FLOWLABEL_MGR
        (IPPROTO_IPV6, libc::IPV6_ADDRFORM),
        (IPPROTO_IPV6, libc::IPV6_PKTINFO),
        (IPPROTO_TCP, libc::TCP_REPAIR),
        (IPPROTO_TCP, libc::TCP_ULP),
        (IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
        (IPPROTO_TCP, libc::TCP_MD5SIG),
        (libc::SOL_UDP, 100),         // UDP_ENCAP
        (libc::IPPROTO_UDPLITE, 100), // the same, of UDP-Lite
        (libc::SOL_RAW, 1),
        (282, 1), // SOL_TLS
        (0x7fff, 1),
        (-1, -1),
    ] {
        assert_eq!(ask(level, name), NOTIFY, "{level} {name}");
    }
}

#[test]
fn signals_by_descriptor_are_decided() {
    for traps in [STRICT, LOOSE] {
        let set_flags = |flags: libc::c_int| {
            ask(traps, Sysno::fcntl, &[0, 1 << 32 | libc::F_SETFL as u64, flags as u64])
        };
        assert_eq!(set_flags(libc::O_RDWR | libc::O_NONBLOCK), ALLOW);
        assert_eq!(set_flags(libc::O_ASYNC | libc::O_NONBLOCK), NOTIFY);
        assert_eq!(ask(traps, Sysno::ioctl, &[0, libc::FIOASYNC]), NOTIFY);
        assert_eq!(ask(traps, Sysno::ioctl, &[0, 1 << 32 | libc::TIOCSPGRP]), NOTIFY);
        assert_eq!(ask(traps, Sysno::setpgid, &[7, 0]), ALLOW);
        assert_eq!(ask(traps, Sysno::setpgid, &[0, 7]), NOTIFY);
        assert_eq!(ask(traps, Sysno::fcntl, &[0, libc::F_SETOWN as u64, 7]), NOTIFY);
        assert_eq!(ask(traps, Sysno::fcntl, &[0, 1 << 32 | 15]), NOTIFY);
        assert_eq!(ask(traps, Sysno::ioctl, &[0, 0x8901]), NOTIFY);
        assert_eq!(ask(traps, Sysno::get_robust_list, &[7]), NOTIFY);
        assert_eq!(ask(traps, Sysno::get_robust_list, &[0]), ALLOW);
    }
}

#[test]
fn with_several_domains_nobody_signals_by_pidfd() {
    assert_eq!(ask(STRICT, Sysno::pidfd_send_signal, &[]), errno(libc::ENOSYS));
    assert_eq!(ask(LOOSE, Sysno::pidfd_send_signal, &[]), NOTIFY);
}

#[test]
fn nobody_has_rules_of_landlock_that_the_monitor_would_not_follow() {
    for call in [Sysno::landlock_add_rule, Sysno::landlock_restrict_self] {
        for traps in [STRICT, LOOSE] {
            assert_eq!(ask(traps, call, &[]), errno(libc::ENOSYS));
        }
    }
}

#[test]
fn commands_and_options_that_were_not_read_are_unknown() {
    for (call, arg, known) in [(Sysno::fcntl, 1, 1030), (Sysno::prctl, 0, 38)] {
        let mut args = [0; 2];
        args[arg] = known;
        assert_eq!(ask(LOOSE, call, &args), ALLOW, "{call}");
        for unknown in [1024, 1040, 0x7fff_ffff] {
            args[arg] = unknown;
            assert_eq!(ask(LOOSE, call, &args), errno(libc::EINVAL), "{call} {unknown}");
        }
    }
    assert_eq!(ask(LOOSE, Sysno::prctl, &[0x5356_4d41]), ALLOW);
}

#[test]
fn memory_that_can_never_be_executed_is_made_without_a_word() {
    for (flags, want) in [(0, NOTIFY), (0x10, NOTIFY), (8, ALLOW), (9, ALLOW)] {
        assert_eq!(ask(LOOSE, Sysno::memfd_create, &[0, flags]), want, "{flags:#x}");
    }
}

#[test]
fn nothing_can_be_typed_into_the_terminal() {
    for high in [0, 1 << 32] {
        assert_eq!(ask(LOOSE, Sysno::ioctl, &[0, high | libc::TIOCSTI]), NOTIFY);
    }
}

/// A new kernel brings no new hole.
#[test]
fn calls_that_no_table_knows_fail() {
    let listed: Vec<Sysno> = runs().chain(DECIDED.map(|(_, calls)| calls).concat()).collect();
    let argued: Vec<Sysno> = special(LOOSE).iter().map(|(call, _)| *call).collect();
    let last = Sysno::last().id() as u32;
    for number in (0..2048).chain([9999, 0x3fff_ffff, 0x4000_0000, 0x4000_0209, u32::MAX]) {
        let call = Sysno::new(number as usize).filter(|_| number <= last);
        if call.is_some_and(|call| listed.contains(&call) || argued.contains(&call)) {
            continue;
        }
        for traps in [STRICT, LOOSE] {
            let answer = run(&compile(traps).unwrap(), 0xc000_003e, number, [0; 6]);
            assert_eq!(answer, errno(libc::ENOSYS), "{number}");
        }
    }
}

#[test]
fn ways_around_the_gate_fail() {
    use Sysno::{bpf, io_uring_enter, io_uring_setup, mount, open_by_handle_at, setns};
    for call in [mount, setns, bpf, open_by_handle_at, io_uring_setup, io_uring_enter] {
        assert_eq!(ask(LOOSE, call, &[]), NOTIFY, "{call}");
        assert_eq!(handler(call, &[0; 6]), Some(Handler::Refused), "{call}");
    }
}
