//! The layers that protect a sandbox, and which of them this machine has.
//!
//! Each is really tried, in a child process that ends at once, as what the kernel's version or
//! configuration promises is often forbidden by something else.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use landlock::{ABI, Access};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, WaitOptions, pidfd_getfd, pidfd_open};
use rustix::thread::{UnshareFlags, set_no_new_privs};
use serde::Serialize;

use crate::launch::{AccessFs, BitFlags, LaunchSpec, Limits, Namespaces, View, probe};
use crate::sys::launch as sys;

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
const LOSSES: [(&str, &str); 24] = [
    (
        "user",
        "an ordinary user gets no other namespace: no private /tmp, nothing absent, own pids or network",
    ),
    ("mount", "hidden files show that they exist (their content stays denied); /tmp is shared"),
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
        "the kernel enforces no upper bound: everything rests on the monitor, and `fast` mode is refused",
    ),
    ("landlock-refer", "moving files between directories is refused altogether"),
    ("landlock-truncate", "truncating a file is refused by the monitor alone"),
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
        "connecting and sending cannot be done on the program's behalf: they are denied",
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

/// Why a layer is not there; the number and what it usually means.
type Refusal = (Errno, Option<String>);

/// The layers, being tried by a child process while the caller goes on. Dropping it waits for the child.
#[derive(Debug)]
pub struct Probe {
    proc: Result<OwnedFd, Errno>,
    at_once: Option<Result<Pid, Errno>>,
    /// Ends when the child ends; before, there is a byte in it if the child could make mounts.
    mounts: Option<OwnedFd>,
}

impl Probe {
    /// Begins. The calling process must have a single thread, and keeps nothing of what is tried.
    #[must_use]
    pub fn start() -> Self {
        // Whoever ignores the end of its children does not learn how they ended.
        sys::set_disposition(libc::SIGCHLD, false);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open("/proc", flags, Mode::empty());
        let pipe = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        let (Ok(directory), Ok((mounts, entered))) = (&proc, pipe) else {
            return Self { proc, at_once: None, mounts: None };
        };
        let at_once = spawn(directory.as_fd(), || all_at_once(directory.as_fd(), &entered));
        Self { proc, at_once: Some(at_once), mounts: Some(mounts) }
    }

    /// Whether there will be a mount namespace, as if the machine lacked the layers in `without`. Known long before the
    /// rest; to be asked once.
    #[must_use]
    pub fn mounts(&self, without: &[String]) -> bool {
        let needed = if probe::privileged() { &["mount"][..] } else { &["user", "mount"] };
        let entered = |mounts: &OwnedFd| {
            rustix::io::retry_on_intr(|| rustix::io::read(mounts, &mut [0; 1])) == Ok(1)
        };
        !without.iter().any(|layer| needed.contains(&layer.as_str()))
            && self.mounts.as_ref().is_some_and(entered)
    }

    /// The layers. Whether limits can be set by cgroup is tried only for who wants to know: a launch finds out by itself.
    #[must_use]
    pub fn finish(mut self, limits_too: bool) -> Layers {
        let mut found = Vec::new();
        let worked = self.at_once.take().is_some_and(|child| child.and_then(result_of).is_ok());
        match &self.proc {
            Ok(_) if worked => found.extend(TRIED_AT_ONCE.map(|name| (name, Ok(())))),
            Ok(proc) => {
                namespaces(proc.as_fd(), &mut found);
                notification(proc.as_fd(), &mut found);
                descendants(proc.as_fd(), &mut found);
            }
            Err(errno) => {
                let all = LOSSES.iter().map(|(name, _)| *name).filter(|name| needs_proc(name));
                found.extend(
                    all.map(|name| (name, Err((*errno, Some("/proc is not there".into()))))),
                );
            }
        }
        envelope(&mut found);
        if limits_too {
            limits(&mut found);
        }
        found.push(("yama", yama()));
        Layers {
            layers: LOSSES.iter().map(|&(name, without)| layer(name, without, &found)).collect(),
        }
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Some(Ok(child)) = self.at_once.take() {
            // What came of it is of no interest any more.
            let _ = result_of(child);
        }
    }
}

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

    /// The file rights that Landlock handles here.
    #[must_use]
    pub fn landlock_rights(&self) -> BitFlags<AccessFs> {
        AccessFs::from_all(ABI::from(self.landlock_version().cast_signed()))
    }

    /// Takes out of `spec` what this machine lacks, and returns those layers: what they protect
    /// is lost, so say it aloud.
    pub fn degrade(&self, spec: &mut LaunchSpec) -> Vec<&Layer> {
        let before = spec.clone();
        spec.namespaces = self.namespaces(spec.namespaces);
        if !spec.namespaces.mount {
            spec.view = View::default();
        }
        self.degrade_envelope(spec);
        let mut lost = Vec::new();
        let kept = spec.namespaces.names();
        lost.extend(before.namespaces.names().into_iter().filter(|name| !kept.contains(name)));
        if let Some(envelope) = &before.envelope {
            let asked = LANDLOCK.iter().filter(|(version, _)| envelope.needs(*version));
            lost.extend(asked.map(|(_, name)| *name).filter(|name| !self.has(name)));
        }
        lost.into_iter().filter_map(|name| self.get(name)).collect()
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

    fn degrade_envelope(&self, spec: &mut LaunchSpec) {
        let version = self.landlock_version();
        if version == 0 {
            spec.envelope = None;
        }
        let Some(envelope) = &mut spec.envelope else { return };
        envelope.handled_fs &= self.landlock_rights();
        if version < 4 {
            envelope.tcp_bind = None;
            envelope.tcp_connect = None;
        }
        if version < 6 {
            envelope.scope_abstract_unix = false;
            envelope.scope_signal = false;
        }
    }
}

type Found = Vec<(&'static str, Result<(), Refusal>)>;

fn layer(name: &'static str, without: &'static str, found: &Found) -> Layer {
    let result = found.iter().find(|(other, _)| *other == name).map(|(_, result)| result);
    let reason = match result {
        None => Some("not tried".to_owned()),
        Some(Ok(())) => None,
        Some(Err((errno, None))) => Some(errno.to_string()),
        Some(Err((errno, Some(hint)))) => Some(format!("{errno}: {hint}")),
    };
    Layer { name, available: reason.is_none(), reason, without }
}

fn needs_proc(name: &str) -> bool {
    !name.starts_with("landlock") && !name.starts_with("cgroup-") && name != "yama"
}

/// Runs `act` in a child process; what it answers.
fn in_child(proc: BorrowedFd<'_>, act: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    spawn(proc, act).and_then(result_of)
}

/// Starts a child process that runs `act`, for [`result_of`].
fn spawn(proc: BorrowedFd<'_>, act: impl FnOnce() -> Result<(), Errno>) -> Result<Pid, Errno> {
    if let Some(child) = sys::fork(proc)? {
        return Ok(child);
    }
    // Error numbers are below 256.
    sys::exit_now(act().err().map_or(0, Errno::raw_os_error))
}

fn result_of(child: Pid) -> Result<(), Errno> {
    let waited =
        rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(child), WaitOptions::empty()))?;
    match waited.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        Some(number) => Err(Errno::from_raw_os_error(number)),
        None => Err(Errno::SRCH),
    }
}

/// The layers that [`all_at_once`] tries.
const TRIED_AT_ONCE: [&str; 13] = [
    "user",
    "mount",
    "pid",
    "ipc",
    "uts",
    "cgroup",
    "net",
    "seccomp-notify",
    "wait-killable",
    "sync-wake-up",
    "addfd-send",
    "pidfd-getfd",
    "process-vm-readv",
];

/// Puts on every layer that takes a child process to try, in this one. Most machines have them all, and one child takes a
/// tenth of the time of one for each; where something fails, the layers are tried one by one to learn which.
fn all_at_once(proc: BorrowedFd<'_>, entered: &OwnedFd) -> Result<(), Errno> {
    let wanted = Namespaces::all(true);
    probe::enter(wanted, proc)?;
    rustix::io::write(entered, b"m")?;
    let (getfd, memory) = with_sleeper(proc, hold)?;
    getfd.and(memory)?;
    match sys::clone_process(proc, wanted.clone_flags())? {
        sys::Side::Child => sys::exit_now(inner().err().map_or(0, Errno::raw_os_error)),
        sys::Side::Parent { pid, .. } => result_of(pid),
    }
}

/// What is left for a process in the other namespaces to try.
fn inner() -> Result<(), Errno> {
    probe::mount_proc()?;
    let proc = rustix::fs::open("/proc", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    sys::unshare(proc.as_fd(), UnshareFlags::NEWCGROUP)?;
    sys::unshare(proc.as_fd(), UnshareFlags::NEWUSER)?;
    let listener = listener(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)?;
    sys::probe_sync_wake_up(listener.as_fd())?;
    sys::probe_addfd_send(listener.as_fd())
}

fn namespaces(proc: BorrowedFd<'_>, found: &mut Found) {
    let user = Namespaces { user: true, ..Namespaces::NONE };
    let base = Namespaces { user: !probe::privileged(), ..Namespaces::NONE };
    let mount = Namespaces { mount: true, ..base };
    let hinted = |result: Result<(), Errno>, of: &str| result.map_err(|errno| (errno, hint(of)));
    found.push(("user", hinted(in_child(proc, || probe::enter(user, proc)), "user")));
    found.push(("mount", hinted(in_child(proc, || probe::enter(mount, proc)), "mnt")));
    found.push(("pid", pid_namespace(proc, mount)));
    let others = [
        ("ipc", UnshareFlags::NEWIPC),
        ("uts", UnshareFlags::NEWUTS),
        ("cgroup", UnshareFlags::NEWCGROUP),
        ("net", UnshareFlags::NEWNET),
    ];
    for (name, flag) in others {
        let result = in_child(proc, || {
            probe::enter(base, proc)?;
            sys::unshare(proc, flag)
        });
        found.push((name, hinted(result, name)));
    }
}

/// A pid namespace is of use only with a `/proc` of its own.
fn pid_namespace(proc: BorrowedFd<'_>, base: Namespaces) -> Result<(), Refusal> {
    let new = u64::from(libc::CLONE_NEWPID.cast_unsigned());
    let created = |act: fn() -> Result<(), Errno>| {
        in_child(proc, || {
            probe::enter(base, proc)?;
            match sys::clone_process(proc, new)? {
                sys::Side::Child => sys::exit_now(act().err().map_or(0, Errno::raw_os_error)),
                sys::Side::Parent { pid, .. } => result_of(pid),
            }
        })
    };
    created(|| Ok(())).map_err(|errno| (errno, hint("pid")))?;
    created(probe::mount_proc).map_err(|errno| {
        let why = "parts of /proc are covered (a container?), so the kernel refuses a new one";
        (errno, Some(why.to_owned()))
    })
}

/// What usually stands behind the refusal of a namespace.
fn hint(namespace: &str) -> Option<String> {
    let is = |path: &str, value: &str| {
        std::fs::read_to_string(Path::new("/proc/sys").join(path))
            .is_ok_and(|text| text.trim() == value)
    };
    let limit = format!("user/max_{namespace}_namespaces");
    if is(&limit, "0") {
        return Some(format!("sysctl user.max_{namespace}_namespaces is 0"));
    }
    if is("kernel/unprivileged_userns_clone", "0") {
        return Some("sysctl kernel.unprivileged_userns_clone is 0".into());
    }
    if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        return Some("sysctl kernel.apparmor_restrict_unprivileged_userns is 1".into());
    }
    let ns = if namespace == "mnt" { "mnt" } else { namespace };
    if !Path::new("/proc/self/ns").join(ns).exists() {
        return Some("the kernel is built without it".into());
    }
    Some("a container's or a service's own system-call filter may forbid it".into())
}

/// Lets everything through.
const ALLOW: [libc::sock_filter; 1] =
    [libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW }];

fn listener(flags: libc::c_ulong) -> Result<OwnedFd, Errno> {
    set_no_new_privs(true)?;
    sys::install_filter(&ALLOW, flags)
}

fn notification(proc: BorrowedFd<'_>, found: &mut Found) {
    let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let tried = [
        ("seccomp-notify", in_child(proc, || listener(0).map(drop))),
        ("wait-killable", in_child(proc, || listener(killable).map(drop))),
        ("sync-wake-up", in_child(proc, || sys::probe_sync_wake_up(listener(0)?.as_fd()))),
        ("addfd-send", in_child(proc, || sys::probe_addfd_send(listener(0)?.as_fd()))),
    ];
    found.extend(tried.map(|(name, result)| (name, result.map_err(|errno| (errno, None)))));
}

fn descendants(proc: BorrowedFd<'_>, found: &mut Found) {
    let tried = with_sleeper(proc, hold);
    let (getfd, memory) = tried.unwrap_or_else(|errno| (Err(errno), Err(errno)));
    found.push(("pidfd-getfd", getfd.map_err(|errno| (errno, None))));
    found.push(("process-vm-readv", memory.map_err(|errno| (errno, None))));
}

/// What the monitor does to its descendants: taking a descriptor, and reading memory.
fn hold(child: Pid) -> (Result<(), Errno>, Result<(), Errno>) {
    let getfd = pidfd_open(child, PidfdFlags::empty())
        .and_then(|pidfd| pidfd_getfd(pidfd, 0, PidfdGetfdFlags::empty()));
    // A standard input that is closed is as telling as one that is open.
    let getfd =
        getfd.map(drop).or_else(|errno| if errno == Errno::BADF { Ok(()) } else { Err(errno) });
    (getfd, sys::probe_memory_of(child))
}

/// Runs `act` while a child process waits.
fn with_sleeper<T>(proc: BorrowedFd<'_>, act: impl FnOnce(Pid) -> T) -> Result<T, Errno> {
    let (wait, wake) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let Some(child) = sys::fork(proc)? else {
        drop(wake);
        // Until the other end is closed.
        let _ = rustix::io::read(&wait, &mut [0; 1]);
        sys::exit_now(0)
    };
    let result = act(child);
    drop(wake);
    result_of(child)?;
    Ok(result)
}

fn envelope(found: &mut Found) {
    let version = sys::landlock_version();
    for (needed, name) in LANDLOCK {
        found.push((
            name,
            match version {
                Ok(version) if version >= needed => Ok(()),
                Ok(version) => Err((
                    Errno::OPNOTSUPP,
                    Some(format!("the kernel has version {version}, this needs {needed}")),
                )),
                Err(Errno::OPNOTSUPP) => Err((
                    Errno::OPNOTSUPP,
                    Some("not among the modules of the boot parameter lsm=".into()),
                )),
                Err(errno) => Err((errno, None)),
            },
        ));
    }
}

fn limits(found: &mut Found) {
    let memory = Limits { memory_bytes: Some(1 << 30), ..Limits::default() };
    let processes = Limits { processes: Some(1 << 10), ..Limits::default() };
    let cpus = Limits { cpus: Some(1.0), ..Limits::default() };
    let together = probe::cgroup(&Limits {
        processes: processes.processes,
        cpus: cpus.cpus,
        ..memory.clone()
    });
    let all = [
        ("cgroup-memory", together.memory || probe::cgroup(&memory).memory),
        ("cgroup-processes", together.processes || probe::cgroup(&processes).processes),
        ("cgroup-cpus", together.cpus || probe::cgroup(&cpus).cpus),
    ];
    let why = "no cgroup with this controller is delegated to the user; `systemd-run --user --scope -p Delegate=yes` makes one";
    found.extend(all.map(|(name, made)| {
        (name, if made { Ok(()) } else { Err((Errno::ACCESS, Some(why.to_owned()))) })
    }));
}

/// Yama may keep even parents from reading the memory of their children.
fn yama() -> Result<(), Refusal> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "2" if !probe::privileged() => Err((
            Errno::PERM,
            Some("sysctl kernel.yama.ptrace_scope is 2 (administrators only)".into()),
        )),
        "3" => Err((Errno::PERM, Some("sysctl kernel.yama.ptrace_scope is 3 (nobody)".into()))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Envelope, Inherited};

    fn all() -> Layers {
        let found: Found = LOSSES.iter().map(|(name, _)| (*name, Ok(()))).collect();
        Layers {
            layers: LOSSES.iter().map(|&(name, without)| layer(name, without, &found)).collect(),
        }
    }

    fn spec() -> LaunchSpec {
        let namespaces = Namespaces {
            user: true,
            mount: true,
            pid: true,
            ipc: true,
            uts: true,
            cgroup: true,
            net: true,
        };
        LaunchSpec {
            command: vec!["true".into()],
            environment: Vec::new(),
            cwd: "/".into(),
            inherited: Inherited::capture(),
            namespaces,
            view: View { private_tmp: true, ..View::default() },
            envelope: Some(Envelope {
                handled_fs: AccessFs::from_all(ABI::V5),
                tcp_bind: Some(vec![80]),
                scope_signal: true,
                ..Envelope::default()
            }),
            capabilities: 0,
            limits: Limits::default(),
        }
    }

    fn lost(without: &[&str]) -> (LaunchSpec, Vec<&'static str>) {
        let (mut spec, layers) = (spec(), all().without(without));
        let lost = layers.degrade(&mut spec).into_iter().map(|layer| layer.name).collect();
        (spec, lost)
    }

    #[test]
    fn nothing_is_lost_where_nothing_lacks() {
        let (degraded, lost) = lost(&[]);
        assert!(lost.is_empty());
        assert_eq!(degraded.namespaces, spec().namespaces);
        assert_eq!(degraded.view, spec().view);
    }

    #[test]
    fn without_user_namespaces_there_are_no_others() {
        let (degraded, lost) = lost(&["user"]);
        assert_eq!(degraded.namespaces, Namespaces::NONE);
        assert!(degraded.view.is_plain());
        assert_eq!(lost, ["user", "mount", "pid", "ipc", "uts", "cgroup", "net"]);
    }

    #[test]
    fn an_older_landlock_handles_what_it_knows() {
        let (degraded, lost) = lost(&["landlock-truncate"]);
        let envelope = degraded.envelope.expect("an envelope");
        assert_eq!(envelope.handled_fs, AccessFs::from_all(ABI::V2));
        assert_eq!(envelope.tcp_bind, None);
        assert!(!envelope.scope_signal);
        assert!(lost.contains(&"landlock-truncate"), "{lost:?}");
        let (degraded, _) = super::tests::lost(&["landlock"]);
        assert!(degraded.envelope.is_none());
    }
}
