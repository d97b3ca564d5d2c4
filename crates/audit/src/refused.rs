//! What is refused whatever policy says: on record, with who refuses it, why, and what to do
//! instead.

use crate::trail::Refusal;
use confine::{F_SETOWN_EX, Handler, NEW_NAMESPACES, handler};
use rustix::io::Errno;
use syscalls::Sysno;

/// Who refuses what the filter hands over for the record.
const FILTER: &str = "the system-call filter";

/// Why a call that the filter hands over is refused; `None` if it is decided.
pub fn of(call: Sysno, args: &[u64; 6]) -> Option<Refusal> {
    let low = |n: usize| args[n] as u32;
    let fast_open = |n: usize| low(n) & libc::MSG_FASTOPEN as u32 != 0;
    let is_refused = || handler(call, args) == Some(Handler::Refused);
    let refused = |object: String, (reason, instead)| Refusal {
        errno: Errno::PERM,
        by: FILTER,
        tclass: "system_call",
        missing: call.name(),
        object,
        reason,
        instead,
    };
    match call {
        Sysno::clone if low(0) & NEW_NAMESPACES != 0 => {
            Some(refused(namespaces(low(0)), NAMESPACES))
        }
        Sysno::clone if is_brother(low(0)) => {
            Some(refused("a child of its own parent (CLONE_PARENT)".to_owned(), BROTHERS))
        }
        Sysno::unshare => Some(refused(namespaces(low(0)), NAMESPACES)),
        Sysno::fcntl if low(1) == F_SETOWN_EX => {
            Some(refused("who gets the signals of a file (F_SETOWN_EX)".to_owned(), OWNERS))
        }
        Sysno::prctl => {
            let (object, why) = option(low(0));
            Some(refused(object.to_owned(), why))
        }
        Sysno::ioctl if is_refused() => {
            Some(refused(format!("request {}", request(low(1))), ioctl(low(1))))
        }
        Sysno::sendto if fast_open(3) => Some(by_fast_open(call)),
        Sysno::sendmsg if fast_open(2) => Some(by_fast_open(call)),
        Sysno::sendmmsg if fast_open(3) => Some(by_fast_open(call)),
        Sysno::io_uring_setup | Sysno::io_uring_enter | Sysno::io_uring_register => {
            Some(absent(refused("a ring of io_uring".to_owned(), RINGS)))
        }
        Sysno::landlock_create_ruleset => {
            Some(absent(refused("rules of Landlock of its own".to_owned(), LANDLOCK)))
        }
        _ if is_refused() => {
            let (object, why) = why(call);
            Some(refused(object.to_owned(), why))
        }
        _ => None,
    }
}

/// Whether flags of clone(2) ask for a process that is no child of the caller.
fn is_brother(flags: u32) -> bool {
    flags & (libc::CLONE_PARENT | libc::CLONE_THREAD).cast_unsigned()
        == libc::CLONE_PARENT.cast_unsigned()
}

/// The same, of what programs probe for: the kernel seems not to have it.
fn absent(refusal: Refusal) -> Refusal {
    Refusal { errno: Errno::NOSYS, ..refusal }
}

fn by_fast_open(call: Sysno) -> Refusal {
    Refusal {
        errno: Errno::OPNOTSUPP,
        by: FILTER,
        tclass: "tcp_socket",
        missing: call.name(),
        object: "by TCP Fast Open (MSG_FASTOPEN)".to_owned(),
        reason: "it connects by sending, where no connect is decided",
        instead: "connect first; programs do so when they see this error",
    }
}

/// Why, and what to do instead.
type Why = (&'static str, &'static str);

const NAMESPACES: Why = (
    "no profile grants it: in namespaces of its own a process is root over mounts, networks and processes, with all the \
     code of the kernel that only root reaches",
    "a program that makes a sandbox for itself or for what it starts (bubblewrap, a browser, an agent's or a package \
     manager's sandbox) is in one already: start it with its own switched off, as with --no-sandbox, and grant or deny by \
     the profile",
);
const VIEW: Why = (
    "no profile grants it: what is hidden or covered is so by mounts, which nobody inside may change",
    "name the places in the profile: files.read, files.write, files.hide",
);
const KEYS: Why = (
    "no profile grants it: the kernel's keys are the user's, outside, too, and bear no label",
    "programs do without when they see this error",
);
const KERNEL: Why = (
    "no profile grants it: code of the kernel that has let sandboxes be left most often",
    "programs that can do without do so when they see this error; what cannot has to run outside",
);
const MACHINE: Why = (
    "no profile grants it: it is about the machine, not about the run",
    "do it outside, before or after the run",
);
const AROUND: Why = (
    "no profile grants it: it reaches files or processes by no name that could be decided",
    "programs do without when they see this error",
);
const NUMBERED: Why = (
    "such objects are the machine's, by number or by a name in one space, and bear no label: a run has its own only with an \
     IPC namespace and a single domain",
    "a machine that lets users make namespaces gives each run of one domain its own (`dewar doctor`); files can be shared \
     by mmap",
);
const RINGS: Why = (
    "no profile grants it: the kernel makes the calls of a ring by itself, where nobody decides them",
    "programs make the calls one by one when they see this error; some have an option for that",
);
const LANDLOCK: Why = (
    "no profile grants it: such rules would not hold for the calls that Dewar makes in a program's place",
    "programs do without when they see this error; say in the profile what they are to be kept from",
);
const BROTHERS: Why = (
    "no profile grants it: whose child a process is says which label it has",
    "start it by fork, or by clone without this flag",
);
const OWNERS: Why = (
    "no profile grants it: whom the signals go to stands in memory, which may change after it was looked at",
    "use F_SETOWN, which is decided",
);
const ORPHANS: Why = (
    "no profile of several domains grants it: a process without parent goes to the first of the run, never to one of \
     another domain",
    "programs do without when they see this error",
);
const LIES: Why = (
    "no profile grants it: a process would tell lies about itself in /proc",
    "programs that restore others from files have to run outside",
);
const TERMINAL: Why = (
    "no profile grants it: the terminal outlives the run, and what is typed into it is executed outside",
    "give the command a terminal of its own, as by script(1) inside",
);
const BY_READING: Why = (
    "no profile grants it: it changes a file through a descriptor that may be open only for reading",
    "change attributes by chattr(1), which is decided; do the rest outside",
);

/// What a call is about, and why it is refused.
fn why(call: Sysno) -> (&'static str, Why) {
    use Sysno::*;
    match call {
        setns => ("other namespaces", NAMESPACES),
        mount | umount2 | pivot_root | chroot | mount_setattr => {
            ("the view of the file system", VIEW)
        }
        add_key | request_key | keyctl => ("the kernel's keyrings", KEYS),
        bpf | perf_event_open | userfaultfd | modify_ldt => ("the kernel", KERNEL),
        open_by_handle_at | fanotify_init | fanotify_mark | lookup_dcookie => ("files", AROUND),
        process_madvise | process_mrelease | migrate_pages | move_pages | get_robust_list => {
            ("a process", AROUND)
        }
        shmget | shmat | shmctl | shmdt | semget | semop | semctl | semtimedop | msgget
        | msgsnd | msgrcv | msgctl | mq_open | mq_unlink | mq_timedsend | mq_timedreceive
        | mq_notify | mq_getsetattr => {
            ("shared memory, semaphores or queues of the machine", NUMBERED)
        }
        _ => ("the machine", MACHINE),
    }
}

/// What an option of prctl(2) is about, and why it is refused.
fn option(option: u32) -> (&'static str, Why) {
    if option == libc::PR_SET_CHILD_SUBREAPER.cast_unsigned() {
        ("orphans of its descendants (PR_SET_CHILD_SUBREAPER)", ORPHANS)
    } else {
        ("what /proc says of it (PR_SET_MM)", LIES)
    }
}

fn ioctl(request: u32) -> Why {
    // Terminals and consoles: `asm-generic/ioctls.h`, `linux/kd.h`, `linux/vt.h`.
    if matches!(request >> 8, 0x4b | 0x54 | 0x56) { TERMINAL } else { BY_READING }
}

fn request(request: u32) -> String {
    match libc::Ioctl::from(request) {
        libc::TIOCSTI => "TIOCSTI (types into the terminal)".to_owned(),
        libc::TIOCEXCL => "TIOCEXCL (keeps others from the terminal)".to_owned(),
        libc::TIOCSETD => "TIOCSETD (line discipline of the terminal)".to_owned(),
        _ => format!("{request:#x}"),
    }
}

/// Names of what `flags` of clone(2) ask for.
fn namespaces(flags: u32) -> String {
    const NAMES: [(libc::c_int, &str); 8] = [
        (libc::CLONE_NEWUSER, "user"),
        (libc::CLONE_NEWNS, "mount"),
        (libc::CLONE_NEWPID, "PID"),
        (libc::CLONE_NEWNET, "network"),
        (libc::CLONE_NEWIPC, "IPC"),
        (libc::CLONE_NEWUTS, "UTS"),
        (libc::CLONE_NEWCGROUP, "cgroup"),
        (0x80, "time"),
    ];
    let named = NAMES.iter().filter(|(flag, _)| flags & flag.cast_unsigned() != 0);
    let names: Vec<&str> = named.map(|(_, name)| *name).collect();
    format!("a new {} namespace", names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_profile_grants_is_refused_with_a_reason() {
        for (decided_by, calls) in confine::DECIDED {
            for call in calls {
                let refused = of(*call, &[0; 6]);
                let is_refused = decided_by == Handler::Refused;
                assert_eq!(refused.is_some(), is_refused, "{call}");
                let is_errno = |it| matches!(it, Errno::PERM | Errno::NOSYS);
                assert!(refused.is_none_or(|it| is_errno(it.errno) && !it.reason.is_empty()));
            }
        }
        let user = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
        let refused = of(Sysno::clone, &[user | 17, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(refused.object, "a new user namespace");
        let typed = of(Sysno::ioctl, &[0, 1 << 32 | libc::TIOCSTI, 0, 0, 0, 0]).unwrap();
        assert!(typed.object.contains("TIOCSTI") && typed.reason.contains("terminal"));
        let sent = of(Sysno::sendto, &[3, 0, 0, libc::MSG_FASTOPEN as u64, 0, 0]).unwrap();
        assert_eq!(sent.errno, Errno::OPNOTSUPP);
    }
}
