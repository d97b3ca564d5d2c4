//! System calls that can come to the monitor, and who decides them there.

use super::{
    calls::{IPC, PARTLY, PROBED, REFUSED},
    requests::{FOREGROUND, REFUSED_IOCTLS, SET_FLAGS, SIGNALS},
};
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

/// The same for ioctl(2), whose requests concern different managers: those that come to the
/// monitor.
pub const REQUESTS: [(Handler, &[u32]); 4] = [
    (Handler::Refused, REFUSED_IOCTLS),
    (Handler::File, SET_FLAGS),
    (Handler::Process, FOREGROUND),
    (Handler::Process, SIGNALS),
];

/// Who decides a call; nobody, if it never comes to the monitor.
#[must_use]
pub fn handler(call: Sysno, args: &[u64; 6]) -> Option<Handler> {
    /// By the numbers of the calls.
    static HANDLERS: [Option<Handler>; 1024] = handlers();
    if call == Sysno::ioctl {
        return handler_of_request(args[1] as u32);
    }
    HANDLERS.get(call.id() as usize).copied().flatten()
}

fn handler_of_request(request: u32) -> Option<Handler> {
    let row = REQUESTS.iter().find(|(_, requests)| requests.contains(&request));
    row.map(|(handler, _)| *handler)
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

/// They make a socket, name it, or send to an address; or have one stop to listen.
const SOCKETS: &[Sysno] = {
    use Sysno::*;
    &[connect, bind, socket, socketpair, listen, sendto, sendmsg, sendmmsg, setsockopt, shutdown]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bpf::{Action, Test},
        filter::{arguments::special, reasons::all_traps},
    };

    #[test]
    fn every_call_that_can_be_trapped_has_somebody_who_decides_it() {
        for traps in all_traps() {
            for (call, rule) in special(traps) {
                let tests = rule.tests.iter().map(|(test, action)| (arguments_of(*test), *action));
                for (args, action) in tests.chain([([0; 6], rule.otherwise)]) {
                    let is_decided = handler(call, &args).is_some();
                    assert!(action != Action::Notify || is_decided, "{call} {args:x?}");
                }
            }
        }
        for (handler_of, calls) in DECIDED {
            for call in calls {
                assert_eq!(handler(*call, &[0; 6]), Some(handler_of), "{call}");
            }
        }
        for (handler_of, requests) in REQUESTS {
            for request in requests {
                // The kernel looks at the lower half.
                let args = [0, 1 << 32 | u64::from(*request), 0, 0, 0, 0];
                assert_eq!(handler(Sysno::ioctl, &args), Some(handler_of), "{request:#x}");
            }
        }
        assert_eq!(handler(Sysno::ioctl, &[0, libc::TCGETS, 0, 0, 0, 0]), None);
    }

    /// Arguments that a test holds for.
    fn arguments_of(test: Test) -> [u64; 6] {
        let mut args = [0; 6];
        let mut set = |arg: u8, value: u32| args[usize::from(arg)] = value.into();
        match test {
            Test::Masked { arg, value, .. } => set(arg, value),
            Test::Null { .. } => {}
            Test::Range { arg, low, .. } => set(arg, low),
            Test::Within { arg, value, of, low, .. } => {
                set(arg, value);
                set(of, low);
            }
            Test::Flagged { arg, value, of, mask } => {
                set(arg, value);
                set(of, mask);
            }
        }
        args
    }
}
