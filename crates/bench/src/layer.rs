//! The layers below the monitor, laid one by one around a command: what each costs by itself.
//!
//! Dewar lays all of them at once, and decides on top. Here a bounding rule set of Landlock like
//! that of the profile `workspace`, a filter as long as Dewar's that lets every call run, and a
//! notifier that lets every call continue.

use crate::sys;
use landlock::{
    ABI, Access as _, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
    process::{WaitOptions, waitpid},
    thread::set_no_new_privs,
};
use std::{
    ffi::OsString,
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
};

/// What may be read and executed; the workspace and temporary files may be written, too.
const READ: [&str; 9] = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/opt", "/dev"];

/// Comparisons of the filter: about as many as Dewar's has on the way of a call that runs.
const COMPARISONS: i64 = 40;

/// Calls that wait for the notifier: those that mode `all` decides in a build.
const NOTIFIED: [i64; 8] = [
    libc::SYS_openat,
    libc::SYS_execve,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_connect,
    libc::SYS_bind,
];

/// Which layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// A rule set of Landlock.
    pub envelope: bool,
    /// A filter.
    pub filter: bool,
    /// Notifications that are answered at once.
    pub notified: bool,
}

/// Lays them and becomes the command, or waits for it and returns its status. Meant for a process
/// with one thread.
///
/// # Errors
///
/// What the system refuses.
pub fn run(layers: Layers, workspace: &Path, command: &[OsString]) -> io::Result<u8> {
    if layers.envelope {
        envelop(workspace).map_err(io::Error::other)?;
    }
    if layers.filter {
        set_no_new_privs(true)?;
        // No call has these numbers.
        sys::pass_all(&(1000..1000 + COMPARISONS).collect::<Vec<i64>>())?;
    }
    if layers.notified { notified(command) } else { Err(become_(command)) }
}

fn become_(command: &[OsString]) -> io::Error {
    match command.split_first() {
        Some((program, arguments)) => Command::new(program).args(arguments).exec(),
        None => io::Error::other("the command is empty"),
    }
}

fn envelop(workspace: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let abi = ABI::V5;
    let all = AccessFs::from_all(abi);
    let mut rules = Ruleset::default().handle_access(all)?.create()?;
    let writable = [workspace.to_owned(), PathBuf::from("/tmp"), PathBuf::from("/dev")];
    for path in READ.iter().map(PathBuf::from).filter(|path| path.exists()) {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, AccessFs::from_read(abi)))?;
    }
    for path in writable {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, all))?;
    }
    rules.restrict_self()?;
    Ok(())
}

/// Runs the command while this process lets each of its notified calls continue.
fn notified(command: &[OsString]) -> io::Result<u8> {
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let child = sys::fork(|| {
        let listen = || -> io::Result<()> {
            set_no_new_privs(true)?;
            let listener = sys::notify_on(&NOTIFIED)?;
            send_listener(&there, &listener)
        };
        if listen().is_ok() {
            let _ = become_(command);
        }
        127
    })?;
    drop(there);
    let listener = receive_listener(&here)?;
    drop(here);
    sys::wake_synchronously(listener.as_fd())?;
    loop {
        let mut polled = [PollFd::new(&listener, PollFlags::IN)];
        match poll(&mut polled, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => drop(other?),
        }
        if !polled[0].revents().contains(PollFlags::IN) {
            break;
        }
        match sys::receive(listener.as_fd()) {
            // Whoever waited may be gone by now.
            Ok(notification) => drop(sys::let_continue(listener.as_fd(), notification.id)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let status = waitpid(Some(child), WaitOptions::empty())?;
    let code = status.and_then(|(_, status)| status.exit_status()).unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(1))
}

fn send_listener(socket: &OwnedFd, listener: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [listener.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

fn receive_listener(socket: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    ancillary
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        })
        .ok_or_else(|| io::Error::other("the filter was refused"))
}
