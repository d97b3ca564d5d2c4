//! What may differ in suites of others.

/// Cases that pass natively, and not under Dewar.
pub(crate) struct Known {
    pub(crate) suite: &'static str,
    /// The name of a case, or the beginning of names before a `*`.
    pub(crate) case: &'static str,
    /// Under `open`, too; else under `workspace` alone.
    pub(crate) in_open: bool,
    pub(crate) reason: &'static str,
}

/// All of them.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        suite: "stress-ng",
        case: "dccp",
        in_open: true,
        reason: "No profile grants protocols whose addresses nobody labels.",
    },
    Known { suite: "stress-ng", case: "sctp", in_open: true, reason: "As with `dccp`." },
    Known {
        suite: "stress-ng",
        case: "mknod",
        in_open: true,
        reason: "No profile grants to make a device; without privileges, the kernel makes one without a number only.",
    },
    Known {
        suite: "stress-ng",
        case: "sockdiag",
        in_open: true,
        reason: "It tells of every socket of the machine, whose names may be secrets.",
    },
    Known {
        suite: "stress-ng",
        case: "verity",
        in_open: true,
        reason: "It changes a file for good through a descriptor that is open only for reading (`FS_IOC_ENABLE_VERITY`).",
    },
    Known {
        suite: "stress-ng",
        case: "fstat",
        in_open: false,
        reason: "It lists `/dev`, of which the default profile grants single devices.",
    },
    Known {
        suite: "coreutils",
        case: "tests/rm/fail-eperm.xpl",
        in_open: true,
        reason: "It looks for files of other users in `/tmp` and `/var/tmp`: a run has its own there, or none.",
    },
    Known {
        suite: "go",
        case: "net:TestMultiPathTCP",
        in_open: true,
        reason: "No profile grants protocols whose addresses nobody labels (MPTCP); the test does without.",
    },
    Known {
        suite: "go",
        case: "syscall:TestSCMCredentials",
        in_open: true,
        reason: "Where a profile grants datagrams, the monitor sends in the program's place, and a message would bear its credentials: `EOPNOTSUPP`.",
    },
    Known {
        suite: "go",
        case: "syscall:TestPidFDClone3",
        in_open: true,
        reason: "`clone3` is not there (`ENOSYS`): its flags lie in memory. Programs take `clone`.",
    },
    Known {
        suite: "go",
        case: "syscall:TestAmbientCapsUserns",
        in_open: true,
        reason: "A run makes no user namespaces: in one, a process would have every capability over what it makes.",
    },
    Known {
        suite: "go",
        case: "syscall:TestCloneNEWUSERAndRemap*",
        in_open: true,
        reason: "As before.",
    },
    Known {
        suite: "go",
        case: "syscall:TestEmptyCredGroupsDisableSetgroups",
        in_open: true,
        reason: "As before.",
    },
    Known { suite: "go", case: "syscall:TestPidFDWithUserNS", in_open: true, reason: "As before." },
    Known {
        suite: "go",
        case: "syscall:TestUnshareUidGidMapping",
        in_open: true,
        reason: "As before.",
    },
    Known {
        suite: "go",
        case: "net:TestConnAndPacketConn",
        in_open: false,
        reason: "No unix datagram sockets under the default profile: who has them reaches any name without connecting (`unixgram:` grants some).",
    },
    Known { suite: "go", case: "net:TestDialContext*", in_open: false, reason: "As before." },
    Known { suite: "go", case: "net:TestDialerControl*", in_open: false, reason: "As before." },
    Known { suite: "go", case: "net:TestFilePacketConn*", in_open: false, reason: "As before." },
    Known {
        suite: "go",
        case: "net:TestListenConfigControl*",
        in_open: false,
        reason: "As before.",
    },
    Known { suite: "go", case: "net:TestPacketConn*", in_open: false, reason: "As before." },
    Known {
        suite: "go",
        case: "net:TestReadUnixgramWithUnnamedSocket",
        in_open: false,
        reason: "As before.",
    },
    Known { suite: "go", case: "net:TestSplice*", in_open: false, reason: "As before." },
    Known {
        suite: "go",
        case: "net:TestUnixConnSpecificMethods",
        in_open: false,
        reason: "As before.",
    },
    Known { suite: "go", case: "net:TestUnixgram*", in_open: false, reason: "As before." },
    Known {
        suite: "go",
        case: "internal/poll:TestReadError/ErrNotPollable",
        in_open: false,
        reason: "As root it opens `/dev/net/tun`; the default profile grants single devices.",
    },
    Known {
        suite: "python",
        case: "test.test_fcntl.TestFcntl.test_fcntl_64_bit",
        in_open: true,
        reason: "It asks for `F_NOTIFY`, which would watch a directory that may only be listed.",
    },
    Known {
        suite: "python",
        case: "test.test_uuid.TestInternals*",
        in_open: false,
        reason: "A run has a loopback of its own, and no interface with a hardware address.",
    },
    Known {
        suite: "python",
        case: "test.test_spwd.TestSpwdRoot.test_getspnam",
        in_open: false,
        reason: "As root it reads `/etc/shadow`, which the default profile does not grant.",
    },
    Known {
        suite: "python",
        case: "test.test_zipfile.PyZipFileTests*",
        in_open: false,
        reason: "As root it writes beside Python's own modules, in `/usr`.",
    },
    Known {
        suite: "perl",
        case: "op/stat.t:36",
        in_open: false,
        reason: "It lists `/dev`, of which the default profile grants single devices.",
    },
    Known { suite: "perl", case: "op/stat.t:37", in_open: false, reason: "As before." },
    Known { suite: "perl", case: "op/stat.t:38", in_open: false, reason: "As before." },
    Known { suite: "perl", case: "op/stat.t:39", in_open: false, reason: "As before." },
    Known { suite: "perl", case: "op/stat.t:40", in_open: false, reason: "As before." },
    Known { suite: "perl", case: "op/stat.t:41", in_open: false, reason: "As before." },
    Known {
        suite: "go",
        case: "syscall",
        in_open: true,
        reason: "As a whole, for the cases named above.",
    },
    Known {
        suite: "go",
        case: "net",
        in_open: false,
        reason: "As a whole, for the cases named above.",
    },
    Known {
        suite: "python-processes",
        case: "test.test_signal.StressTest*",
        in_open: true,
        reason: "A signal a few microseconds after `kill` ends it by `EINTR` before the monitor has it, where a handler has no `SA_RESTART`.",
    },
    Known {
        suite: "python-processes",
        case: "test_signal",
        in_open: true,
        reason: "As a whole, for the cases named above.",
    },
    Known {
        suite: "python",
        case: "test_fcntl",
        in_open: true,
        reason: "As a whole, for the cases named above.",
    },
];
