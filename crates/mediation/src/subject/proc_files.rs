//! The files of `/proc/PID`: they show a process, so the process is asked about, too.

use crate::{
    cache::AccessRequest,
    call::Asker,
    subject::{LabelGeneration, has_stayed, label_generation, subject_of, watch},
};
use audit::Refusal;
use avc::Hint;
use confine::launch::OpenAccess;
use flask::{Class, perm};
use proc::path_of;
use rustix::{
    fs::{OFlags, fcntl_getfl, fstat},
    io::{Errno, Result},
};
use std::{
    ffi::OsStr,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
};
use supervisor::WalkedPath;

/// The file that holds a thread's name.
const COMM: &str = "comm";

/// Files by which a process says of itself what it may also say by other calls, or what concerns
/// nobody else.
pub const OWN: [&str; 3] = [COMM, "coredump_filter", "oom_score_adj"];

/// The file that is a process's memory.
pub const MEM: &str = "mem";

/// Files that show what a process is, not what it holds.
const HARMLESS: &[&str] = &[
    "stat",
    "status",
    "statm",
    "cmdline",
    COMM,
    "cgroup",
    "loginuid",
    "sessionid",
    "task",
    "limits",
];

/// Files that show the memory that a process had when they were opened; all others show what it
/// becomes.
const OF_MEMORY: [&str; 7] = ["environ", "maps", "mem", "smaps", "smaps_rollup", "pagemap", "auxv"];

/// Another process into which a file of `/proc` lets look, as it was when that was decided.
pub struct LookedInto {
    pid: u32,
    generation: LabelGeneration,
}

impl LookedInto {
    /// Once the file is open: whether the process has not begun to enter another domain since. The
    /// descriptor would show what belongs to that.
    pub fn has_stayed(&self, asker: Asker<'_>) -> Result<()> {
        let stayed = has_stayed(asker.state, self.pid, self.generation);
        if stayed { Ok(()) } else { Err(Errno::ACCESS) }
    }
}

/// Whether `asker` may open what a walk found, as far as that belongs to another process.
pub fn allow(asker: Asker<'_>, found: &WalkedPath) -> Result<Option<LookedInto>> {
    let Some(pid) = found.process else { return Ok(None) };
    let name = found.entry.as_ref().map(|(_, name)| name.as_os_str());
    let is_pid = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    let harmless = name.is_some_and(|name| is_pid(name) || HARMLESS.iter().any(|it| name == *it));
    let requested = if harmless { perm::process::GETATTR } else { perm::process::PTRACE };
    let identity = asker.caller.identity()?;
    let tree = &asker.state.targets.tree;
    let outer = match tree.outer_pid(pid, identity) {
        // The directory of a process that has ended is empty.
        Err(Errno::SRCH) if found.object.is_none() => return Err(Errno::NOENT),
        outer => outer?,
    };
    if found.object.is_none() {
        tree.proc.identity(outer).map_err(|_| Errno::NOENT)?;
    }
    let many = !asker.state.subjects.cannot_differ_yet();
    let looks_into = (many && !harmless && tree.is_inside(outer))
        .then(|| {
            Ok::<_, Errno>(LookedInto {
                pid: outer,
                generation: label_generation(asker.state, outer)?,
            })
        })
        .transpose()?;
    let tsid = subject_of(asker, outer)?;
    let object = || format!("process {pid}");
    let hint = Hint::default();
    let request =
        AccessRequest { tsid, tclass: Class::Process, requested, hint: &hint, object: &object };
    asker.ask(&asker.state.caches.process, &request)?;
    if looks_into.is_some() && !name.is_some_and(|name| OF_MEMORY.iter().any(|it| name == *it)) {
        watch(asker.state, outer)?;
    }
    Ok(looks_into)
}

/// Whether `asker` may use what has no name and lies behind its `descriptor`, if it was found by
/// one.
///
/// Whoever has it open may. It may be opened anew for `wanted` if the asker's own descriptor, or
/// the one that the caller of Dewar has given, has that access. A descriptor that is only a place
/// (`O_PATH`) opens nothing: the kernel gives everybody one of what another process has open.
pub fn allow_held(
    asker: Asker<'_>,
    descriptor: Option<i32>,
    object: &OwnedFd,
    wanted: Option<OpenAccess>,
) -> Result<()> {
    let found_is = fstat(object)?;
    let refused = |reason| match path_of(&asker.state.targets.tree, object) {
        Ok(path) => asker.refuse(&other_end(&path, reason)),
        Err(errno) => errno,
    };
    if wanted.is_some_and(|wanted| !asker.state.given.allows(&found_is, wanted)) {
        return Err(refused(
            "the run was given one end of it, and this would be the other, which somebody outside has",
        ));
    }
    let Some(fd) = descriptor.filter(|_| !asker.state.subjects.cannot_differ_yet()) else {
        return Ok(());
    };
    // What another thread puts at its number meanwhile is not what was found.
    let held = asker.duplicate(fd)?;
    let held_is = fstat(&held)?;
    let is_same = (held_is.st_dev, held_is.st_ino) == (found_is.st_dev, found_is.st_ino);
    let has = fcntl_getfl(&held)?;
    if !is_same || has.contains(OFlags::PATH) {
        return Err(Errno::ACCESS);
    }
    if wanted.is_some_and(|wanted| !OpenAccess::of(has).gives(wanted)) {
        return Err(refused(
            "its descriptor is of one end of it, and another domain may have the other",
        ));
    }
    Ok(())
}

/// The refusal to open the other end of what was given.
fn other_end(object: &Path, reason: &'static str) -> Refusal {
    Refusal {
        errno: Errno::ACCESS,
        by: "the file object manager",
        tclass: Class::FifoFile.name(),
        missing: "open",
        object: object.to_string_lossy().into_owned(),
        reason,
        instead: "read what was given to be read, and write what was given to be written; a pipe of its own has both ends",
    }
}

/// Whether a walk found a file of `/proc/PID` about which only the process is asked: one of [`OWN`]
/// of `asker`'s process, such as the name of a thread, which it changes by prctl(2) as well, and
/// the kernel lets nobody else; or, of a process that `asker` may trace, which [`allow`] has asked,
/// the others of those, and its memory, where debuggers write.
pub fn is_for_process(asker: Asker<'_>, found: &WalkedPath, object: &OwnedFd) -> Result<bool> {
    let name = found.entry.as_ref().map(|(_, name)| name.as_os_str());
    let is_one_of = |all: &[&str]| name.is_some_and(|name| all.iter().any(|it| name == *it));
    let is_own = is_one_of(&OWN) && (found.process.is_none() || !is_one_of(&[COMM]));
    if !(is_own || is_one_of(&[MEM])) || !asker.state.targets.tree.is_proc(object.as_fd())? {
        return Ok(false);
    }
    let path = path_of(&asker.state.targets.tree, object)?;
    let pid = path.strip_prefix("/proc").ok().and_then(|path| path.iter().next()?.to_str());
    Ok(pid.is_some_and(|pid| pid.parse::<u32>().is_ok()))
}

/// The path of the caller's controlling terminal.
pub fn controlling_terminal(asker: Asker<'_>) -> Result<PathBuf> {
    let stat = asker.state.targets.tree.proc.stat(asker.caller.call.tid);
    asker.caller.certain(stat)?.terminal_path().ok_or(Errno::NXIO)
}
