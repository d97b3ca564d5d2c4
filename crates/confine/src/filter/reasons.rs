//! Why what runs undecided grants nothing: for calls of which some run and some do not. Those that
//! run whatever their arguments have their reasons beside them (`RUNS`). `docs/system-calls.md` is
//! made from both, and a call without a reason fails a test: `DEWAR_WRITE_DOCS=1 cargo test
//! --workspace --lib -- every_call_that_runs_has_a_reason`.

use super::{
    Mode, Traps,
    arguments::special,
    calls::{IPC, PROBED, REFUSED, RUNS},
    compile,
    decided::{DECIDED, LOOKS},
};
use crate::bpf::tests::run;
use std::{collections::BTreeMap, fmt::Write as _, path::Path};
use syscalls::Sysno;

/// Calls whose arguments are looked at.
struct Row {
    calls: &'static [Sysno],
    /// The arguments that decide.
    looked_at: &'static str,
    source: &'static str,
    /// Why what runs grants nothing, whatever the other arguments.
    why: &'static str,
}

const ROWS: &[Row] = {
    use Sysno::*;
    &[
        Row {
            calls: &[setuid, setgid, setreuid, setregid, setresuid, setresgid],
            looked_at: "all, where the user namespace has one ID only",
            source: "kernel/sys.c",
            why: "Without CAP_SETUID or CAP_SETGID they swap the IDs that the process has; \
                with one of them, the monitor compares the IDs of the caller at each \
                call and makes none for another user.",
        },
        Row {
            calls: &[open, openat],
            looked_at: "the flags",
            source: "fs/open.c (build_open_how), security/landlock/fs.c",
            why: "Runs with O_PATH where nothing is hidden: the kernel drops every flag then that makes or cuts a \
                file, such a descriptor can only be looked at, and every use of it is a call of its own. Runs for \
                plain reading in mode fast, where the envelope refuses exactly what policy refuses: access mode, \
                O_CREAT, O_TRUNC and O_TMPFILE are looked at, of the rest none writes (O_EMPTYPATH of Linux 7 opens a descriptor's file anew). The path is not looked at: \
                whichever it is, the envelope stands behind it.",
        },
        Row {
            calls: &[fork, vfork, clone],
            looked_at: "of clone the flags",
            source: "kernel/fork.c",
            why: "A child has its parent's label, filter, envelope and namespaces. Runs where every domain may fork; a \
                thread always. CLONE_PARENT, which would hide whose child it is, and namespaces fail. CLONE_UNTRACED, \
                by which nobody who stops the run holds the child from its birth, waits while it is stopped; where sends \
                are decided, the monitor notes CLONE_FILES of another process than a thread. All 32 bits \
                that clone reads are known: what later kernels add has to be asked for by clone3, which fails. \
                CLONE_PIDFD gives a descriptor by which nothing is signalled or inspected undecided; CLONE_FS shares \
                a working directory.",
        },
        Row {
            calls: &[unshare],
            looked_at: "the flags",
            source: "kernel/fork.c (check_unshare_flags, ksys_unshare)",
            why: "Runs with the flags for descriptors, working directory, semaphores and (alone) memory and threads: \
                it stops sharing them with relatives, and gets nothing. Namespaces are refused, and a flag that is \
                not known is unknown: UNSHARE_EMPTY_MNTNS of Linux 7.1 makes a namespace of mounts and is none of \
                the former flags.",
        },
        Row {
            calls: &[prctl],
            looked_at: "the option",
            source: "kernel/sys.c, kernel/sched/core_sched.c, security/commoncap.c, security/yama/yama_lsm.c",
            why: "The options that run, of Linux 6.18, are about the caller: its name, timers, speculation, vector \
                length, memory. PR_SET_MM, by which a process would tell lies about itself in /proc, fails, as does \
                PR_SET_CHILD_SUBREAPER with several domains; PR_SET_DUMPABLE does nothing; what a later kernel adds \
                is unknown (79 to 81 of Linux 7.3: rseq slices, CFI; both would be the caller's own). \
                PR_SET_IO_FLUSHER needs CAP_SYS_RESOURCE; PR_SET_MEMORY_MERGE is as MADV_MERGEABLE. PR_SET_PTRACER lets others trace, \
                which Landlock and the monitor decide. PR_SCHED_CORE names another process: the kernel asks for the \
                right to trace it, and all that changes is with whom it shares a core.",
        },
        Row {
            calls: &[ioctl],
            looked_at: "the request",
            source: "fs/ioctl.c, fs/remap_range.c, drivers/tty/ (tty_io.c, tty_jobctrl.c, pty.c, vt/vt_ioctl.c), \
                security/landlock/fs.c; ioctls of btrfs, ext4, f2fs, xfs, ocfs2, bcachefs, autofs, coda, overlayfs; \
                fs/nsfs.c, fs/pidfs.c, net/socket.c, net/core/dev_ioctl.c",
            why: "By request alone, the list is of those that fail: they change a file through a descriptor to read, \
                name files in memory (snapshots, reflinks), type into a terminal, make what a call that fails would \
                make, or outlive the run. Of all file systems of Linux 6.1, 6.12 and 7.3, \
                others that look up a path go to a daemon of root's (autofs asks for CAP_SYS_ADMIN; Coda's goes to \
                its own) or only compare (XFS_IOC_PATH_TO_HANDLE tells that a name exists). The rest acts on what is \
                open; of devices, Landlock (IOCTL_DEV) lets pass those that policy grants, but not what was \
                inherited open. FIDEDUPERANGE compares with a file that was opened to write, or that the caller owns \
                or could write: who has a descriptor that cannot read can find out its content block by block. SIOC* \
                that change anything need CAP_NET_ADMIN over the network; namespaces are had by NS_GET_* and \
                SIOCGSKNS only by who rules over them, and entered by none. Who is in the foreground of the terminal (TIOCSPGRP) is decided, \
                and so are FIOASYNC, FIOSETOWN and SIOCSPGRP, as by fcntl, but for an owner beside the caller: it stands in memory. \
                What stays: settings of a terminal, fonts and colours of a console, its size (SIGWINCH to its \
                foreground), and TIOCSIG of a master, which sends what its keys do (SIGINT, SIGQUIT, SIGTSTP).",
        },
        Row {
            calls: &[setpgid],
            looked_at: "the group",
            source: "kernel/sys.c",
            why: "A group of its own (0) runs. Another, of the same session, is joined or made where the monitor finds \
                no member of it outside, as whoever is in the group in the foreground of a terminal reads it; its number \
                is kept meanwhile.",
        },
        Row {
            calls: &[fcntl],
            looked_at: "the command",
            source: "fs/fcntl.c, fs/locks.c, fs/notify/dnotify/dnotify.c, drivers/tty/tty_io.c (__tty_fasync)",
            why: "Flags, locks, seals and sizes of descriptors that it has. Who gets signals (F_SETOWN) is decided, \
                F_SETOWN_EX fails; so is O_ASYNC by F_SETFL, as a terminal makes its foreground group the owner \
                then, outside or in another domain. Unknown are leases and delegations, for which others who open \
                the file would wait, and F_NOTIFY, a watch that asks for no right to watch: both would make the \
                caller the owner, too. O_NOATIME needs the file's owner, as hints do since Linux 6.12. What stays: flags are those of an \
                open file, which the caller of Dewar may share (O_NONBLOCK, O_APPEND).",
        },
        Row {
            calls: &[get_robust_list],
            looked_at: "the PID",
            source: "kernel/futex/syscalls.c",
            why: "Its own; that of another tells an address in that process.",
        },
        Row {
            calls: &[socket, socketpair],
            looked_at: "family and type",
            source: "net/socket.c, net/unix/af_unix.c (unix_create)",
            why: "Local streams run, and SOCK_SEQPACKET, which heeds no address: they reach nobody before a connect, \
                which is decided. SOCK_RAW is SOCK_DGRAM there. Where datagrams are decided, making them is no \
                grant: each send is.",
        },
        Row {
            calls: &[shutdown],
            looked_at: "none",
            source: "net/socket.c, net/ipv4/af_inet.c (inet_shutdown), net/unix/af_unix.c (unix_shutdown)",
            why: "It ends what the socket sends or receives. Runs where no port can be the run's own: a socket that is to \
                listen while a connect to it is under way could be had to stop by it.",
        },
        Row {
            calls: &[listen],
            looked_at: "none",
            source: "net/socket.c, net/ipv4/inet_connection_sock.c, net/unix/af_unix.c (unix_listen, unix_autobind)",
            why: "Runs where no domain may own a socket that listening alone would give a port. A local one needs a \
                name, and bind is decided; but with SO_PASSCRED set the kernel gives it a number for a name when it \
                connects, which may fail: it can then listen there, among the abstract names of its network. That is \
                one of the run's own unless policy grants an endpoint outside.",
        },
        Row {
            calls: &[sendto],
            looked_at: "address and flags",
            source: "net/socket.c, net/ipv4/udp.c (udp_sendmsg), net/ipv6/datagram.c, net/unix/af_unix.c, \
                net/netlink/af_netlink.c, net/core/rtnetlink.c",
            why: "Without an address (all 64 bits of the pointer are 0) it goes to the peer, and the connect was \
                decided; the length is not read then. What is corked goes to the first address. Runs with one where \
                no domain may own a socket that could send to any: streams and SOCK_SEQPACKET heed none, and for \
                netlink of routes, to whom that is not the kernel takes CAP_NET_ADMIN, as does every request of the \
                kernel but questions.",
        },
        Row {
            calls: &[sendmsg, sendmmsg],
            looked_at: "flags",
            source: "net/socket.c, net/core/scm.c",
            why: "Run where no domain may own a socket that could send to any address: the \
                address of the header is heeded for none of the sockets that can exist. \
                Elsewhere the monitor sends; but a process with a table of descriptors of its own and one thread sends packets, \
                and credentials by a local stream, itself. \
                Descriptors that go along are those that it has; credentials of others \
                need CAP_SYS_ADMIN, CAP_SETUID or CAP_SETGID.",
        },
        Row {
            calls: &[setsockopt],
            looked_at: "level and name",
            source: "net/core/sock.c, net/ipv4/ip_sockglue.c, net/ipv4/tcp.c, net/ipv6/ipv6_sockglue.c, \
                net/netlink/af_netlink.c",
            why: "Options that tell how a socket behaves at its own end run, by a list of levels and names \
                (options.rs); every other is decided. Values are not read: none of those listed leads packets \
                elsewhere, whatever its value. A source that IP_MULTICAST_IF names has to be the machine's own \
                (ip_route_output), a congestion control that is not loaded takes CAP_NET_ADMIN, as does one that is \
                not for all; SO_REUSEPORT shares a port that was granted with the same user's. From Linux 6.1 to 7.3 \
                no number in the listed ranges has got another meaning.",
        },
        Row {
            calls: &[prlimit64, setrlimit],
            looked_at: "PID, resource and the pointer to new limits",
            source: "kernel/sys.c (check_prlimit_permission, do_prlimit)",
            why: "Looking runs: the kernel asks for the same user and group IDs, or CAP_SYS_RESOURCE, and not for the \
                right to trace. So without PIDs of its own the limits of the user's processes outside can be read, \
                and with several domains the mark of another's label, which is a number that /proc shows, too. \
                Setting one's own runs, up to the hard limit. The one limit that bears the mark of a label fails.",
        },
        Row {
            calls: &[sched_setparam, sched_setscheduler, sched_setattr, sched_setaffinity],
            looked_at: "the PID",
            source: "kernel/sched/syscalls.c",
            why: "Its own scheduling. Real-time priorities need CAP_SYS_NICE or \
                RLIMIT_RTPRIO of the caller.",
        },
        Row {
            calls: &[ptrace],
            looked_at: "the request",
            source: "kernel/ptrace.c (ptrace_check_attach, check_ptrace_options, ptrace_set_syscall_info), \
                arch/x86/kernel/ptrace.c",
            why: "To begin tracing is decided (PTRACE_TRACEME, PTRACE_ATTACH, PTRACE_SEIZE; the kernel compares all 64 \
                bits). With one domain, every other request runs: it reaches only whom the calling thread traces \
                already, which the kernel looks at first. The filter is suspended, and looked at, by nobody who has one himself. Calls that a tracer \
                changes come to the filter afterwards. Who is traced enters no other domain, and is killed when a \
                change of policy takes something.",
        },
        Row {
            calls: &[memfd_create],
            looked_at: "the flags",
            source: "mm/memfd.c",
            why: "Memory with MFD_NOEXEC_SEAL can never be executed as a program (the bits are off and sealed; \
                together with MFD_EXEC, and before Linux 6.3, the kernel says EINVAL), and has no name for others.",
        },
        Row {
            calls: &[chdir],
            looked_at: "none",
            source: "fs/open.c",
            why: "Runs in mode fast where nothing is hidden: the envelope is about what is \
                opened from there.",
        },
        Row {
            calls: &[fchdir],
            looked_at: "none",
            source: "fs/open.c",
            why: "Runs in mode fast: the directory is open already.",
        },
        Row {
            calls: LOOKS,
            looked_at: "none",
            source: "fs/stat.c, fs/open.c, fs/readlink.c, fs/xattr.c, fs/file_attr.c, fs/namei.c (follow_automount)",
            why: "Run where nothing visible is hidden from any domain: that something exists, and its attributes, are \
                no secret then. Landlock does not know them. What stays: on the way to a name an automounter \
                (autofs) that lies in the view mounts what it is called by, and so learns a name.",
        },
        Row {
            calls: IPC,
            looked_at: "none",
            source: "ipc/shm.c, ipc/sem.c, ipc/msg.c, ipc/mqueue.c, ipc/util.c",
            why: "Run in an IPC namespace of its own where there is one domain: all objects there are the run's. \
                Objects are looked up in the caller's namespace alone, also those of mq_open, which lie in a mount \
                of that namespace; a signal of mq_notify goes to who asked for it.",
        },
    ]
};

/// Every combination of what a filter must know.
pub(super) fn all_traps() -> impl Iterator<Item = Traps> {
    (0..1 << 12).map(|bits: u32| {
        let is = |n: u32| bits & 1 << n != 0;
        Traps {
            mode: if is(0) { Mode::Fast } else { Mode::All },
            reads_exact: is(1),
            lists: is(2),
            looks: is(3),
            forks: is(4),
            lineage: is(5),
            datagrams: is(6),
            listens: is(7),
            one_id: is(8),
            private_ipc: is(9),
            keeps_sockets: is(10),
            own_ports: is(11),
        }
    })
}

/// The calls of which some run under some policy, by the filter itself.
fn running() -> Vec<Sysno> {
    let mut found = std::collections::BTreeSet::new();
    // Each trait alone, and all at once, with arguments of which each rule has one that it lets
    // run.
    let traps = all_traps().filter(|traps| {
        let text = format!("{traps:?}");
        let set = text.matches("true").count();
        set <= 1 || set >= 10 || (traps.reads_exact && set <= 2)
    });
    for traps in traps {
        let program = compile(traps).unwrap();
        for call in Sysno::iter() {
            if found.contains(&call) {
                continue;
            }
            let values = [0, 1, 2, 8, libc::O_PATH as u64, 1 << 16];
            let runs = values.iter().any(|first| {
                values.iter().any(|second| {
                    let args = [*first, *second, 2, 0, 0, 0];
                    run(&program, 0xc000_003e, call.id() as u32, args) == libc::SECCOMP_RET_ALLOW
                })
            });
            if runs {
                found.insert(call);
            }
        }
    }
    found.into_iter().collect()
}

/// Of each call, the reasons.
fn reasons() -> BTreeMap<Sysno, Vec<&'static str>> {
    let always = RUNS.iter().flat_map(|group| group.calls.iter().map(|call| (*call, group.why)));
    let some = ROWS.iter().flat_map(|row| row.calls.iter().map(|call| (*call, row.why)));
    let mut all: BTreeMap<Sysno, Vec<&'static str>> = BTreeMap::new();
    for (call, why) in always.chain(some) {
        all.entry(call).or_default().push(why);
    }
    all
}

fn names(calls: &[Sysno]) -> String {
    let names: Vec<String> = calls.iter().map(|call| format!("`{call}`")).collect();
    names.join(" ")
}

/// The document.
fn table() -> String {
    let mut text = "# Every system call, and why what runs undecided grants nothing\n\n\
        Made from the filter's own table; a call of it without a reason fails a test \
        (`every_call_that_runs_has_a_reason`),\nand one that stands in no table fails with `ENOSYS` \
        (`calls_that_no_table_knows_fail`), also on a kernel that knows it. The\nreasons were read in the files named, \
        of Linux 6.1.192, 6.12.117 and 7.3.4; where these differ it is said. What does not hold stands in \
        SECURITY.md.\n\n\
        ## Runs whatever its arguments\n\n| what | calls | why it grants nothing | read in |\n|---|---|---|---|\n"
        .to_owned();
    for group in RUNS {
        let (title, calls) = (group.title, names(group.calls));
        writeln!(text, "| {title} | {calls} | {} | {} |", group.why, group.source).unwrap();
    }
    text += "\nOf these, `setrlimit` stands in the next table, too.\n\n\
        ## Runs, or is decided, by arguments or by policy\n\n\
        | calls | looked at | why what runs grants nothing | read in |\n|---|---|---|---|\n";
    for row in ROWS {
        let (calls, looked_at) = (names(row.calls), row.looked_at);
        writeln!(text, "| {calls} | {looked_at} | {} | {} |", row.why, row.source).unwrap();
    }
    let undecided: Vec<Sysno> = reasons().into_keys().collect();
    let decided = DECIDED.iter().flat_map(|(_, calls)| calls.iter().copied());
    let mut decided: Vec<Sysno> = decided
        .filter(|call| ![undecided.as_slice(), REFUSED, IPC, PROBED, LOOKS].concat().contains(call))
        .collect();
    decided.sort_unstable();
    let refused = REFUSED.iter().chain(PROBED).copied().filter(|it| *it != Sysno::unshare);
    let refused: Vec<Sysno> = refused.collect();
    writeln!(
        text,
        "\n## Always decided\n\n{}.\n\n## Refused whatever policy says, on record\n\n{}.",
        names(&decided),
        names(&refused)
    )
    .unwrap();
    text
}

#[test]
fn every_call_that_runs_has_a_reason() {
    let reasons = reasons();
    let special: Vec<Sysno> = special(all_traps().next().unwrap()).iter().map(|it| it.0).collect();
    for call in running() {
        assert!(reasons.contains_key(&call), "{call} runs, and nobody says why it may");
    }
    for call in reasons.keys() {
        let is_listed = RUNS.iter().any(|group| group.calls.contains(call));
        let is_known = is_listed || special.contains(call);
        let is_known = is_known || [LOOKS, IPC].concat().contains(call);
        let is_known = is_known || [Sysno::chdir, Sysno::fchdir].contains(call);
        assert!(is_known, "{call} has a reason, and never runs");
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/system-calls.md");
    if std::env::var_os("DEWAR_WRITE_DOCS").is_some() {
        std::fs::write(&file, table()).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(written, table(), "run this test with DEWAR_WRITE_DOCS=1");
}
