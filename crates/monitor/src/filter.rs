//! The seccomp filter, compiled from the policy: which system call runs, which fails in the kernel, which waits
//! for the monitor.
//!
//! - what no domain may ever do fails in the kernel;
//! - what grants nothing, or what the envelope refuses exactly where policy does, runs;
//! - the rest notifies.
//!
//! Calls that stand in no list fail with `ENOSYS`: a new kernel brings no new hole.

use crate::bpf::{Action, Rule, Test, TooLong, assemble};
use libc::sock_filter;
use syscalls::Sysno;

/// How much is put before the object managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Every open and exec is decided, counted and, when denied, explained.
    #[default]
    All,
    /// Opens for reading that all reachable domains may do are left to the envelope.
    Fast,
}

/// What the filter must know of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traps {
    pub(crate) mode: Mode,
    /// The envelope refuses reading exactly where policy does.
    pub(crate) reads_exact: bool,
    /// Some directory can be listed only by the monitor.
    pub(crate) lists: bool,
    /// Some object is hidden from some domain: calls that only look must be decided, too.
    pub(crate) looks: bool,
    /// Every domain may make processes.
    pub(crate) forks: bool,
    /// More than one domain can exist: a process's children must be labelled before it ends.
    pub(crate) lineage: bool,
    /// Some domain may own sockets that can send to any address without connecting.
    pub(crate) datagrams: bool,
    /// Some domain may own sockets that listening alone gives a port.
    pub(crate) listens: bool,
    /// System V and POSIX message queues, semaphores and shared memory are the sandbox's own.
    pub(crate) private_ipc: bool,
}

/// Grants nothing beyond what the process already holds, or reaches only its own descriptors and memory.
const RUNS: &[Sysno] = {
    use Sysno::*;
    &[
        read,
        write,
        close,
        fstat,
        poll,
        lseek,
        mmap,
        mprotect,
        munmap,
        brk,
        rt_sigaction,
        rt_sigprocmask,
        rt_sigreturn,
        pread64,
        pwrite64,
        readv,
        writev,
        pipe,
        select,
        sched_yield,
        mremap,
        msync,
        mincore,
        madvise,
        dup,
        dup2,
        pause,
        nanosleep,
        getitimer,
        alarm,
        setitimer,
        getpid,
        sendfile,
        accept,
        recvfrom,
        recvmsg,
        shutdown,
        getsockname,
        getpeername,
        setsockopt,
        getsockopt,
        exit,
        wait4,
        uname,
        fcntl,
        flock,
        fsync,
        fdatasync,
        ftruncate,
        getdents,
        getcwd,
        fchdir,
        umask,
        gettimeofday,
        getrlimit,
        getrusage,
        sysinfo,
        times,
        getuid,
        getgid,
        setuid,
        setgid,
        geteuid,
        getegid,
        setpgid,
        getppid,
        getpgrp,
        setsid,
        setreuid,
        setregid,
        getgroups,
        setgroups,
        setresuid,
        getresuid,
        setresgid,
        getresgid,
        getpgid,
        setfsuid,
        setfsgid,
        getsid,
        capget,
        capset,
        rt_sigpending,
        rt_sigtimedwait,
        rt_sigsuspend,
        sigaltstack,
        personality,
        ustat,
        fstatfs,
        sysfs,
        getpriority,
        sched_getparam,
        sched_getscheduler,
        sched_get_priority_max,
        sched_get_priority_min,
        sched_rr_get_interval,
        mlock,
        munlock,
        mlockall,
        munlockall,
        arch_prctl,
        adjtimex,
        setrlimit,
        sync,
        gettid,
        readahead,
        fgetxattr,
        flistxattr,
        time,
        futex,
        sched_getaffinity,
        set_thread_area,
        io_setup,
        io_destroy,
        io_getevents,
        io_submit,
        io_cancel,
        get_thread_area,
        epoll_create,
        remap_file_pages,
        getdents64,
        set_tid_address,
        restart_syscall,
        fadvise64,
        timer_create,
        timer_settime,
        timer_gettime,
        timer_getoverrun,
        timer_delete,
        clock_gettime,
        clock_getres,
        clock_nanosleep,
        epoll_wait,
        epoll_ctl,
        mbind,
        set_mempolicy,
        get_mempolicy,
        waitid,
        ioprio_get,
        inotify_init,
        inotify_rm_watch,
        pselect6,
        ppoll,
        set_robust_list,
        get_robust_list,
        splice,
        tee,
        sync_file_range,
        vmsplice,
        epoll_pwait,
        signalfd,
        timerfd_create,
        eventfd,
        fallocate,
        timerfd_settime,
        timerfd_gettime,
        accept4,
        signalfd4,
        eventfd2,
        epoll_create1,
        dup3,
        pipe2,
        inotify_init1,
        preadv,
        pwritev,
        recvmmsg,
        clock_adjtime,
        syncfs,
        getcpu,
        sched_getattr,
        seccomp,
        getrandom,
        memfd_create,
        membarrier,
        mlock2,
        copy_file_range,
        preadv2,
        pwritev2,
        pkey_mprotect,
        pkey_alloc,
        pkey_free,
        io_pgetevents,
        rseq,
        uretprobe,
        epoll_pwait2,
        landlock_create_ruleset,
        landlock_add_rule,
        landlock_restrict_self,
        memfd_secret,
        futex_waitv,
        set_mempolicy_home_node,
        cachestat,
        map_shadow_stack,
        futex_wake,
        futex_wait,
        futex_requeue,
        lsm_get_self_attr,
        lsm_list_modules,
        mseal,
        close_range,
        exit_group,
    ]
};

/// What no domain may ever do: administration of the machine, and ways around the gate.
const REFUSED: &[Sysno] = {
    use Sysno::*;
    &[
        mount,
        umount2,
        pivot_root,
        chroot,
        swapon,
        swapoff,
        reboot,
        sethostname,
        setdomainname,
        init_module,
        finit_module,
        delete_module,
        kexec_load,
        kexec_file_load,
        quotactl,
        quotactl_fd,
        acct,
        settimeofday,
        clock_settime,
        iopl,
        ioperm,
        vhangup,
        syslog,
        setns,
        bpf,
        perf_event_open,
        fanotify_init,
        fanotify_mark,
        open_by_handle_at,
        userfaultfd,
        add_key,
        request_key,
        keyctl,
        mount_setattr,
        modify_ldt,
        lsm_set_self_attr,
        migrate_pages,
        move_pages,
        lookup_dcookie,
        process_madvise,
        process_mrelease,
    ]
};

/// Always decided: they reach a named object or another process, or change what exists.
const DECIDED: &[Sysno] = {
    use Sysno::*;
    &[
        open,
        openat,
        openat2,
        creat,
        truncate,
        rename,
        renameat,
        renameat2,
        mkdir,
        mkdirat,
        rmdir,
        link,
        linkat,
        unlink,
        unlinkat,
        symlink,
        symlinkat,
        mknod,
        mknodat,
        chmod,
        fchmod,
        fchmodat,
        fchmodat2,
        chown,
        fchown,
        lchown,
        fchownat,
        utime,
        utimes,
        futimesat,
        utimensat,
        setxattr,
        lsetxattr,
        fsetxattr,
        setxattrat,
        removexattr,
        lremovexattr,
        fremovexattr,
        removexattrat,
        execve,
        execveat,
        connect,
        bind,
        kill,
        tkill,
        tgkill,
        rt_sigqueueinfo,
        rt_tgsigqueueinfo,
        pidfd_send_signal,
        pidfd_open,
        pidfd_getfd,
        ptrace,
        process_vm_readv,
        process_vm_writev,
        kcmp,
        prlimit64,
        sched_setparam,
        sched_setscheduler,
        sched_setattr,
        sched_setaffinity,
        setpriority,
        ioprio_set,
        file_setattr,
        name_to_handle_at,
        inotify_add_watch,
    ]
};

/// Objects named by number or name in one space for the whole IPC namespace, which nobody labels.
const IPC: &[Sysno] = {
    use Sysno::*;
    &[
        shmget,
        shmat,
        shmctl,
        shmdt,
        semget,
        semop,
        semctl,
        semtimedop,
        msgget,
        msgsnd,
        msgrcv,
        msgctl,
        mq_open,
        mq_unlink,
        mq_timedsend,
        mq_timedreceive,
        mq_notify,
        mq_getsetattr,
    ]
};

/// Calls that only look at a name: decided where something is hidden.
const LOOKS: &[Sysno] = {
    use Sysno::*;
    &[
        stat,
        lstat,
        newfstatat,
        statx,
        access,
        faccessat,
        faccessat2,
        readlink,
        readlinkat,
        chdir,
        statfs,
        getxattr,
        lgetxattr,
        getxattrat,
        listxattr,
        llistxattr,
        listxattrat,
        file_getattr,
    ]
};

impl Traps {
    /// Whether opens for reading are left to the envelope.
    pub(crate) fn reads_pass(&self) -> bool {
        self.mode == Mode::Fast && self.reads_exact && !self.looks
    }
}

const EPERM: Action = Action::Errno(libc::EPERM as u16);
/// Every `CLONE_NEW*` flag of clone(2) and unshare(2); `CLONE_NEWTIME` collides with clone's signal mask and is
/// only unshare's.
const NEW_NAMESPACES: u32 = 0x7e02_0000;

/// The filter for a policy.
pub(crate) fn compile(traps: Traps) -> Result<Vec<sock_filter>, TooLong> {
    let last = Sysno::last().id() as usize;
    let mut rules = vec![Rule::from(Action::Errno(libc::ENOSYS as u16)); last + 1];
    let mut set = |calls: &[Sysno], rule: &Rule| {
        for call in calls {
            rules[call.id() as usize] = rule.clone();
        }
    };
    let looks = if traps.looks { Action::Notify } else { Action::Allow };
    set(RUNS, &Action::Allow.into());
    set(REFUSED, &EPERM.into());
    set(DECIDED, &Action::Notify.into());
    set(LOOKS, &looks.into());
    if !traps.reads_pass() {
        // The monitor remembers working directories.
        set(&[Sysno::chdir, Sysno::fchdir], &Action::Notify.into());
    }
    set(IPC, &if traps.private_ipc { Action::Allow } else { EPERM }.into());
    for (call, rule) in special(traps) {
        set(&[call], &rule);
    }
    assemble(&rules)
}

/// Calls whose treatment depends on their arguments or on more than one trait of the policy.
fn special(traps: Traps) -> Vec<(Sysno, Rule)> {
    use Action::{Allow, Errno, Notify};
    // A trapped call ends by `EINTR` when a signal comes before the monitor has received it. No program expects that of
    // a fork, so forks that all may make run: a process is labelled when it first comes through the gate.
    let births = if traps.forks { Allow } else { Notify };
    let deaths = if traps.lineage { Notify } else { Allow };
    let sends = if traps.datagrams { Notify } else { Allow };
    let listens = if traps.listens { Notify } else { Allow };
    vec![
        (Sysno::open, opens(traps, 1)),
        (Sysno::openat, opens(traps, 2)),
        (Sysno::fork, births.into()),
        (Sysno::vfork, births.into()),
        (Sysno::clone, clones(births)),
        (Sysno::unshare, when(&[none_of(0, NEW_NAMESPACES | 0x80)], Allow, EPERM)),
        (Sysno::exit_group, deaths.into()),
        (Sysno::prctl, prctl(traps)),
        (Sysno::ioctl, ioctl()),
        (Sysno::socket, sockets(traps)),
        (Sysno::socketpair, sockets(traps)),
        (Sysno::listen, listens.into()),
        (
            Sysno::sendto,
            Rule { tests: vec![fast_open(3), (Test::Null { arg: 4 }, Allow)], otherwise: sends },
        ),
        (Sysno::sendmsg, Rule { tests: vec![fast_open(2)], otherwise: sends }),
        (Sysno::sendmmsg, Rule { tests: vec![fast_open(3)], otherwise: sends }),
        // Its flags lie in memory; libc falls back to clone.
        (Sysno::clone3, Errno(libc::ENOSYS as u16).into()),
    ]
}

/// open and openat, whose flags are argument `arg`.
fn opens(traps: Traps, arg: u8) -> Rule {
    let mut allowed = Vec::new();
    if !traps.looks {
        // A descriptor that can only be looked at: every use that grants something is an open of its own.
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

/// A thread shares its process's label; another process is a birth. `CLONE_PARENT` would hide whose child it is.
fn clones(births: Action) -> Rule {
    let flag = |flag: libc::c_int| Test::Masked { arg: 0, mask: flag as u32, value: flag as u32 };
    let mut tests: Vec<(Test, Action)> = (0..32)
        .map(|bit| 1u32 << bit)
        .filter(|bit| NEW_NAMESPACES & bit != 0)
        .map(|bit| (Test::Masked { arg: 0, mask: bit, value: bit }, EPERM))
        .collect();
    tests.push((flag(libc::CLONE_THREAD), Action::Allow));
    tests.push((flag(libc::CLONE_PARENT), EPERM));
    Rule { tests, otherwise: births }
}

fn prctl(traps: Traps) -> Rule {
    let option = |option: libc::c_int| Test::Masked { arg: 0, mask: !0, value: option as u32 };
    // The monitor reads the arguments of calls from the caller's memory, so a process stays dumpable; it is told
    // that it is not, since nobody but the monitor and its own domain can look.
    let mut tests =
        vec![(option(libc::PR_SET_MM), EPERM), (option(libc::PR_SET_DUMPABLE), Action::Errno(0))];
    if traps.lineage {
        // An orphan must go to init, never to a process of another domain.
        tests.push((option(libc::PR_SET_CHILD_SUBREAPER), EPERM));
    }
    Rule { tests, otherwise: Action::Allow }
}

/// Typing into the terminal, or putting commands on its keys, would run commands outside, as its owner. The others
/// change a file through a descriptor that is open only for reading.
const REFUSED_IOCTLS: [u32; 9] = [
    libc::TIOCSTI as u32,
    0x541c,      // TIOCLINUX
    0x4b47,      // KDSKBENT
    0x4b49,      // KDSKBSENT
    0x4004_6602, // FS_IOC_SETFLAGS, with the long of x86-64 below
    0x4008_6602,
    0x401c_5820, // FS_IOC_FSSETXATTR
    0x4080_6685, // FS_IOC_ENABLE_VERITY
    0x4008_7602, // FS_IOC_SETVERSION
];

fn ioctl() -> Rule {
    let request = |request: u32| Test::Masked { arg: 1, mask: !0, value: request };
    when(&REFUSED_IOCTLS.map(request), EPERM, Action::Allow)
}

/// Local sockets run when they can send only to whom they are connected; the connect is decided.
fn sockets(traps: Traps) -> Rule {
    let mut tests = Vec::new();
    if !traps.datagrams {
        // SOCK_DGRAM and SOCK_RAW (an alias of it here) send to any name.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            tests.push((Test::Masked { arg: 1, mask: 0xf, value: kind as u32 }, Action::Notify));
        }
    }
    tests.push((Test::Masked { arg: 0, mask: !0, value: libc::AF_UNIX as u32 }, Action::Allow));
    Rule { tests, otherwise: Action::Notify }
}

/// TCP Fast Open connects where no connect is seen; the flags of a send are argument `arg`.
fn fast_open(arg: u8) -> (Test, Action) {
    let flag = libc::MSG_FASTOPEN as u32;
    (Test::Masked { arg, mask: flag, value: flag }, Action::Errno(libc::EOPNOTSUPP as u16))
}

fn none_of(arg: u8, mask: u32) -> Test {
    Test::Masked { arg, mask, value: 0 }
}

fn when(tests: &[Test], action: Action, otherwise: Action) -> Rule {
    Rule { tests: tests.iter().map(|test| (*test, action)).collect(), otherwise }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::tests::run;

    const STRICT: Traps = Traps {
        mode: Mode::All,
        reads_exact: false,
        lists: true,
        looks: true,
        forks: false,
        lineage: true,
        datagrams: true,
        listens: true,
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
        private_ipc: true,
    };

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
        for call in [RUNS, REFUSED, DECIDED, LOOKS, IPC].concat() {
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

    #[test]
    fn namespaces_cannot_be_made() {
        for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID] {
            for traps in [STRICT, LOOSE] {
                let flags = flag as u64 | libc::CLONE_THREAD as u64;
                assert_eq!(ask(traps, Sysno::clone, &[flags]), errno(libc::EPERM));
                assert_eq!(ask(traps, Sysno::unshare, &[flag as u64]), errno(libc::EPERM));
            }
        }
        assert_eq!(ask(LOOSE, Sysno::clone3, &[]), errno(libc::ENOSYS));
        assert_eq!(ask(LOOSE, Sysno::unshare, &[libc::CLONE_FILES as u64]), ALLOW);
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
        assert_eq!(ask(STRICT, Sysno::clone, &[flags]), errno(libc::EPERM));
        assert_eq!(ask(STRICT, Sysno::clone, &[libc::SIGCHLD as u64]), NOTIFY);
        assert_eq!(ask(STRICT, Sysno::clone, &[libc::CLONE_THREAD as u64]), ALLOW);
        let subreaper = libc::PR_SET_CHILD_SUBREAPER as u64;
        assert_eq!(ask(STRICT, Sysno::prctl, &[subreaper]), errno(libc::EPERM));
        assert_eq!(ask(LOOSE, Sysno::prctl, &[subreaper]), ALLOW);
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
    fn nothing_can_be_typed_into_the_terminal() {
        for high in [0, 1 << 32] {
            assert_eq!(ask(LOOSE, Sysno::ioctl, &[0, high | libc::TIOCSTI]), errno(libc::EPERM));
        }
    }

    #[test]
    fn ways_around_the_gate_fail_in_the_kernel() {
        for call in [Sysno::io_uring_setup, Sysno::io_uring_enter] {
            assert_eq!(ask(LOOSE, call, &[]), errno(libc::ENOSYS), "{call}");
        }
        for call in [Sysno::mount, Sysno::setns, Sysno::bpf, Sysno::open_by_handle_at] {
            assert_eq!(ask(LOOSE, call, &[]), errno(libc::EPERM), "{call}");
        }
    }
}
