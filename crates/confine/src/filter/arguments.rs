//! System calls whose treatment depends on their arguments, or on more than one trait of the
//! policy.

use super::{Traps, decided::REQUESTS, options::options};
use crate::bpf::{Action, Rule, Test};
use syscalls::Sysno;

const EPERM: Action = Action::Errno(libc::EPERM as u16);
/// What programs take for an older kernel, and do without. With several domains, a PID descriptor
/// may stand for another process by the time that the kernel looks. Landlock rules of a process's
/// own would not hold for the calls that the monitor makes in its place.
const NOT_HERE: Action = Action::Errno(libc::ENOSYS as u16);
/// Every `CLONE_NEW*` flag of clone(2) and unshare(2); `CLONE_NEWTIME` collides with clone's signal
/// mask and is only unshare's.
pub const NEW_NAMESPACES: u32 = 0x7e02_0000;

/// The rules of these calls.
pub(super) fn special(traps: Traps) -> Vec<(Sysno, Rule)> {
    use Action::{Allow, Errno, Notify};
    // A trapped call ends by `EINTR` when a signal comes before the monitor has received it. No
    // program expects that of a fork, so forks that all may make run: the kernel hands the label
    // on.
    let births = if traps.forks { Allow } else { Notify };
    let sends = if traps.datagrams { Notify } else { Allow };
    let listens = if traps.listens || traps.keeps_sockets { Notify } else { Allow };
    let ids = if traps.one_id { Notify } else { Allow };
    vec![
        (Sysno::setuid, ids.into()),
        (Sysno::setgid, ids.into()),
        (Sysno::setreuid, ids.into()),
        (Sysno::setregid, ids.into()),
        (Sysno::setresuid, ids.into()),
        (Sysno::setresgid, ids.into()),
        (Sysno::open, opens(traps, 1)),
        (Sysno::openat, opens(traps, 2)),
        (Sysno::fork, births.into()),
        (Sysno::vfork, births.into()),
        (Sysno::clone, clones(births, traps.datagrams)),
        (Sysno::unshare, unshares()),
        (Sysno::prctl, prctl(traps)),
        (Sysno::ioctl, ioctl()),
        // Without PIDs of its own, a run has numbers for groups outside.
        (Sysno::setpgid, when(&[none_of(1, !0)], Allow, Notify)),
        (Sysno::fcntl, fcntl()),
        // It tells an address in another process.
        (Sysno::get_robust_list, when(&[none_of(0, !0)], Allow, Notify)),
        (Sysno::pidfd_send_signal, if traps.lineage { NOT_HERE } else { Notify }.into()),
        (Sysno::landlock_add_rule, NOT_HERE.into()),
        (Sysno::landlock_restrict_self, NOT_HERE.into()),
        (Sysno::socket, sockets(traps, !traps.keeps_sockets)),
        (Sysno::socketpair, sockets(traps, true)),
        (Sysno::listen, listens.into()),
        (
            Sysno::sendto,
            Rule { tests: vec![fast_open(3), (Test::Null { arg: 4 }, Allow)], otherwise: sends },
        ),
        (Sysno::sendmsg, Rule { tests: vec![fast_open(2)], otherwise: sends }),
        (Sysno::sendmmsg, Rule { tests: vec![fast_open(3)], otherwise: sends }),
        (Sysno::setsockopt, options(traps.own_ports)),
        (Sysno::shutdown, if traps.own_ports { Notify } else { Allow }.into()),
        (Sysno::prlimit64, limits()),
        (Sysno::setrlimit, when(&[mark(0)], EPERM, Allow)),
        (Sysno::sched_setparam, tunes()),
        (Sysno::sched_setscheduler, tunes()),
        (Sysno::sched_setattr, tunes()),
        (Sysno::sched_setaffinity, tunes()),
        (Sysno::memfd_create, memory()),
        (Sysno::ptrace, traces(traps)),
        // Its flags lie in memory; libc falls back to clone.
        (Sysno::clone3, Errno(libc::ENOSYS as u16).into()),
    ]
}

/// open and openat, whose flags are argument `arg`.
fn opens(traps: Traps, arg: u8) -> Rule {
    let mut allowed = Vec::new();
    if !traps.looks {
        // A descriptor that can only be looked at: every use that grants something is an open of
        // its own.
        allowed.push(Test::Masked { arg, mask: libc::O_PATH as u32, value: libc::O_PATH as u32 });
    }
    if traps.reads_pass() {
        let tmpfile = libc::O_TMPFILE & !libc::O_DIRECTORY;
        let writes = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | tmpfile;
        let lists = if traps.lists { libc::O_DIRECTORY } else { 0 };
        allowed.push(none_of(arg, (writes | lists) as u32));
    }
    when(&allowed, Action::Allow, Action::Notify)
}

/// A thread shares its process's label; another process is a birth. `CLONE_PARENT` would hide whose
/// child it is.
fn clones(births: Action, datagrams: bool) -> Rule {
    let flag = |flag: libc::c_int| Test::Masked { arg: 0, mask: flag as u32, value: flag as u32 };
    let mut tests: Vec<(Test, Action)> = (0..32)
        .map(|bit| 1u32 << bit)
        .filter(|bit| NEW_NAMESPACES & bit != 0)
        .map(|bit| (Test::Masked { arg: 0, mask: bit, value: bit }, Action::Notify))
        .collect();
    // Whoever stops a run does not hold what is born so from its birth: it finds it afterwards, as
    // nobody makes another meanwhile.
    tests.push((flag(libc::CLONE_UNTRACED), Action::Notify));
    tests.push((flag(libc::CLONE_THREAD), Action::Allow));
    if datagrams {
        // Who shares its table of descriptors with another process does not send by itself.
        tests.push((flag(libc::CLONE_FILES), Action::Notify));
    }
    tests.push((flag(libc::CLONE_PARENT), Action::Notify));
    Rule { tests, otherwise: births }
}

/// Of what a process shares with relatives, it may have its own. Namespaces are refused on record;
/// what a later kernel adds is not known until it was read.
fn unshares() -> Rule {
    let shared = libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SYSVSEM
        | libc::CLONE_THREAD
        | libc::CLONE_SIGHAND
        | libc::CLONE_VM;
    let shared = shared.cast_unsigned();
    let tests = vec![
        (none_of(0, !shared), Action::Allow),
        (none_of(0, !(shared | NEW_NAMESPACES | 0x80)), Action::Notify),
    ];
    Rule { tests, otherwise: UNKNOWN }
}

fn prctl(traps: Traps) -> Rule {
    let option = |option: libc::c_int| Test::Masked { arg: 0, mask: !0, value: option as u32 };
    let dumpable = libc::PR_SET_DUMPABLE;
    // The monitor reads the arguments of calls from the caller's memory, so a process stays
    // dumpable; it is told that it is not, since nobody but the monitor and its own domain can
    // look.
    let mut tests = vec![
        (option(libc::PR_SET_MM), Action::Notify),
        (Test::Within { arg: 0, value: dumpable as u32, of: 1, low: 0, high: 1 }, Action::Errno(0)),
        (option(dumpable), Action::Errno(libc::EINVAL as u16)),
    ];
    if traps.lineage {
        // An orphan must go to init, never to a process of another domain.
        tests.push((option(libc::PR_SET_CHILD_SUBREAPER), Action::Notify));
    }
    tests.extend(PRCTL.map(|(low, high)| (Test::Range { arg: 0, low, high }, Action::Allow)));
    Rule { tests, otherwise: UNKNOWN }
}

/// First and last option of prctl(2), of Linux 6.18: they are about the caller itself, or about
/// processes that it may trace. What a later kernel adds is not known until it was read.
const PRCTL: [(u32, u32); 4] = [
    // PR_SET_PDEATHSIG to PR_FUTEX_HASH
    (1, 78),
    // PR_SET_VMA, PR_GET_AUXV, PR_SET_PTRACER
    (0x5356_4d41, 0x5356_4d41),
    (0x4155_5856, 0x4155_5856),
    (0x5961_6d61, 0x5961_6d61),
];

/// What the kernel says of a command or an option that it does not know.
const UNKNOWN: Action = Action::Errno(libc::EINVAL as u16);

fn ioctl() -> Rule {
    let request = |request: u32| Test::Masked { arg: 1, mask: !0, value: request };
    let trapped = REQUESTS.iter().flat_map(|(_, requests)| *requests);
    let tests = trapped.map(|it| (request(*it), Action::Notify)).collect();
    Rule { tests, otherwise: Action::Allow }
}

/// `F_SETOWN_EX` of `asm-generic/fcntl.h`.
pub const F_SETOWN_EX: u32 = 15;

/// First and last command of fcntl(2), of Linux 6.18: they are about descriptors that the caller
/// has. Left out: leases and delegations, for which others who open the file would wait, and
/// `F_NOTIFY`, which watches a directory that may only be listed.
const FCNTL: [(u32, u32); 6] = [
    // F_DUPFD to F_SETLKW
    (0, 7),
    // F_GETLEASE
    (1025, 1025),
    // F_DUPFD_QUERY to F_SET_FILE_RW_HINT
    (1027, 1038),
    // F_GETOWN to F_GETSIG, F_GETOWN_EX and F_GETOWNER_UIDS, F_OFD_GETLK to F_OFD_SETLKW
    (9, 11),
    (16, 17),
    (36, 38),
];

/// Who owns a descriptor gets the signals that its user chooses. `F_SETOWN_EX` names the owner in
/// memory.
fn fcntl() -> Rule {
    let command = |command: u32| Test::Masked { arg: 1, mask: !0, value: command };
    // A terminal then takes its foreground group, whoever that is, for its owner.
    let (value, mask) = (libc::F_SETFL.cast_unsigned(), libc::O_ASYNC.cast_unsigned());
    let mut tests = vec![(Test::Flagged { arg: 1, value, of: 2, mask }, Action::Notify)];
    tests.extend(FCNTL.map(|(low, high)| (Test::Range { arg: 1, low, high }, Action::Allow)));
    tests.push((command(libc::F_SETOWN as u32), Action::Notify));
    tests.push((command(F_SETOWN_EX), Action::Notify));
    Rule { tests, otherwise: UNKNOWN }
}

/// A process's own scheduling is its own affair: the PID, argument 0, is 0.
fn tunes() -> Rule {
    when(&[none_of(0, !0)], Action::Allow, Action::Notify)
}

/// To begin tracing is decided. Every other request is about a process that the caller traces
/// already: a debugger makes thousands in a second. A program of another domain may have come into
/// the place of the one that began it.
fn traces(traps: Traps) -> Rule {
    let begins = [libc::PTRACE_TRACEME, libc::PTRACE_ATTACH, libc::PTRACE_SEIZE];
    let tests = begins.map(|value| Test::Masked { arg: 0, mask: !0, value });
    let goes_on = if traps.lineage { Action::Notify } else { Action::Allow };
    when(&tests, Action::Notify, goes_on)
}

/// `MFD_NOEXEC_SEAL` of `linux/memfd.h`, known since Linux 6.3.
const MFD_NOEXEC_SEAL: u32 = 8;

/// Memory that can never be executed as a program grants nothing. A kernel that does not know the
/// flag refuses it.
fn memory() -> Rule {
    let sealed = Test::Masked { arg: 1, mask: MFD_NOEXEC_SEAL, value: MFD_NOEXEC_SEAL };
    when(&[sealed], Action::Allow, Action::Notify)
}

/// So are its limits, which setrlimit(2) changes, too, but for the one that is the mark of its
/// label; without new limits, argument 2, the call only looks.
fn limits() -> Rule {
    let tests = vec![
        (Test::Null { arg: 2 }, Action::Allow),
        (mark(1), EPERM),
        (none_of(0, !0), Action::Allow),
    ];
    Rule { tests, otherwise: Action::Notify }
}

/// Whether argument `arg` names the limit that bears the mark of a label. A run inside gives some
/// processes another label, whatever the policy of the run knows.
fn mark(arg: u8) -> Test {
    Test::Masked { arg, mask: !0, value: libc::RLIMIT_LOCKS }
}

/// Local sockets run, if they `may_run`, when they can send only to whom they are connected; the
/// connect is decided.
fn sockets(traps: Traps, may_run: bool) -> Rule {
    let mut tests = Vec::new();
    if !traps.datagrams {
        // SOCK_DGRAM and SOCK_RAW (an alias of it here) send to any name.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            tests.push((Test::Masked { arg: 1, mask: 0xf, value: kind as u32 }, Action::Notify));
        }
    }
    if may_run {
        tests.push((Test::Masked { arg: 0, mask: !0, value: libc::AF_UNIX as u32 }, Action::Allow));
    }
    Rule { tests, otherwise: Action::Notify }
}

/// TCP Fast Open connects where no connect is seen: the monitor refuses it. The flags of a send are
/// argument `arg`.
fn fast_open(arg: u8) -> (Test, Action) {
    let flag = libc::MSG_FASTOPEN as u32;
    (Test::Masked { arg, mask: flag, value: flag }, Action::Notify)
}

fn none_of(arg: u8, mask: u32) -> Test {
    Test::Masked { arg, mask, value: 0 }
}

fn when(tests: &[Test], action: Action, otherwise: Action) -> Rule {
    Rule { tests: tests.iter().map(|test| (*test, action)).collect(), otherwise }
}
