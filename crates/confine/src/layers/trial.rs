//! Trying the layers, in child processes.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, WaitOptions, pidfd_getfd, pidfd_open};
use rustix::thread::{UnshareFlags, set_no_new_privs};

use super::{LANDLOCK, LOSSES, Layer, Layers};
use crate::launch::{Limits, Namespaces, probe};
use crate::sys;

/// Why a layer is not there; the number and what it usually means.
pub(super) type Refusal = (Errno, Option<String>);

/// The layers, being tried by a child process while the caller goes on. Dropping it waits for the
/// child.
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

    /// Whether there will be a mount namespace, as if the machine lacked the layers in `without`.
    /// Known long before the rest; to be asked once.
    #[must_use]
    pub fn mounts(&self, without: &[String]) -> bool {
        let needed = if probe::privileged() { &["mount"][..] } else { &["user", "mount"] };
        let entered = |mounts: &OwnedFd| {
            rustix::io::retry_on_intr(|| rustix::io::read(mounts, &mut [0; 1])) == Ok(1)
        };
        !without.iter().any(|layer| needed.contains(&layer.as_str()))
            && self.mounts.as_ref().is_some_and(entered)
    }

    /// The layers. Whether limits can be set by cgroup is tried only for who wants to know: a
    /// launch finds out by itself.
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

pub(super) type Trials = Vec<(&'static str, Result<(), Refusal>)>;

pub(super) fn layer(name: &'static str, without: &'static str, found: &Trials) -> Layer {
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
const TRIED_AT_ONCE: [&str; 14] = [
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
    "unshare-fs",
    "process-vm-readv",
];

/// Puts on every layer that takes a child process to try, in this one. Most machines have them all,
/// and one child takes a tenth of the time of one for each; where something fails, the layers are
/// tried one by one to learn which.
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
    sys::unshare(proc.as_fd(), UnshareFlags::FS)?;
    let listener = listener(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)?;
    sys::probe_sync_wake_up(listener.as_fd())?;
    sys::probe_addfd_send(listener.as_fd())
}

fn namespaces(proc: BorrowedFd<'_>, found: &mut Trials) {
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
    if !Path::new("/proc/self").exists() {
        return Some("/proc is not mounted".into());
    }
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

fn notification(proc: BorrowedFd<'_>, found: &mut Trials) {
    let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let tried = [
        ("seccomp-notify", in_child(proc, || listener(0).map(drop))),
        ("wait-killable", in_child(proc, || listener(killable).map(drop))),
        ("sync-wake-up", in_child(proc, || sys::probe_sync_wake_up(listener(0)?.as_fd()))),
        ("addfd-send", in_child(proc, || sys::probe_addfd_send(listener(0)?.as_fd()))),
    ];
    found.extend(tried.map(|(name, result)| (name, result.map_err(|errno| (errno, None)))));
}

fn descendants(proc: BorrowedFd<'_>, found: &mut Trials) {
    let tried = with_sleeper(proc, hold);
    let (getfd, memory) = tried.unwrap_or_else(|errno| (Err(errno), Err(errno)));
    found.push(("pidfd-getfd", getfd.map_err(|errno| (errno, None))));
    found.push(("process-vm-readv", memory.map_err(|errno| (errno, None))));
    let threads = in_child(proc, || sys::unshare(proc, UnshareFlags::FS));
    found.push(("unshare-fs", threads.map_err(|errno| (errno, None))));
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

fn envelope(found: &mut Trials) {
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

fn limits(found: &mut Trials) {
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
