//! What init and the command process tell the monitor: fixed-size messages over socket pairs,
//! one pair each, so that the end of a pair is the end of that process.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    sockopt,
};
use rustix::process::Pid;

/// What a child process was doing when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Doing {
    Prepare = 1,
    JoinCgroup,
    CgroupNamespace,
    MountProc,
    FixSettings,
    Loopback,
    Capabilities,
    Fork,
    Limits,
    Envelope,
    Descriptors,
    Filter,
    Execute,
    Keep,
    Namespaces,
}

impl Doing {
    const ALL: [Self; 15] = [
        Self::Prepare,
        Self::JoinCgroup,
        Self::CgroupNamespace,
        Self::MountProc,
        Self::FixSettings,
        Self::Loopback,
        Self::Capabilities,
        Self::Fork,
        Self::Limits,
        Self::Envelope,
        Self::Descriptors,
        Self::Filter,
        Self::Execute,
        Self::Keep,
        Self::Namespaces,
    ];

    /// What could not be done, for a message that starts with "cannot".
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Prepare => "prepare init",
            Self::JoinCgroup => "join the cgroup that holds the limits",
            Self::CgroupNamespace => "create a cgroup namespace",
            Self::MountProc => "mount a new /proc for the pid namespace",
            Self::FixSettings => "make the kernel's settings read-only",
            Self::Loopback => "bring up the loopback interface",
            Self::Capabilities => "drop capabilities",
            Self::Fork => "create the command's process",
            Self::Limits => "set the resource limits",
            Self::Envelope => "put on the Landlock envelope",
            Self::Descriptors => "close descriptors",
            Self::Filter => "install the seccomp filter",
            Self::Execute => "execute the command",
            Self::Keep => "create the process that keeps the sandbox together",
            Self::Namespaces => "create new namespaces",
        }
    }
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The filter is installed; this descriptor of the sender is its listener. The command waits
    /// for an answer.
    Ready(RawFd),
    /// A step failed, and the sender ends.
    Failed(Doing, Errno),
    /// The command stopped by this signal.
    Stopped(i32),
    /// The command exited with this status.
    Exited(i32),
    /// The command was killed by this signal.
    Killed(i32),
    /// The answer to a nudge: all that had happened before it has been reported, and the command
    /// is `stopped`, not continued since.
    Current { stopped: bool },
    /// The subreaper stands by; init has this number.
    Kept(Pid),
}

const SIZE: usize = 12;

impl Report {
    fn encode(self) -> [u8; SIZE] {
        let (tag, first, second) = match self {
            Self::Ready(listener) => (1, listener, 0),
            Self::Failed(doing, errno) => (2, doing as i32, errno.raw_os_error()),
            Self::Stopped(signal) => (3, signal, 0),
            Self::Exited(status) => (4, status, 0),
            Self::Killed(signal) => (5, signal, 0),
            Self::Current { stopped } => (6, i32::from(stopped), 0),
            Self::Kept(init) => (7, init.as_raw_pid(), 0),
        };
        let mut bytes = [0; SIZE];
        for (place, value) in bytes.chunks_exact_mut(4).zip([tag, first, second]) {
            place.copy_from_slice(&i32::to_ne_bytes(value));
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut values = bytes.chunks_exact(4).map(|b| b.try_into().map(i32::from_ne_bytes));
        let (tag, first, second) =
            (values.next()?.ok()?, values.next()?.ok()?, values.next()?.ok()?);
        Some(match tag {
            1 => Self::Ready(first),
            2 => {
                let doing = Doing::ALL.into_iter().find(|doing| *doing as i32 == first)?;
                Self::Failed(doing, Errno::from_raw_os_error(second))
            }
            3 => Self::Stopped(first),
            4 => Self::Exited(first),
            5 => Self::Killed(first),
            6 => Self::Current { stopped: first != 0 },
            7 => Self::Kept(Pid::from_raw(first)?),
            _ => return None,
        })
    }
}

/// A received message.
pub(super) struct Received {
    pub(super) report: Report,
    /// The sender, in the receiver's pid namespace.
    pub(super) sender: Option<Pid>,
    /// What came along.
    pub(super) descriptor: Option<OwnedFd>,
}

/// One end of a pair.
pub(super) struct Wire(OwnedFd);

impl Wire {
    /// Two connected ends, the monitor's first.
    pub(super) fn pair() -> Result<(Self, Self), Errno> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        // The kernel then says who sent a message, in terms of the receiver's pid namespace.
        sockopt::set_socket_passcred(&ours, true)?;
        Ok((Self(ours), Self(theirs)))
    }

    /// Sends `report`. No filter traps a send without an address.
    pub(super) fn send(&self, report: Report) -> Result<(), Errno> {
        rustix::net::send(&self.0, &report.encode(), SendFlags::NOSIGNAL).map(drop)
    }

    /// Sends `report` with a descriptor, where no filter is.
    pub(super) fn send_with(&self, report: Report, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [fd];
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let bytes = report.encode();
        let parts = [IoSlice::new(&bytes)];
        sendmsg(&self.0, &parts, &mut control, SendFlags::NOSIGNAL).map(drop)
    }

    /// The next message; `None` when the other side is gone (or sent no message of ours).
    pub(super) fn receive(&self) -> Result<Option<Received>, Errno> {
        let mut bytes = [0; SIZE];
        let mut space =
            [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1), ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&self.0, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)
        });
        let message = match received {
            // Gone, and what we had sent it was never read.
            Err(Errno::CONNRESET) => return Ok(None),
            received => received?,
        };
        let (mut sender, mut descriptor) = (None, None);
        for message in control.drain() {
            match message {
                RecvAncillaryMessage::ScmCredentials(credentials) => sender = Some(credentials.pid),
                RecvAncillaryMessage::ScmRights(mut descriptors) => descriptor = descriptors.next(),
                _ => {}
            }
        }
        let report = Report::decode(&bytes[..message.bytes]);
        Ok(report.map(|report| Received { report, sender, descriptor }))
    }

    /// Waits until the other side [`nudge`](Self::nudge)s; an error if it is gone.
    pub(super) fn wait(&self) -> Result<(), Errno> {
        let mut byte = [0];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut byte))? {
            0 => Err(Errno::PIPE),
            _ => Ok(()),
        }
    }

    /// Lets the other side, which waits, go on.
    pub(super) fn nudge(&self) -> Result<(), Errno> {
        rustix::net::send(&self.0, &[1], SendFlags::NOSIGNAL).map(drop)
    }

    /// Tells the other side that nobody listens any more.
    pub(super) fn shut(&self) {
        // A side that is gone already is as good.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_arrives_as_it_was_sent() {
        let (ours, theirs) = Wire::pair().expect("a socket pair");
        let failures = Doing::ALL.map(|doing| Report::Failed(doing, Errno::PERM));
        let others = [
            Report::Ready(7),
            Report::Stopped(19),
            Report::Exited(255),
            Report::Killed(9),
            Report::Current { stopped: true },
            Report::Current { stopped: false },
            Report::Kept(rustix::process::getpid()),
        ];
        for report in failures.into_iter().chain(others) {
            theirs.send(report).expect("send");
            let received = ours.receive().expect("receive").expect("a report");
            assert_eq!(received.report, report);
            assert_eq!(received.sender, Some(rustix::process::getpid()));
        }
    }

    #[test]
    fn the_end_of_the_other_side_is_no_report() {
        let (ours, theirs) = Wire::pair().expect("a socket pair");
        drop(theirs);
        assert!(ours.receive().expect("receive").is_none());
        assert_eq!(ours.wait(), Err(Errno::PIPE));
        let (ours, theirs) = Wire::pair().expect("a socket pair");
        ours.nudge().expect("send");
        drop(theirs);
        assert!(ours.receive().expect("receive").is_none());
    }
}
