//! The floor: what one seccomp notification takes when nobody decides anything. No monitor that is built on
//! notifications answers faster.

use crate::{
    operation::{self, SYSTEM_FILE, Timing, open, stat},
    sys,
};
use rustix::{
    fs::OFlags,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
    process::{WaitOptions, waitpid},
    thread::{sched_yield, set_no_new_privs},
};
use std::{
    fs::File,
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

/// By this call the measured process says that it is done.
const DONE: i64 = libc::SYS_sched_yield;

/// Calls that wait for an answer.
const NOTIFIED: [i64; 3] = [libc::SYS_openat, libc::SYS_newfstatat, DONE];

/// How the calls are answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// The kernel goes on with the call.
    Continue,
    /// The notifier opens the file and hands its descriptor over.
    Descriptor,
}

/// A way to answer, and whether the processor is handed over at once.
struct Way {
    answer: Answer,
    synchronous: bool,
    /// Name of the timing of open and close.
    open: &'static str,
    /// Name of the timing of stat, where that makes sense.
    stat: Option<&'static str>,
}

const OPEN_CONTINUED: &str = "open+close, notified, continued";
const OPEN_ANSWERED: &str = "open+close, notified, answered with a descriptor";

/// The timing that `operation` cannot be faster than once it is mediated: a read of a system file continues,
/// a file of the workspace is opened by the monitor.
pub(crate) fn below(operation: &str) -> Option<&'static str> {
    match operation {
        operation::OPEN_SYSTEM => Some(OPEN_CONTINUED),
        operation::OPEN_TO_READ | operation::OPEN_TO_WRITE => Some(OPEN_ANSWERED),
        _ => None,
    }
}

const WAYS: [Way; 3] = [
    Way {
        answer: Answer::Continue,
        synchronous: true,
        open: OPEN_CONTINUED,
        stat: Some("stat, notified, continued"),
    },
    Way {
        answer: Answer::Continue,
        synchronous: false,
        open: "open+close, notified without synchronous wake-up, continued",
        stat: None,
    },
    Way { answer: Answer::Descriptor, synchronous: true, open: OPEN_ANSWERED, stat: None },
];

/// Measures each way. Meant for a process with one thread.
pub(crate) fn measure_all() -> Vec<Timing> {
    WAYS.iter().flat_map(|way| measure(way).unwrap_or_else(|error| refused(way, &error))).collect()
}

fn refused(way: &Way, error: &io::Error) -> Vec<Timing> {
    vec![Timing { name: way.open.to_owned(), ns: None, error: Some(error.to_string()) }]
}

/// Lets a child perform the operations while this process answers its notifications.
fn measure(way: &Way) -> io::Result<Vec<Timing>> {
    let (here, there) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let child = sys::fork(|| match perform(way, &there) {
        Ok(()) => 0,
        Err(_) => 1,
    })?;
    drop(there);
    let answered = receive_listener(&here).and_then(|listener| {
        if way.synchronous {
            sys::wake_synchronously(listener.as_fd())?;
        }
        answer_all(way.answer, listener.as_fd())
    });
    let mut timings = String::new();
    // Only the answer to DONE lets the child write and leave; without it, it is gone or never waited.
    let read = answered.and_then(|()| File::from(here).read_to_string(&mut timings));
    waitpid(Some(child), WaitOptions::empty())?;
    read?;
    Ok(serde_json::from_str(&timings)?)
}

/// What the child does: installs the filter, hands over its other end, measures, reports.
fn perform(way: &Way, socket: &OwnedFd) -> io::Result<()> {
    let mut output = File::from(socket.try_clone()?);
    set_no_new_privs(true)?;
    let listener = sys::notify_on(&NOTIFIED)?;
    send_listener(socket, &listener)?;
    // Were it kept, this process would wait for itself if the notifier were gone.
    drop(listener);
    let path = Path::new(SYSTEM_FILE);
    let mut timings = vec![Timing::of(way.open, || open(path, OFlags::RDONLY))];
    timings.extend(way.stat.map(|name| Timing::of(name, || stat(path))));
    sched_yield();
    output.write_all(serde_json::to_string(&timings)?.as_bytes())
}

fn answer_all(answer: Answer, listener: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        let notification = match sys::receive(listener) {
            Ok(notification) => notification,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if answer == Answer::Descriptor && notification.number == libc::SYS_openat {
            let file = File::open(SYSTEM_FILE)?;
            sys::answer_with(listener, notification.id, file.as_fd())?;
        } else {
            sys::let_continue(listener, notification.id)?;
        }
        if notification.number == DONE {
            return Ok(());
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_answering_has_a_time_or_a_reason() {
        for timing in measure_all() {
            assert!(timing.ns.is_some() != timing.error.is_some(), "{timing:?}");
            assert!(timing.ns.is_none_or(|ns| ns > 100.0), "{timing:?}");
        }
    }
}
