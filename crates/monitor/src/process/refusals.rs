//! What is refused whatever policy says, as nobody could say whom it would reach.

use audit::Refusal;
use mediation::call::Asker;
use rustix::io::Errno;

/// What would reach others than can be asked about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reach {
    /// Whoever gets the signals of a file.
    Owner,
    /// The same, where another than the caller is named in memory.
    OwnerInMemory,
    /// The process behind a descriptor.
    Pidfd,
    /// The process with a number of the machine's.
    Number,
    /// A group that is Dewar's, too.
    OwnGroup,
    /// All of a group or of a user, on the machine.
    Machine,
    /// The same, in the run.
    Members,
}

/// Refuses, on record.
pub(super) fn refuse(asker: Asker<'_>, reach: Reach) -> Errno {
    let (object, reason, instead) = match reach {
        Reach::Owner => (
            "who gets the signals of a file (F_SETOWN)",
            "a process may enter another domain, or join another group, for as long as the file is open: here are several \
             domains, or PIDs that are the machine's",
            "wait by poll, or read in a thread",
        ),
        Reach::OwnerInMemory => (
            "who gets the signals of a socket, beside the caller (FIOSETOWN)",
            "whom the signals go to stands in memory, which may change after it was looked at",
            "use fcntl with F_SETOWN, which is decided",
        ),
        Reach::Pidfd => (
            "a descriptor of another process (pidfd_getfd)",
            "by the time that the kernel looks, that process may be in another domain, or outside: here are several domains, or \
             no Landlock, which would keep it inside",
            "pass the descriptor over a local socket (SCM_RIGHTS)",
        ),
        Reach::Number => (
            "another process, by a number of the machine's",
            "the number may be that of a process outside by the time that the kernel looks, and this machine has no Landlock, \
             which would keep it inside",
            "have the debugger start the program; or run on a kernel with Landlock, or with PIDs of its own",
        ),
        Reach::OwnGroup => (
            "its process group, in which Dewar is, and whatever its caller started beside it",
            "the kernel would change those outside of the run, too",
            "name processes one by one, or make a group of its own first: setpgid(0, 0)",
        ),
        Reach::Members => (
            "the processes of a group or of a user",
            "in a run with several domains one of them may enter another domain by the time that the kernel looks",
            "name processes one by one",
        ),
        Reach::Machine => (
            "the processes of a group or of a user",
            "without PIDs of its own the kernel would change those outside of the run, too",
            "name processes one by one",
        ),
    };
    asker.refuse(&Refusal {
        errno: Errno::PERM,
        by: "the process object manager",
        tclass: "process",
        missing: asker.number.name(),
        object: object.to_owned(),
        reason,
        instead,
    })
}
