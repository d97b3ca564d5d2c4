//! The layers that protect a sandbox, and which of them this machine has.
//!
//! Each is really tried, in a child process that ends at once, as what the kernel's version or
//! configuration promises is often forbidden by something else.

mod trial;

use serde::Serialize;

use crate::launch::Namespaces;

pub use trial::Probe;

/// One layer, and whether this machine has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// How it is called in messages and in `Layers::without`.
    pub name: &'static str,
    /// Whether it works here.
    pub available: bool,
    /// Why it does not, or what is remarkable about it.
    pub reason: Option<String>,
    /// What is lost without it.
    pub without: &'static str,
}

/// All layers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layers {
    /// In the order in which they are put on.
    pub layers: Vec<Layer>,
}

/// Every layer, and what is lost without it.
const LOSSES: [(&str, &str); 25] = [
    (
        "user",
        "an ordinary user gets no other namespace: no private /tmp, no own pids or network, and nothing is absent: hidden files \
         show that they exist, and their attributes",
    ),
    (
        "mount",
        "hidden files show that they exist, and their attributes (their content stays denied), unless a profile says \
         hiding = \"strict\"; /tmp is shared",
    ),
    (
        "pid",
        "processes outside are visible, and the end of the sandbox is enforced by Dewar instead of the kernel",
    ),
    ("ipc", "System V shared memory and message queues of the same user are within reach"),
    ("uts", "root in the sandbox could change the host name, if granted the capability"),
    ("cgroup", "the path of the machine's cgroups is visible"),
    ("net", "UDP and other protocols are refused by the system-call filter alone"),
    (
        "landlock",
        "the kernel enforces no upper bound: everything rests on the monitor, and `fast` mode is refused; so are fetching \
         descriptors of processes (pidfd_getfd) and, without PIDs of its own, tracing by number (ptrace, process_vm_readv, kcmp)",
    ),
    ("landlock-refer", "moving files between directories is refused altogether"),
    ("landlock-truncate", "files are opened for writing by the monitor, which is slower"),
    ("landlock-tcp", "TCP ports are refused by the monitor alone"),
    ("landlock-ioctl", "device controls are refused by the system-call filter alone"),
    ("landlock-scopes", "signals and abstract Unix sockets are refused by the monitor alone"),
    ("landlock-log", "the kernel's own log of what the envelope refused is missing"),
    ("seccomp-notify", "nothing can be decided while a program runs: Dewar does not start"),
    ("wait-killable", "a signal may interrupt a decided call and run it twice"),
    ("sync-wake-up", "each decision takes 75 instead of 8 microseconds on an idle machine"),
    ("addfd-send", "opening a file on the program's behalf takes one step more"),
    (
        "pidfd-getfd",
        "the monitor makes sockets itself; what it has not made cannot be connected, no file can be watched (inotify), and \
         who holds what is taken back is killed (Docker: --cap-add SYS_PTRACE)",
    ),
    (
        "unshare-fs",
        "files are made one after the other, under the mask of who makes each: slower where many processes make many",
    ),
    ("process-vm-readv", "arguments are read through /proc/PID/mem, which is slower"),
    (
        "cgroup-memory",
        "RLIMIT_AS bounds the address space of each process instead: a poor stand-in",
    ),
    (
        "cgroup-processes",
        "RLIMIT_NPROC bounds all processes of the user instead (in a user namespace, only those of the sandbox and Dewar), and root not at all",
    ),
    ("cgroup-cpus", "the sandbox is bound to a number of processors instead of a share of them"),
    ("yama", "the monitor could not read the memory of what it guards: Dewar does not start"),
];

/// What each version of Landlock added.
const LANDLOCK: [(u32, &str); 7] = [
    (1, "landlock"),
    (2, "landlock-refer"),
    (3, "landlock-truncate"),
    (4, "landlock-tcp"),
    (5, "landlock-ioctl"),
    (6, "landlock-scopes"),
    (7, "landlock-log"),
];

impl Layers {
    /// Tries every layer. The calling process must have a single thread, and keeps nothing of it.
    #[must_use]
    pub fn probe() -> Self {
        Probe::start().finish(true)
    }

    /// These layers as if the machine lacked those in `names`.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        for layer in self.layers.iter_mut().filter(|layer| names.contains(&layer.name)) {
            layer.available = false;
            layer.reason = Some("left out on request".into());
        }
        self
    }

    /// Whether the layer `name` works here; a name that is none does not.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.layers.iter().any(|layer| layer.name == name && layer.available)
    }

    /// The layer `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.name == name)
    }

    /// The newest version of Landlock whose additions all work here; 0 for none.
    #[must_use]
    pub fn landlock_version(&self) -> u32 {
        let known = LANDLOCK.iter().take_while(|(_, name)| self.has(name));
        known.last().map_or(0, |(version, _)| *version)
    }

    /// Those of `asked` that work here.
    #[must_use]
    pub fn namespaces(&self, asked: Namespaces) -> Namespaces {
        // Without the user namespace that it needs, an ordinary user gets none.
        if asked.user && !self.has("user") {
            return Namespaces::NONE;
        }
        let mount = asked.mount && self.has("mount");
        Namespaces {
            user: asked.user,
            mount,
            pid: asked.pid && mount && self.has("pid"),
            ipc: asked.ipc && self.has("ipc"),
            uts: asked.uts && self.has("uts"),
            cgroup: asked.cgroup && self.has("cgroup"),
            net: asked.net && self.has("net"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::trial::{Trials, layer};
    use super::*;

    const ALL: Namespaces = Namespaces {
        user: true,
        mount: true,
        pid: true,
        ipc: true,
        uts: true,
        cgroup: true,
        net: true,
    };

    fn without(names: &[&str]) -> Layers {
        let found: Trials = LOSSES.iter().map(|(name, _)| (*name, Ok(()))).collect();
        let layers = LOSSES.iter().map(|&(name, without)| layer(name, without, &found)).collect();
        Layers { layers }.without(names)
    }

    #[test]
    fn nothing_is_lost_where_nothing_lacks() {
        let layers = without(&[]);
        assert_eq!(layers.namespaces(ALL), ALL);
        assert_eq!(layers.landlock_version(), 7);
    }

    #[test]
    fn without_user_namespaces_there_are_no_others() {
        assert_eq!(without(&["user"]).namespaces(ALL), Namespaces::NONE);
        let kept = without(&["mount"]).namespaces(ALL);
        assert_eq!(kept, Namespaces { mount: false, pid: false, ..ALL });
    }

    #[test]
    fn an_older_landlock_handles_what_it_knows() {
        assert_eq!(without(&["landlock-truncate"]).landlock_version(), 2);
        assert_eq!(without(&["landlock"]).landlock_version(), 0);
    }
}
