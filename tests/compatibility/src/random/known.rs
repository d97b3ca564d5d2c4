//! In what a program under profile `open` still differs from itself outside, and why: from this
//! list `docs/compatibility.md` is written. A difference that is not in it fails the test.

use std::collections::BTreeSet;

use crate::difference::{Difference, SETS_ATTRIBUTES, errno, is_success, user};

/// A difference that stays.
pub(crate) struct Known {
    /// The calls that it shows in; none for all of them.
    pub(crate) calls: &'static [&'static str],
    /// What the kernel says natively, and what the program is told under Dewar.
    pub(crate) native: &'static str,
    pub(crate) dewar: &'static str,
    pub(crate) reason: &'static str,
    is: fn(&Difference) -> bool,
}

/// Whether a process that has ended shared descriptors or its working directory with others.
fn has_shared(it: &Difference) -> bool {
    it.program.lines().any(|line| ["files", "place"].contains(&line))
}

/// All that is left.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        calls: &["mknod"],
        native: "a character device without a number",
        dewar: "`EACCES`",
        reason: "No profile grants to make a device. Without privileges, the kernel makes this one only, which overlay \
                 file systems take for the absence of a file.",
        is: |it| it.number(3) & 0o170_000 == 0o020_000 && errno(&it.dewar) == "EACCES",
    },
    Known {
        calls: &["watched"],
        native: "one look at a program that is executed (inotify)",
        dewar: "several",
        reason: "The monitor opens a program, too, and reads whether it names an interpreter.",
        is: |it| {
            // No other events than natively, only more often.
            let events = |told: &str| told.split(' ').map(str::to_owned).collect::<BTreeSet<_>>();
            it.program.lines().any(|line| line.starts_with("exec"))
                && events(&it.native) == events(&it.dewar)
        },
    },
    Known {
        calls: SETS_ATTRIBUTES,
        native: "success, `EOPNOTSUPP` or `EPERM` on a device",
        dewar: "`EACCES`",
        reason: "No profile grants to change attributes of devices: they are the machine's.",
        is: |it| {
            let native =
                is_success(&it.native) || matches!(errno(&it.native), "EOPNOTSUPP" | "EPERM");
            errno(&it.dewar) == "EACCES" && native
        },
    },
    Known {
        calls: &["rename", "renameat", "renameat2"],
        native: "`EXDEV`, of what does not exist",
        dewar: "`ENOENT`, `ENAMETOOLONG`, or `EBUSY` or `EEXIST` for `.`, `..` and `/`",
        reason: "A view has more file systems than there are outside: that it does not exist is said first.",
        is: |it| it.fails_by("EXDEV", &["ENOENT", "ENAMETOOLONG", "EBUSY", "EEXIST"]),
    },
    Known {
        calls: &["link", "linkat"],
        native: "`EXDEV`, of a directory in another file system",
        dewar: "`EPERM`",
        reason: "That it is a directory is said first.",
        is: |it| errno(&it.native) == "EXDEV" && errno(&it.dewar) == "EPERM",
    },
    Known {
        calls: &["fchown", "chown"],
        native: "`EOPNOTSUPP`, of what is no file",
        dewar: "`EPERM`",
        reason: "The user namespace has no such ID, which is said first.",
        is: |it| {
            let first = if it.name() == "chown" { 3 } else { 2 };
            let gives = [first, first + 1].into_iter().any(|n| it.number(n) >= 0);
            gives && errno(&it.native) == "EOPNOTSUPP" && errno(&it.dewar) == "EPERM"
        },
    },
    Known {
        calls: &["inotify", "watch"],
        native: "a watch on a device",
        dewar: "`EACCES`",
        reason: "A watch on a terminal tells when its user types.",
        is: |it| is_success(&it.native) && errno(&it.dewar) == "EACCES",
    },
    Known {
        calls: &["ioctl", "read"],
        native: "a watch tells of a program that is executed",
        dewar: "twice",
        reason: "The monitor opens the program as well, to see whether it is a script.",
        is: |it| it.is_more() && it.program.contains("\nexecve") && it.program.contains("watch"),
    },
    Known {
        calls: &["send_fd", "sendto", "sendmmsg"],
        native: "a packet of `SOCK_SEQPACKET` by sendmsg(2), or with an address, to a socket with a name",
        dewar: "`EOPNOTSUPP`",
        reason: "Where a profile grants datagrams, the monitor sends in the place of a process with several threads, or that \
                 shares its descriptors with another, and a port would take the monitor for the client. write(2) and \
                 send(2) work. So it is with credentials (`SCM_CREDENTIALS`) by every socket.",
        is: |it| {
            let fails = matches!(errno(&it.native), "EBADF" | "EPIPE" | "ECONNRESET");
            (is_success(&it.native) || fails) && errno(&it.dewar) == "EOPNOTSUPP"
        },
    },
    Known {
        calls: &["openat2"],
        native: "`EAGAIN`, or another answer, with `RESOLVE_CACHED`",
        dewar: "the other one",
        reason: "The kernel answers from its cache alone, or `EAGAIN`. What is in the cache, and what of `/proc` ever is, \
                 changes from call to call.",
        is: |it| {
            let again = [&it.native, &it.dewar].into_iter().any(|it| errno(it) == "EAGAIN");
            it.number(5) & 32 != 0 && again
        },
    },
    Known {
        calls: &["bind"],
        native: "success after a connect to the outside that failed",
        dewar: "`EINVAL`",
        reason: "The socket has got a name before it connected, by which a service outside can tell who asks \
                 (docs/ports.md).",
        is: |it| is_success(&it.native) && errno(&it.dewar) == "EINVAL",
    },
    Known {
        calls: &["listen"],
        native: "`EINVAL` after a connect to the outside that failed",
        dewar: "success",
        reason: "As with `bind`.",
        is: |it| errno(&it.native) == "EINVAL" && it.dewar == "0",
    },
    Known {
        calls: &["connect"],
        native: "`ECONNREFUSED`, again, by another process, after a connect to the outside that failed",
        dewar: "`EACCES`",
        reason: "The socket bears the name of the first process, for which the second could pass (docs/ports.md).",
        is: |it| {
            let is_abstract = it.call.contains('@') || it.call.ends_with("''");
            is_abstract && it.fails_by("ECONNREFUSED", &["EACCES"])
        },
    },
    Known {
        calls: &["sendto"],
        native: "`EPIPE`, of a socket that was shut down",
        dewar: "what is wrong with the address",
        reason: "The address is decided first.",
        is: |it| it.fails_by("EPIPE", &["ENOENT", "ECONNREFUSED", "ENOTDIR"]),
    },
    Known {
        calls: &["prctl"],
        native: "`PR_GET_DUMPABLE` is 0 after it was set so",
        dewar: "1",
        reason: "The monitor reads the arguments of calls from the program's memory. Nobody else in the sandbox may look.",
        is: |it| it.number(1) == 3 && it.native == "0" && it.dewar == "1",
    },
    Known {
        calls: &["stat", "lstat", "fstatat", "statx", "fstat"],
        native: "files of `/proc/self` are root's after `PR_SET_DUMPABLE` was set to 0",
        dewar: "they stay the program's own",
        reason: "As with `prctl`.",
        is: |it| {
            let is_root = |word: &&str| *word == "0:0";
            let owner = it.native.split(' ').position(|word| is_root(&word));
            let rest = |text: &str| -> Vec<String> {
                let words = text.split(' ').enumerate().filter(|(n, _)| Some(*n) != owner);
                words.map(|(_, word)| word.to_owned()).collect()
            };
            let was_set = it.program.contains("prctl 4 0");
            was_set && owner.is_some() && rest(&it.native) == rest(&it.dewar)
        },
    },
    Known {
        calls: &[
            "look_into_child",
            "trace_child",
            "chmod",
            "fchmodat",
            "fchmodat2",
            "utimes",
            "utimens",
            "utime",
            "futimesat",
            "access",
            "faccessat",
            "faccessat2",
            "setxattr",
            "removexattr",
            "lremovexattr",
            "setxattrat",
            "removexattrat",
            "bind",
            "connect",
        ],
        native: "`EPERM` or `EACCES`, of a child or a file of `/proc/self`, after `PR_SET_DUMPABLE` was set to 0",
        dewar: "what it is without",
        reason: "As with `prctl`.",
        is: |it| {
            let is_refused = matches!(errno(&it.native), "EPERM" | "EACCES");
            it.program.contains("prctl 4 0") && is_refused
        },
    },
    Known {
        calls: &["sockname"],
        native: "no name after a connect to the outside",
        dewar: "one that says who asks",
        reason: "As with `bind`.",
        is: |it| it.native == "1 2" && it.dewar.starts_with("1 "),
    },
    Known {
        calls: &["fcntl"],
        native: "`F_GETFL` with `O_NOFOLLOW`",
        dewar: "without",
        reason: "The monitor has opened the file that it decided about by its own descriptor of it. The flag says nothing \
                 about an open file.",
        is: |it| {
            let flags = |text: &str| text.parse::<i64>().unwrap_or(0);
            it.number(2) == 3 && flags(&it.native) - flags(&it.dewar) == 0o400_000
        },
    },
    Known {
        calls: &["linkat"],
        native: "`ENOENT` with `AT_EMPTY_PATH`, by a descriptor that a parent has opened",
        dewar: "what is wrong with the path, or success",
        reason: "The kernel compares who has opened the descriptor with who calls, which nobody else can see.",
        is: |it| it.number(5) & 0x1000 != 0 && errno(&it.native) == "ENOENT",
    },
    Known {
        calls: &["prctl"],
        native: "`PR_GET_SECCOMP` is 0",
        dewar: "2",
        reason: "By a filter of seccomp, calls come to the monitor.",
        is: |it| it.number(1) == 21 && it.native == "0" && it.dewar == "2",
    },
    Known {
        calls: &["getrlimit", "soft"],
        native: "`RLIMIT_LOCKS`, which has limited nothing since Linux 2.4.25",
        dewar: "another limit; `EPERM` to set it",
        reason: "The kernel hands it on from process to process: it bears the label.",
        is: |it| it.number(1) == 10,
    },
    Known {
        calls: &["chroot", "mount", "umount"],
        native: "what is wrong with the path",
        dewar: "`EPERM`",
        reason: "No profile grants them, whatever the path.",
        is: |it| !is_success(&it.native) && errno(&it.dewar) == "EPERM",
    },
    Known {
        calls: &["renameat2"],
        native: "success, or what is wrong with the names, with `RENAME_WHITEOUT`",
        dewar: "`EINVAL`",
        reason: "It leaves a device behind. File systems that know none say the same.",
        is: |it| it.number(5) & 4 != 0 && errno(&it.dewar) == "EINVAL",
    },
    Known {
        calls: &["peercred"],
        native: "the PID of who has connected, or listens",
        dewar: "the monitor's",
        reason: "The monitor connects in the program's place (docs/ports.md). The user is the same.",
        is: |it| is_success(&it.native) && user(&it.native) == user(&it.dewar),
    },
    Known {
        calls: &["receive_fd"],
        native: "the PID of who has sent, with `SO_PASSCRED`",
        dewar: "the monitor's",
        reason: "Where a profile grants datagrams, the monitor sends in the program's place. The user is the same.",
        is: |it| {
            let of = |text: &str| text.split_once(" of ").map(|(_, who)| user(who).to_owned());
            of(&it.native).is_some() && of(&it.native) == of(&it.dewar)
        },
    },
    Known {
        calls: &["send_credentials"],
        native: "success, or what is wrong with the credentials or the connection",
        dewar: "`EOPNOTSUPP`",
        reason: "Where a profile grants datagrams, the monitor sends in the program's place, and a message would bear \
                 its credentials.",
        is: |it| {
            let unsent = ["EPERM", "ENOTCONN", "EPIPE", "EAGAIN", "ECONNREFUSED", "ECONNRESET"];
            let native = is_success(&it.native) || unsent.contains(&errno(&it.native));
            native && errno(&it.dewar) == "EOPNOTSUPP"
        },
    },
    Known {
        calls: &["any_socket", "any_pair"],
        native: "success, or any error, of families and protocols without a class",
        dewar: "`EACCES`",
        reason: "No profile grants protocols whose addresses nobody labels.",
        is: |it| {
            let named = [1, 2, 10].contains(&it.number(1)) && it.number(3) == 0;
            let plain = named && [1, 2].contains(&it.number(2));
            errno(&it.dewar) == "EACCES" && !plain
        },
    },
    Known {
        calls: &["prctl"],
        native: "success of `PR_SET_KEEPCAPS`",
        dewar: "`EPERM`",
        reason: "Nothing keeps capabilities in a run: `SECBIT_KEEP_CAPS` is locked.",
        is: |it| it.number(1) == 8 && it.native == "0" && errno(&it.dewar) == "EPERM",
    },
    Known {
        calls: &["fcntl"],
        native: "`EBADF`, of a command that nobody knows",
        dewar: "`EINVAL`",
        reason: "The filter looks at the command alone.",
        is: |it| it.number(2) == 99 && errno(&it.native) == "EBADF" && errno(&it.dewar) == "EINVAL",
    },
    Known {
        calls: &["prctl"],
        native: "`PR_CAPBSET_READ` is 1, `PR_GET_SECUREBITS` is 0",
        dewar: "0, and bits that are locked",
        reason: "No program gets a capability by an exec, nor by being root.",
        is: |it| match it.number(1) {
            23 => it.native == "1" && it.dewar == "0",
            27 => it.native == "0" && is_success(&it.dewar),
            _ => false,
        },
    },
    Known {
        calls: &["open", "openat", "openat2"],
        native: "`EOPNOTSUPP`, of a file without a name in `/proc`",
        dewar: "`EACCES`",
        reason: "Nothing is made in `/proc`, which is said first.",
        is: |it| errno(&it.native) == "EOPNOTSUPP" && errno(&it.dewar) == "EACCES",
    },
    Known {
        calls: &["connect_to"],
        native: "success, to no address, of a stream that was never connected",
        dewar: "`EINVAL` or `EAFNOSUPPORT`",
        reason: "A stream that has let go of its peer could listen at the port that it had.",
        is: |it| {
            let dewar = errno(&it.dewar);
            it.number(3) == 1 && it.native == "0" && ["EINVAL", "EAFNOSUPPORT"].contains(&dewar)
        },
    },
    Known {
        calls: &["send_to", "sendto"],
        native: "`EINVAL`, or success over IPv4 by a socket of IPv6, to an address of another family",
        dewar: "`EAFNOSUPPORT`",
        reason: "Each family has its own answer; nobody has decided such an address.",
        is: |it| {
            let native =
                errno(&it.native) == "EINVAL" || it.name() == "send_to" && it.native == "4";
            native && errno(&it.dewar) == "EAFNOSUPPORT"
        },
    },
    Known {
        calls: &["stat", "lstat", "fstatat", "statx", "fstat"],
        native: "files of `/proc` are root's when their process has ended",
        dewar: "nobody's",
        reason: "A user namespace has no root of the machine.",
        is: |it| {
            it.program.contains(" /proc/") && it.native.replace(" 0:0", " 65534:65534") == it.dewar
        },
    },
    Known {
        calls: &[],
        native: "success, or what is wrong with the call, in `/proc` of a process that has ended",
        dewar: "`ENOENT` or `ESRCH`; without a PID namespace also `EACCES`",
        reason: "That process is asked about first, or nothing is there any more. Nothing is read there natively, either.",
        is: |it| {
            let ended = ["ENOENT", "ESRCH", "EACCES"].iter().any(|errno| it.dewar.ends_with(errno));
            it.program.contains(" /proc/") && has_shared(it) && ended
        },
    },
    Known {
        calls: &["rmdir", "mkdirat", "mknod", "mknod_old", "link", "linkat", "symlinkat"],
        native: "`ENOENT`, in a directory of `/proc` of another process",
        dewar: "`EACCES`",
        reason: "It is that of another process, which is said first.",
        is: |it| {
            it.call.contains("/cwd")
                && errno(&it.native) == "ENOENT"
                && errno(&it.dewar) == "EACCES"
        },
    },
];

/// The entry of the list that a difference belongs to.
pub(crate) fn known(difference: &Difference) -> Option<&'static Known> {
    let shows_in =
        |known: &Known| known.calls.is_empty() || known.calls.contains(&difference.name());
    KNOWN.iter().find(|known| shows_in(known) && (known.is)(difference))
}
