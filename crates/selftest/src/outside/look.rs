//! Judges that many cases share.

use crate::{
    case::{Judge, Process},
    sys,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::{
    fs,
    os::fd::{AsFd as _, OwnedFd},
    path::{Path, PathBuf},
};

/// The word has come out: on standard output, or in a file of the workspace.
pub(crate) fn came_out(word: String, what: &'static str) -> Judge {
    Judge::after(move |ran| ran.out.contains(&word).then(|| what.to_owned()))
}

/// Something is there that was not.
pub(crate) fn is_there(path: PathBuf, what: &'static str) -> Judge {
    Judge::after(move |_| path.symlink_metadata().is_ok().then(|| what.to_owned()))
}

/// A file holds the word.
pub(crate) fn holds_word(path: PathBuf, word: String, what: &'static str) -> Judge {
    Judge::after(move |_| has(&path, &word).then(|| what.to_owned()))
}

/// Whether a file holds a word.
pub(crate) fn has(path: &Path, word: &str) -> bool {
    fs::read(path).is_ok_and(|it| String::from_utf8_lossy(&it).contains(word))
}

/// The attack has something open whose name in `/proc` begins so.
pub(crate) fn has_open(name: &'static str, what: &'static str) -> Judge {
    Judge::during(move |processes| {
        let attack = processes.iter().filter(|process| process.is_attack);
        let mut open = attack.flat_map(descriptors);
        open.any(|(_, link)| link.starts_with(name)).then(|| what.to_owned())
    })
}

/// The attack has a socket of this kind.
pub(crate) fn has_socket(
    domain: i32,
    kind: Option<i32>,
    protocol: Option<i32>,
    what: &'static str,
) -> Judge {
    Judge::during(move |processes| {
        let attack = processes.iter().filter(|process| process.is_attack);
        let mut sockets = attack.flat_map(|process| {
            let sockets = descriptors(process).filter(|(_, link)| link.starts_with("socket:"));
            sockets.filter_map(|(fd, _)| borrow(process.pid, fd)).collect::<Vec<_>>()
        });
        let is = |socket: &OwnedFd, option, want: i32| {
            sys::option(socket.as_fd(), libc::SOL_SOCKET, option).is_ok_and(|it| it == want)
        };
        let found = sockets.any(|socket| {
            is(&socket, libc::SO_DOMAIN, domain)
                && kind.is_none_or(|kind| is(&socket, libc::SO_TYPE, kind))
                && protocol.is_none_or(|protocol| is(&socket, libc::SO_PROTOCOL, protocol))
        });
        found.then(|| what.to_owned())
    })
}

/// What a process has open, by number.
fn descriptors(process: &Process) -> impl Iterator<Item = (i32, String)> + use<> {
    let place = fs::read_dir(format!("/proc/{}/fd", process.pid));
    place.into_iter().flatten().flatten().filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        Some((number, fs::read_link(entry.path()).ok()?.display().to_string()))
    })
}

/// What a process has open, as `/proc` names it.
pub(crate) fn open_files(pid: i32) -> Vec<String> {
    let process = Process { pid, exe: String::new(), is_attack: true };
    descriptors(&process).map(|(_, link)| link).collect()
}

/// The sockets of a process, as `/proc` names them.
pub(crate) fn sockets(pid: i32) -> Vec<String> {
    open_files(pid).into_iter().filter(|it| it.starts_with("socket:")).collect()
}

/// A copy of another process's descriptor.
fn borrow(pid: i32, fd: i32) -> Option<OwnedFd> {
    let process = rustix::process::Pid::from_raw(pid)?;
    let process = pidfd_open(process, PidfdFlags::empty()).ok()?;
    pidfd_getfd(process, fd, PidfdGetfdFlags::empty()).ok()
}

/// The namespace of a process, as `/proc` names it.
pub(crate) fn namespace(pid: i32, kind: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?;
    Some(link.display().to_string())
}
