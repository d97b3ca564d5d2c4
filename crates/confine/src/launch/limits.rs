//! Limits on memory, processes, processor time and wall time.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How much the sandbox may use. `None` leaves a limit as it was inherited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// Memory of the whole sandbox, in bytes (cgroup). Without a writable cgroup it bounds the
    /// address space of each process instead (`RLIMIT_AS`), which is a poor stand-in: a process
    /// may reserve far more than it uses, and many processes together may use far more.
    pub memory_bytes: Option<u64>,
    /// Processes and threads of the whole sandbox (cgroup). Without a writable cgroup it bounds
    /// what the *user* has in all (`RLIMIT_NPROC`), outside of the sandbox too; in a user
    /// namespace, what the sandbox and Dewar itself have. The kernel does not apply it to root.
    pub processes: Option<u64>,
    /// How many processors' worth of time the sandbox gets (cgroup), such as 1.5. Without a
    /// writable cgroup the sandbox is bound to that many processors, rounded up.
    pub cpus: Option<f64>,
    /// Size of each file written (`RLIMIT_FSIZE`), in bytes.
    pub file_bytes: Option<u64>,
    /// Open descriptors of each process (`RLIMIT_NOFILE`).
    pub open_files: Option<u64>,
    /// Size of a core file (`RLIMIT_CORE`), in bytes.
    pub core_bytes: Option<u64>,
    /// Wall time, after which the command is told to end (`SIGTERM`); two seconds later, the whole
    /// sandbox is killed.
    pub time: Option<Duration>,
}

/// How long a command may take to end at its limit on wall time.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Which limits a cgroup enforces, so that no stand-in is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct ByCgroup {
    /// Memory of the whole sandbox.
    pub memory: bool,
    /// Processes of the whole sandbox.
    pub processes: bool,
    /// Processor time of the whole sandbox.
    pub cpus: bool,
}

/// How often limits that a cgroup enforces were reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reached {
    /// Processes that were killed for want of memory.
    pub memory: u64,
    /// Processes and threads that were not made.
    pub processes: u64,
}

impl Limits {
    /// Sets the limits of the calling process and its descendants, besides those that a cgroup
    /// enforces; but for that of descriptors. A limit is never raised.
    pub(super) fn apply(&self, by_cgroup: ByCgroup) -> Result<(), Errno> {
        let unless = |done: bool, limit: Option<u64>| if done { None } else { limit };
        let all = [
            (Resource::As, unless(by_cgroup.memory, self.memory_bytes)),
            (Resource::Nproc, unless(by_cgroup.processes, self.processes)),
            (Resource::Fsize, self.file_bytes),
            (Resource::Core, self.core_bytes),
        ];
        for (resource, limit) in all {
            if let Some(limit) = limit {
                lower(resource, limit)?;
            }
        }
        match self.cpus {
            Some(cpus) if !by_cgroup.cpus => bind_to(cpus),
            _ => Ok(()),
        }
    }

    /// Limits the descriptors of the calling process, once it needs no more of its own: those that
    /// it has stay.
    pub(super) fn apply_to_files(&self) -> Result<(), Errno> {
        self.open_files.map_or(Ok(()), |files| lower(Resource::Nofile, files))
    }
}

/// Lets the calling process have as many descriptors as it may give itself: the monitor holds some
/// for the program. The limits before.
pub(super) fn raise_files() -> Rlimit {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, ..before };
    // Without, it has as many as before.
    let _ = setrlimit(Resource::Nofile, raised);
    before
}

/// Gives the calling process limits on descriptors that it had before.
pub(super) fn give_back_files(before: Rlimit) -> Result<(), Errno> {
    setrlimit(Resource::Nofile, before)
}

fn lower(resource: Resource, limit: u64) -> Result<(), Errno> {
    let now = getrlimit(resource);
    let least = |bound: Option<u64>| Some(bound.map_or(limit, |bound| bound.min(limit)));
    setrlimit(resource, Rlimit { current: least(now.current), maximum: least(now.maximum) })
}

/// Binds the calling process to the first `cpus` processors, rounded up, of those it may use.
fn bind_to(cpus: f64) -> Result<(), Errno> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None)?;
    let mut chosen = CpuSet::new();
    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)) {
        if f64::from(chosen.count()) >= cpus && chosen.count() > 0 {
            break;
        }
        chosen.set(cpu);
    }
    sched_setaffinity(None, &chosen)
}
