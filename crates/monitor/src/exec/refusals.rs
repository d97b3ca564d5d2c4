//! Execs that fail whatever policy says: each is on record, with what to do instead.

use audit::Refusal;
use mediation::call::Asker;
use proc::path_of;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Why an exec fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The program is a script, and would enter a domain.
    Script,
    /// The process has a seccomp filter of its own, or a personality of these.
    Brings,
    /// Another process looks into the one that would enter a domain, or has let it run unseen.
    Watched,
    /// The process could not be given the label of a run inside; it was killed.
    Unmarked,
    /// The threads of the sandbox could not be stopped to tell them apart.
    Alike,
    /// The process is traced, so nobody can look at what it executes.
    Traced,
    /// Another process traces a thread of it, and has not let that end; it was killed.
    HeldUp,
    /// The run was started for one domain.
    OneDomain,
    /// Where it lies, nothing was when the kernel was told what may be executed.
    Missing,
    /// The process was executing another file than the one that was decided; it was killed.
    Another,
    /// Nobody can tell which file the kernel has loaded beside the program; it was killed.
    Loader,
    /// The signal at the death of its parent could not be taken from it; it was killed.
    Parent,
}

impl Why {
    fn errno(self) -> Errno {
        match self {
            Self::Alike => Errno::AGAIN,
            Self::Traced => Errno::PERM,
            _ => Errno::ACCESS,
        }
    }

    /// Why it fails, and what leads to the same end.
    fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Script => (
                "it is a script, and policy gives it another domain; an interpreter opens its script by name, which could lead \
                 elsewhere by then, so no script enters a domain",
                "list its path in `exec` at the top of the profile (of the domain that starts it), so that it stays in that \
                 domain, or have `exec` name the interpreter; or start it by a command of its own: dewar run",
            ),
            Self::Brings => (
                "the process has a seccomp filter of its own, or a personality that changes how programs are laid out; both \
                 would go into the domain with it",
                "start the program from a process without them, or list it in `exec` of the domain that starts it",
            ),
            Self::Watched => (
                "another process traces it, or has looked into its memory, so it enters no domain",
                "start the program from a process that no debugger has traced",
            ),
            Self::Unmarked => (
                "the limits of the process, which say that it belongs to a run inside, could not be set; the process was killed",
                "begin the run inside from a process that has the IDs which the run was started with",
            ),
            Self::Alike => (
                "a thread of the sandbox could not be stopped, so processes could not be told apart, and no domain is entered \
                 on a guess",
                "try again once nothing outside traces the sandbox",
            ),
            Self::Traced => (
                "the process is traced, so nobody can see what it would execute",
                "let the debugger start outside of the run, or use a profile with one domain, as `workspace`: `dewar learn` looks at each exec",
            ),
            Self::HeldUp => (
                "another process traces one of its threads, which the exec waits for, and has not let that end; the process \
                 was killed",
                "let the debugger start outside of the run, or use a profile with one domain, as `workspace`: `dewar learn` looks at each exec",
            ),
            Self::OneDomain => (
                "the run was started for one domain, and this program would enter another",
                "start the command anew under the profile as it is now",
            ),
            Self::Missing => (
                "the profile grants executing where it lies, but that was not there when the run began, and the kernel was told \
                 then what may be executed",
                "begin the run anew, now that it is there; a slash at its end in the profile (`files.write = [\"DIR/\"]`) has \
                 Dewar make the directory before each run",
            ),
            Self::Another => (
                "the path led to another file once the program was executed; the process was killed",
                "do not change the program while it is started",
            ),
            Self::Parent => (
                "the signal that it was to have at the death of its parent (PR_SET_PDEATHSIG) could not be taken from it; the \
                 process was killed",
                "list it in `exec` of the domain that starts it",
            ),
            Self::Loader => (
                "no path leads to the interpreter that the program's header names (PT_INTERP), as it was loaded; the process \
                 was killed",
                "do not change the interpreter while a program is started",
            ),
        }
    }
}

/// Records that `file` is not executed; the errno for the program.
pub(super) fn refuse(asker: Asker<'_>, file: &OwnedFd, why: Why) -> Errno {
    let path = path_of(&asker.state.targets.tree, file).unwrap_or_default();
    let (reason, instead) = why.told();
    asker.refuse(&Refusal {
        errno: why.errno(),
        by: "the process object manager",
        tclass: "file",
        missing: "execute",
        object: path.to_string_lossy().into_owned(),
        reason,
        instead,
    })
}
