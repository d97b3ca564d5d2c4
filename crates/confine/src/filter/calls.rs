//! System calls that never come to the monitor: by what they can reach, whatever their arguments.

use syscalls::Sysno;

/// Calls that run whatever their arguments, unless `arguments.rs` looks at some, for one reason.
#[cfg_attr(not(test), expect(dead_code, reason = "the document is made by a test"))]
pub(super) struct Group {
    pub(super) title: &'static str,
    /// Why they grant nothing beyond what the process already holds.
    pub(super) why: &'static str,
    /// Where that was read, in Linux 6.1, 6.12 and 7.3.
    pub(super) source: &'static str,
    pub(super) calls: &'static [Sysno],
}

/// Grants nothing beyond what the process already holds, or reaches only its own descriptors and
/// memory. `docs/system-calls.md` is made from this table.
pub(super) const RUNS: &[Group] = {
    use Sysno::*;
    &[
        Group {
            title: "Memory of its own",
            source: "mm/mmap.c, mm/mprotect.c, mm/mremap.c, mm/mlock.c, mm/mempolicy.c, mm/madvise.c, mm/secretmem.c, \
                mm/filemap.c (cachestat), fs/libfs.c (init_pseudo)",
            why: "It changes the caller's address space alone. A file is mapped by a descriptor that was opened under \
                policy, with no more rights than that has (a hole is punched by MADV_REMOVE only where a shared \
                mapping may be written, and memory of /dev/zero is the caller's); a device needs one, too. Pages of \
                others move only with CAP_SYS_NICE, and are poisoned only with CAP_SYS_ADMIN. memfd_secret lies in a \
                mount that nothing is executed from (since Linux 7: in a file system of that kind). What stays: huge \
                pages are taken from the machine's pool, pages of a readable file can be dropped or brought in, and \
                residency of pages is a covert channel, as is what the machine merges (MADV_MERGEABLE, where it runs KSM) (cachestat and mincore tell it only to who may write the file \
                or owns it; before it was mended in 2025, cachestat to \
                every reader).",
            calls: &[
                mmap,
                mprotect,
                munmap,
                brk,
                mremap,
                msync,
                mincore,
                madvise,
                mlock,
                munlock,
                mlockall,
                munlockall,
                mlock2,
                remap_file_pages,
                mbind,
                set_mempolicy,
                get_mempolicy,
                set_mempolicy_home_node,
                pkey_mprotect,
                pkey_alloc,
                pkey_free,
                memfd_secret,
                map_shadow_stack,
                mseal,
                membarrier,
                cachestat,
            ],
        },
        Group {
            title: "Descriptors that it has",
            source: "fs/read_write.c, fs/splice.c, fs/open.c (ftruncate, fallocate), fs/sync.c, \
                fs/readdir.c, fs/locks.c, mm/fadvise.c, fs/xattr.c",
            why: "The kernel checks the mode that the descriptor was opened with, and opening was decided. A socket \
                that is written to without an address (write, sendfile and splice pass none) has a peer, and the \
                connect was decided; without a peer the kernel says so. One of netlink has the kernel for peer, \
                which asks for CAP_NET_ADMIN before it changes anything; of the protocols of netlink, those are made \
                that policy grants. Nothing is opened, and no name is looked up. What stays: a descriptor to append \
                can be cut, locks on readable files hold up others, sync is load for the machine, and the pages of \
                pipes count for the user, outside, too.",
            calls: &[
                read,
                write,
                close,
                fstat,
                lseek,
                pread64,
                pwrite64,
                readv,
                writev,
                preadv,
                pwritev,
                preadv2,
                pwritev2,
                sendfile,
                splice,
                tee,
                vmsplice,
                copy_file_range,
                ftruncate,
                fallocate,
                fsync,
                fdatasync,
                sync,
                syncfs,
                sync_file_range,
                fadvise64,
                readahead,
                getdents,
                getdents64,
                flock,
                fgetxattr,
                flistxattr,
                fstatfs,
                dup,
                dup2,
                dup3,
                close_range,
                pipe,
                pipe2,
            ],
        },
        Group {
            title: "Sockets that it has",
            source: "net/socket.c, net/core/sock.c, net/ipv4/tcp.c, net/ipv4/udp.c, net/unix/af_unix.c, \
                net/sctp/socket.c, fs/pidfs.c",
            why: "They answer who has connected, or tell of the socket. Listening and binding were decided. One option \
                that is asked for connects (CONNECTX3 of SCTP), but sockets of families and protocols without a \
                class of their own are made only by rules of --cil. Descriptors that arrive (SCM_RIGHTS) are what \
                the sender passed on; outside senders are those that policy lets it connect to. A PID descriptor of \
                the peer (SO_PEERPIDFD) signals and enters nothing by itself: these calls are decided or refused. \
                Its ioctls give namespaces only to who may trace the process, which Landlock refuses outside; \
                PIDFD_GET_INFO tells IDs and the cgroup, as SO_PEERCRED and /proc do.",
            calls: &[
                accept,
                accept4,
                recvfrom,
                recvmsg,
                recvmmsg,
                getsockname,
                getpeername,
                getsockopt,
            ],
        },
        Group {
            title: "Waiting, and objects that only it can name",
            source: "fs/select.c, fs/eventpoll.c, fs/eventfd.c, fs/timerfd.c, fs/signalfd.c, \
                fs/notify/inotify/inotify_user.c, kernel/futex/ (pi.c: attach_to_pi_owner)",
            why: "The objects have no names: others get them by a descriptor that the caller passes on. A watch is put \
                by inotify_add_watch, which is decided. A futex is a word of memory that both have mapped already. \
                What stays: whoever can map a file, if only to read, can wake those who wait at a word of it, or \
                move them to another, where nobody wakes them. A lock with priorities (FUTEX_LOCK_PI) lends its \
                waiter's priority to the thread that the word names, without asking whose that is: it runs sooner, \
                never later. Alarm clocks that wake the machine need CAP_WAKE_ALARM, EPOLLWAKEUP CAP_BLOCK_SUSPEND. \
                Watches and instances of inotify count for the user, outside, too.",
            calls: &[
                poll,
                select,
                pselect6,
                ppoll,
                epoll_create,
                epoll_create1,
                epoll_ctl,
                epoll_wait,
                epoll_pwait,
                epoll_pwait2,
                eventfd,
                eventfd2,
                timerfd_create,
                timerfd_settime,
                timerfd_gettime,
                signalfd,
                signalfd4,
                inotify_init,
                inotify_init1,
                inotify_rm_watch,
                futex,
                futex_waitv,
                futex_wake,
                futex_wait,
                futex_requeue,
            ],
        },
        Group {
            title: "Asynchronous I/O",
            source: "fs/aio.c",
            why: "Reads, writes, syncs and polls of descriptors that the caller has, under the same checks as read and \
                write. Unlike io_uring it opens, connects and sends to no address. What the kernel has begun ends as \
                it began, also after a revocation. What stays: the number of requests that can be set up \
                (fs.aio-max-nr) is the machine's.",
            calls: &[io_setup, io_destroy, io_getevents, io_submit, io_cancel, io_pgetevents],
        },
        Group {
            title: "Its own signals, timers and threads",
            source: "kernel/signal.c, kernel/time/posix-timers.c, kernel/time/posix-cpu-timers.c, kernel/time/itimer.c, \
                kernel/rseq.c, kernel/exit.c, kernel/fork.c, kernel/seccomp.c",
            why: "They set what happens to the caller. Timers signal the caller's own process (SIGEV_THREAD_ID: a \
                thread of it); a timer may run on the processor time of another process that it can name. Waiting is \
                for children; what the end of a child sends is SIGCHLD once either has executed another program. \
                Ending is for itself; the monitor learns of it otherwise. An alarm stays with a process that \
                enters another domain, PR_SET_PDEATHSIG does not. Of uprobe \
                and uretprobe no filter is asked (since Linux 6.12): they fail but for code that the kernel itself \
                has put there.",
            calls: &[
                rt_sigaction,
                rt_sigprocmask,
                rt_sigreturn,
                rt_sigpending,
                rt_sigtimedwait,
                rt_sigsuspend,
                sigaltstack,
                pause,
                nanosleep,
                clock_nanosleep,
                alarm,
                getitimer,
                setitimer,
                timer_create,
                timer_settime,
                timer_gettime,
                timer_getoverrun,
                timer_delete,
                sched_yield,
                set_robust_list,
                set_tid_address,
                set_thread_area,
                get_thread_area,
                rseq,
                restart_syscall,
                wait4,
                waitid,
                exit,
                exit_group,
                arch_prctl,
                uretprobe,
                uprobe,
            ],
        },
        Group {
            title: "What it is, and less of it",
            source: "kernel/sys.c, kernel/cred.c, kernel/capability.c, kernel/groups.c, kernel/seccomp.c, fs/fs_struct.c, \
                fs/coredump.c, drivers/tty/tty_jobctrl.c, kernel/exec_domain.c",
            why: "Capabilities are dropped, never got: the run has those that policy grants. Groups and file-system \
                IDs change only with CAP_SETGID and CAP_SETUID, and where these are granted the monitor compares the \
                caller's IDs at each call. Filters of its own add to Dewar's, and the strictest answer holds; a \
                second listener is refused (EBUSY). What stays: a session of its own is out of job \
                control, so that a descriptor of the terminal that was inherited can be read in the background. The execution domain is taken away where another domain is entered. Limits are lowered, \
                and raised to their hard value; a core file the kernel would write where \
                the envelope lets it, which is nowhere: the monitor opens what is written. (With several domains, and \
                once files were taken or given, the limit stays 0 all the same.)",
            calls: &[
                setsid,
                setgroups,
                setfsuid,
                setfsgid,
                capget,
                capset,
                personality,
                umask,
                setrlimit,
                seccomp,
            ],
        },
        Group {
            title: "Asking",
            source: "kernel/sys.c, kernel/sched/syscalls.c, kernel/time/time.c, kernel/time/posix-clock.c, \
                kernel/time/posix-cpu-timers.c, fs/statfs.c, fs/filesystems.c, security/lsm_syscalls.c, \
                block/ioprio.c",
            why: "It tells, and changes nothing. With PIDs of its own the run can name only its own processes; \
                without, the existence, the priorities and the processor time (clock_gettime) of others can be asked \
                for. Setting the clock by adjtimex and clock_adjtime needs CAP_SYS_TIME, which no run has unless a \
                profile grants it; a clock that is a device (/dev/ptp0) needs none, but a descriptor of it that was \
                opened to write.",
            calls: &[
                getpid,
                gettid,
                getppid,
                getpgrp,
                getpgid,
                getsid,
                getuid,
                getgid,
                geteuid,
                getegid,
                getresuid,
                getresgid,
                getgroups,
                uname,
                getcwd,
                gettimeofday,
                time,
                times,
                getrlimit,
                getrusage,
                sysinfo,
                getpriority,
                sched_getparam,
                sched_getscheduler,
                sched_get_priority_max,
                sched_get_priority_min,
                sched_rr_get_interval,
                sched_getaffinity,
                sched_getattr,
                ioprio_get,
                getcpu,
                getrandom,
                clock_gettime,
                clock_getres,
                adjtimex,
                clock_adjtime,
                ustat,
                sysfs,
                lsm_get_self_attr,
                lsm_list_modules,
            ],
        },
    ]
};

/// What no domain may ever do: administration of the machine, and ways around the gate. They come
/// to the monitor for the record alone.
pub(super) const REFUSED: &[Sysno] = {
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
        unshare,
        process_madvise,
        process_mrelease,
    ]
};

/// What programs probe for, and do without where a kernel has it not (`ENOSYS`). They come to the
/// monitor for the record alone.
pub(super) const PROBED: &[Sysno] = {
    use Sysno::*;
    &[io_uring_setup, io_uring_enter, io_uring_register, landlock_create_ruleset]
};

/// Calls of which some are refused, for the record, and the others run.
pub(super) const PARTLY: &[Sysno] = &[Sysno::get_robust_list, Sysno::prctl];

/// Objects named by number or name in one space for the whole IPC namespace, which nobody labels.
pub(super) const IPC: &[Sysno] = {
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
