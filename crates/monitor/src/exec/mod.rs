//! execve and execveat: the only way to another label.

mod loader;
mod refusals;
mod secure;
mod verify;

use audit::Refusal;
use avc::Hint;
use confine::{computed, entered};
use file_manager::{FileAsker, MissingName, Seen, stays_plain};
use flask::{Class, Sid, perm};
use landlock::AccessFs;
use mediation::{
    cache::AccessRequest,
    call::{Answer, Asker, CallResult},
    decides,
    subject::proc_files,
    tracking::{begin_inside, begin_tracking},
};
use proc::path_of;
use refusals::{Why, refuse};
use rustix::{
    fs::{Access, AtFlags, accessat},
    io::{Errno, Result},
};
use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
};
use supervisor::{Name, resolve, script, walk};

decides! { pub(crate) asker: FileAsker<'_>,
    execve => execute(asker, (libc::AT_FDCWD, 0, 0)),
    execveat => execute(asker, (asker.caller.int(0), 1, asker.caller.int(4))),
}

/// Decides an exec: of a file by a directory, the number of the argument that is its path, and
/// flags; with the rights of the run inside that the process has asked for, if it has.
fn execute(asker: FileAsker<'_>, file: (i32, usize, i32)) -> CallResult {
    let Some(ssid) = asker.state.inside.entered_by(*asker)? else {
        return execute_as(asker, file, false);
    };
    if let Some(later) = begin_inside(*asker) {
        return later;
    }
    execute_as(FileAsker { asker: Asker { ssid, ..*asker }, ..asker }, file, true)
}

fn execute_as(
    asker: FileAsker<'_>,
    (dirfd, n, flags): (i32, usize, i32),
    enters_inside: bool,
) -> CallResult {
    let path = asker.caller.path(n)?;
    let file = found(asker, dirfd, &path, flags)
        .map_err(|errno| missing(dirfd, &path).ended(asker, errno).errno)?;
    let seen = Seen::of(*asker, file.as_fd())?;
    if !is_executable(asker, &seen, &file) {
        return Err(not_executable(asker, &seen, &file)?);
    }
    if !is_readable(asker, &file) {
        return Err(asker.refuse(&unreadable(&path)));
    }
    remark_privileged(asker, &file)?;
    match new_domain(asker, &seen)? {
        // It would fail where the policy of whoever asked for the run inside says.
        Some(_) if enters_inside || asker.is_inside() => Err(asker.refuse(&of_a_domain(&path))),
        Some(domain) => enter(asker, (&seen, &file), domain, &path),
        None => stay(asker, &seen, file, enters_inside),
    }
}

/// Executes a file that leads to `domain`.
fn enter(
    asker: FileAsker<'_>,
    (seen, file): (&Seen, &OwnedFd),
    domain: Sid,
    path: &Path,
) -> CallResult {
    let sid = seen.label.sid;
    let enters = entered(&*asker.state.server, asker.ssid, sid) == Ok(Some(domain));
    if enters && let Some(later) = begin_tracking(*asker) {
        return later.map_err(|_| refuse(*asker, file, Why::Alike));
    }
    seen.allow(*asker, perm::file::EXECUTE, file)?;
    // Never in the caller's domain instead, whatever else policy grants.
    allow_domain(asker, seen, domain, path)?;
    if asker.state.subjects.policy_has_one_domain() {
        // The filter and the envelope were made for one domain.
        return Err(refuse(*asker, file, Why::OneDomain));
    }
    verify::enter(*asker, seen, file, domain)
}

/// Executes a file that leads to no other domain.
fn stay(asker: FileAsker<'_>, seen: &Seen, file: OwnedFd, enters_inside: bool) -> CallResult {
    seen.allow(*asker, perm::file::EXECUTE | perm::file::EXECUTE_NO_TRANS, &file)?;
    // What lies too deep for a path lies in what is there.
    let path = path_of(&asker.state.targets.tree, &file);
    if path.is_ok_and(|path| asker.state.inside.was_missing(&path)) {
        return Err(refuse(*asker, &file, Why::Missing));
    }
    if enters_inside {
        return verify::enter_inside(*asker, seen, &file);
    }
    if asker.exact().contains(AccessFs::Execute) {
        // The envelope refuses to execute exactly what policy refuses, and the label stays.
        allow_interpreters(asker, file)?;
        return Ok(Answer::Continue);
    }
    verify::stay(*asker, seen, &file)
}

/// What is said of a file that cannot be executed.
fn not_executable(asker: FileAsker<'_>, seen: &Seen, file: &OwnedFd) -> Result<Errno> {
    if stays_plain(*asker, file)? {
        let object = path_of(&asker.state.targets.tree, file)?.to_string_lossy().into_owned();
        return Ok(asker.refuse(&memory(object)));
    }
    // Not a matter of policy: it could not be executed without it either.
    seen.allow(*asker, perm::file::GETATTR, file)?;
    Ok(if seen.class == Class::LnkFile { Errno::LOOP } else { Errno::ACCESS })
}

/// Asks about the interpreters of a script, which the kernel executes by their names: the envelope
/// refuses them without a record.
fn allow_interpreters(asker: FileAsker<'_>, mut file: OwnedFd) -> Result<()> {
    // As many as the kernel tries (`exec_binprm`).
    const MOST: usize = 5;
    for _ in 0..MOST {
        let start = script::start(&asker.state.targets.tree, &file);
        let Some(path) = start.and_then(|start| script::interpreter(&start)) else { break };
        file = match found(asker, libc::AT_FDCWD, &path, 0) {
            Ok(file) => file,
            // What is not there, the kernel says; what the view leaves out, the record does.
            Err(errno) => {
                let ended = missing(libc::AT_FDCWD, &path).ended(asker, errno);
                // Whether the script may be executed at all, the kernel says before.
                let is_said = ended.refused || ended.errno != errno;
                return if is_said { Err(ended.errno) } else { Ok(()) };
            }
        };
        let seen = Seen::of(*asker, file.as_fd())?;
        if !is_executable(asker, &seen, &file) {
            break;
        }
        seen.allow(*asker, perm::file::EXECUTE | perm::file::EXECUTE_NO_TRANS, &file)?;
    }
    Ok(())
}

/// The refusal to execute memory, which was made as what cannot be executed.
fn memory(object: String) -> Refusal {
    Refusal {
        errno: Errno::ACCESS,
        by: "the file object manager",
        tclass: Class::File.name(),
        missing: "execute",
        object,
        reason: "it is memory, which lies below no directory that the profile grants executing in",
        instead: "write the program to a file below what files.exec grants; files.exec = [\"/**\"] would grant memory with \
                  everything else",
    }
}

/// The refusal to execute a program that has a domain of its own in a run inside.
fn of_a_domain(path: &Path) -> Refusal {
    Refusal {
        errno: Errno::ACCESS,
        by: "the process object manager",
        tclass: Class::Process.name(),
        missing: "transition",
        object: path.to_string_lossy().into_owned(),
        reason: "a run inside stays in the domain of whoever asks for it, and this program leads to another",
        instead: "start it outside of the run inside, or begin that with another program, such as env(1) or a shell",
    }
}

/// The refusal of a program that could not be looked into.
fn unreadable(path: &Path) -> Refusal {
    Refusal {
        errno: Errno::ACCESS,
        by: "the process object manager",
        tclass: Class::File.name(),
        missing: "execute",
        object: path.to_string_lossy().into_owned(),
        reason: "you may execute it and not read it, so the kernel lets nobody of yours see what it passes to its calls, and \
                 none of them could be decided",
        instead: "have its owner make it readable (chmod +r), or use a copy of your own",
    }
}

/// Notes a program that would get rights of its own, were this not a sandbox. What root lacks is on
/// record by itself. Programs with a group of their own often do without, so only the command of
/// the run is spoken of.
fn remark_privileged(asker: FileAsker<'_>, file: &OwnedFd) -> Result<()> {
    let stat = rustix::fs::fstat(file)?;
    let (own, own_group) = asker.state.on_behalf.ids;
    if own == 0 {
        return Ok(());
    }
    let sets = |bit| stat.st_mode & bit != 0;
    // Without the right to execute, the bit is about locks.
    let sets_group = sets(libc::S_ISGID) && sets(libc::S_IXGRP) && stat.st_gid != own_group;
    let what = if sets(libc::S_ISUID) && stat.st_uid != own {
        "set-user-ID"
    } else if sets_group && asker.caller.call.tid == asker.state.records.remarks.command {
        "set-group-ID"
    } else if has_capabilities(asker, file) {
        "a program with capabilities of its own"
    } else {
        return Ok(());
    };
    asker.state.records.remarks.privileged(&path_of(&asker.state.targets.tree, file)?, what);
    Ok(())
}

/// Whether a file gives capabilities to who executes it (`setcap`). Those that mean nothing in this
/// user namespace are there, too (`cap_inode_getsecurity` of `security/commoncap.c`).
fn has_capabilities(asker: FileAsker<'_>, file: &OwnedFd) -> bool {
    let path = asker.state.on_behalf.fs_state.path_of(file);
    let found = rustix::fs::getxattr(path, "security.capability", &mut [0_u8; 0]);
    matches!(found, Ok(_) | Err(Errno::OVERFLOW))
}

/// Whether this user could execute a file, as far as its kind and its mode say.
fn is_executable(asker: FileAsker<'_>, seen: &Seen, file: &OwnedFd) -> bool {
    let own_fds = &asker.state.targets.tree.own_fds;
    let name = file.as_raw_fd().to_string();
    let access = || accessat(own_fds, name, Access::EXEC_OK, AtFlags::empty());
    seen.class == Class::File && access().is_ok()
}

/// Whether this user could read a program. Into one that nobody may read, the kernel lets only root
/// look.
fn is_readable(asker: FileAsker<'_>, file: &OwnedFd) -> bool {
    let own_fds = &asker.state.targets.tree.own_fds;
    let name = file.as_raw_fd().to_string();
    asker.state.on_behalf.ids.0 == 0
        || accessat(own_fds, name, Access::READ_OK, AtFlags::empty()) != Err(Errno::ACCESS)
}

fn missing(dirfd: i32, path: &Path) -> MissingName<'_> {
    MissingName::of(Name { dirfd, path, follow: true }, perm::file::EXECUTE)
}

fn found(asker: FileAsker<'_>, dirfd: i32, path: &Path, flags: i32) -> Result<OwnedFd> {
    if flags & !(libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW) != 0 {
        // AT_EXECVE_CHECK, which only asks (Linux 6.14), is unknown as before.
        return Err(Errno::INVAL);
    }
    if path.as_os_str().is_empty() {
        // The kernel looks at an empty name before it looks at the descriptor.
        let by_descriptor = flags & libc::AT_EMPTY_PATH != 0;
        return if by_descriptor { asker.caller.base(dirfd) } else { Err(Errno::NOENT) };
    }
    let name = Name { dirfd, path, follow: flags & libc::AT_SYMLINK_NOFOLLOW == 0 };
    match resolve(asker.caller, name) {
        // In its way is a link of `/proc`, or what the program would find there.
        Err(Errno::LOOP | Errno::NOENT) => {}
        // What the monitor found there is its own.
        Ok(object) if asker.state.targets.tree.is_proc(object.as_fd())? => {}
        found => return found,
    }
    let found = walk(asker.caller, name)?;
    proc_files::allow(*asker, &found)?;
    found.existing()
}

/// The domain that policy computes for this exec; `None` when it is the caller's own.
fn new_domain(asker: FileAsker<'_>, seen: &Seen) -> Result<Option<Sid>> {
    if !asker.is_inside() && !asker.state.policy.load().plan.moves {
        return Ok(None);
    }
    computed(&*asker.state.server, asker.ssid, seen.label.sid).map_err(|_| Errno::ACCESS)
}

fn allow_domain(asker: FileAsker<'_>, seen: &Seen, domain: Sid, path: &Path) -> Result<()> {
    let object = || path.to_string_lossy().into_owned();
    let hint = Hint::default();
    let transition = AccessRequest {
        tsid: domain,
        tclass: Class::Process,
        requested: perm::process::TRANSITION,
        hint: &hint,
        object: &object,
    };
    asker.ask(&asker.state.caches.process, &transition)?;
    let entering = Asker { ssid: domain, ..*asker };
    let entrypoint = AccessRequest {
        tsid: seen.label.sid,
        tclass: Class::File,
        requested: perm::file::ENTRYPOINT,
        hint: &hint,
        object: &object,
    };
    Ok(entering.ask(&asker.state.caches.process, &entrypoint)?)
}
