//! System calls that can come to the monitor, and who decides them there.

use super::calls::{IPC, PARTLY, PROBED, REFUSED};
use syscalls::Sysno;

/// Who decides a call that comes to the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// The file object manager.
    File,
    /// The process object manager.
    Process,
    /// Executing a file, which concerns both.
    Exec,
    /// The socket object manager.
    Socket,
    /// Nobody: no profile grants it, and the monitor says so on record.
    Refused,
}

/// The one table of calls that can come to the monitor, and who decides them there. They are
/// trapped, but for what `arguments.rs` and `LOOKS` say: they reach a named object or another
/// process, or change what exists.
pub const DECIDED: [(Handler, &[Sysno]); 9] = [
    (Handler::File, FILES),
    (Handler::File, LOOKS),
    (Handler::Process, PROCESSES),
    (Handler::Exec, EXECS),
    (Handler::Socket, SOCKETS),
    (Handler::Refused, REFUSED),
    (Handler::Refused, IPC),
    (Handler::Refused, PROBED),
    (Handler::Refused, PARTLY),
];

/// Who decides a call; nobody, if it never comes to the monitor.
#[must_use]
pub fn handler(call: Sysno) -> Option<Handler> {
    /// By the numbers of the calls.
    static HANDLERS: [Option<Handler>; 1024] = handlers();
    HANDLERS.get(call.id() as usize).copied().flatten()
}

const fn handlers() -> [Option<Handler>; 1024] {
    let mut all = [None; 1024];
    let mut row = 0;
    while row < DECIDED.len() {
        let (handler, calls) = DECIDED[row];
        let mut n = 0;
        while n < calls.len() {
            all[calls[n] as usize] = Some(handler);
            n += 1;
        }
        row += 1;
    }
    all
}

/// They name a file, or change one.
const FILES: &[Sysno] = {
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
        file_setattr,
        name_to_handle_at,
        inotify_add_watch,
        memfd_create,
        ioctl,
        chdir,
        fchdir,
    ]
};

/// They make a process, or reach another one.
const PROCESSES: &[Sysno] = {
    use Sysno::*;
    &[
        setuid,
        setgid,
        setreuid,
        setregid,
        setresuid,
        setresgid,
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
        fork,
        vfork,
        clone,
        fcntl,
        setpgid,
    ]
};

/// They put a program in the place of another.
const EXECS: &[Sysno] = {
    use Sysno::*;
    &[execve, execveat]
};

/// They make a socket, name it, or send to an address.
const SOCKETS: &[Sysno] = {
    use Sysno::*;
    &[connect, bind, socket, socketpair, listen, sendto, sendmsg, sendmmsg, setsockopt]
};

/// Calls that only look at a name: decided where something is hidden.
pub(super) const LOOKS: &[Sysno] = {
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
