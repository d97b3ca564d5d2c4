//! Messages through shared memory. The socket beside it carries descriptors, wakes who has slept
//! for long, and tells when the other side is gone.

use crate::{
    body::Body,
    deadline::Deadline,
    head::{Head, Wanted},
    link::{LinkError, Message},
    patience::Patience,
    region::{Lane, Sleep},
    socket::Socket,
    sys::Shared,
};
use rustix::{
    io::Errno,
    thread::futex::{self, Flags},
};
use std::{os::fd::OwnedFd, time::Duration};

/// How long an end waits on the futex, which nobody wakes if the other side dies; then it waits on
/// the socket.
const FUTEX_WAIT: Duration = Duration::from_millis(20);

/// How often a message may change while it is copied before the clock is asked.
const TRIES: u64 = 4;

/// Packets taken from the socket before anything else is looked at. An honest side rings once for
/// each message.
const MOST_PACKETS: u32 = 256;

/// Number of the packets that only wake up.
const BELL: u32 = 0;

/// Which of the two ends this is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// One end of a connection.
pub(crate) struct Memory {
    shared: Shared,
    socket: Socket,
    end: End,
    patience: Patience,
    /// Descriptors that have come before their message was looked at, with its number.
    early: Option<(u32, Vec<OwnedFd>)>,
    /// Where packets are received.
    packet: Body,
}

impl Memory {
    pub(crate) fn new(shared: Shared, socket: Socket, end: End) -> Self {
        let (patience, packet) = (Patience::default(), Body::default());
        Self { shared, socket, end, patience, early: None, packet }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    fn outgoing(&self) -> &Lane {
        match self.end {
            End::Client => &self.shared.request,
            End::Server => &self.shared.reply,
        }
    }

    fn incoming(&self) -> &Lane {
        match self.end {
            End::Client => &self.shared.reply,
            End::Server => &self.shared.request,
        }
    }

    pub(crate) fn send(&mut self, message: &Message<'_>) -> Result<(), LinkError> {
        if !message.descriptors.is_empty() {
            self.socket.try_send(&Message { body: &[], ..*message })?;
        }
        match self.outgoing().write(message.head(), message.body) {
            Sleep::Awake => Ok(()),
            Sleep::Futex => {
                futex::wake(self.outgoing().futex(), Flags::empty(), 1)?;
                Ok(())
            }
            Sleep::Socket => {
                let bell = Message { seq: BELL, word: 0, body: &[], descriptors: &[] };
                match self.socket.try_send(&bell) {
                    // So many packets lie there that the other side wakes up anyhow.
                    Err(LinkError::TimedOut) => Ok(()),
                    sent => sent,
                }
            }
        }
    }

    pub(crate) fn receive(
        &mut self,
        wanted: Wanted,
        body: &mut Body,
        descriptors: &mut Vec<OwnedFd>,
        until: &Deadline,
    ) -> Result<Head, LinkError> {
        for tries in 0_u64.. {
            if let Some(head) = self.read(wanted, body)? {
                *descriptors = self.descriptors_of(head)?;
                return Ok(head);
            }
            // Who writes without end would else be read without end.
            if tries > TRIES && until.is_over() {
                break;
            }
            self.wait(wanted, until)?;
        }
        Err(LinkError::TimedOut)
    }

    pub(crate) fn given_up(&self, seq: u32) -> bool {
        self.incoming().seq() != seq || self.socket.is_gone()
    }

    fn read(&self, wanted: Wanted, body: &mut Body) -> Result<Option<Head>, LinkError> {
        let read = self.incoming().read(wanted, body);
        read.map_err(|_| LinkError::Broken("a message is longer than a message can be"))
    }

    /// Waits until the lane may hold a wanted message: spinning, then on the futex, then on the
    /// socket.
    fn wait(&mut self, wanted: Wanted, until: &Deadline) -> Result<(), LinkError> {
        let lane = match self.end {
            End::Client => &self.shared.reply,
            End::Server => &self.shared.request,
        };
        if self.patience.spin(|| wanted.takes(lane.seq())) {
            return Ok(());
        }
        if wait_on_futex(lane, wanted, &until.at_most(FUTEX_WAIT))? {
            return Ok(());
        }
        self.wait_on_socket(wanted, until)
    }

    fn wait_on_socket(&mut self, wanted: Wanted, until: &Deadline) -> Result<(), LinkError> {
        loop {
            self.incoming().sleep(Sleep::Socket);
            let waited =
                if wanted.takes(self.incoming().seq()) { Ok(()) } else { self.socket.wait(until) };
            self.incoming().sleep(Sleep::Awake);
            waited?;
            // In this order: what the other side has said before it left still counts.
            let drained = self.drain();
            if wanted.takes(self.incoming().seq()) {
                return Ok(());
            }
            drained?;
            // Who rings without end would else be listened to without end.
            if until.is_over() {
                return Err(LinkError::TimedOut);
            }
        }
    }

    /// Takes what lies on the socket, up to a bound that nobody needs: bells, which have done their
    /// work, and descriptors, which are kept.
    fn drain(&mut self) -> Result<(), LinkError> {
        for _ in 0..MOST_PACKETS {
            match self.socket.try_receive(&mut self.packet) {
                Ok((head, packet)) if head.seq != BELL => {
                    self.early = Some((head.seq, packet.descriptors));
                }
                Ok(_) => {}
                Err(LinkError::TimedOut) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The descriptors that were sent before the message was written.
    fn descriptors_of(&mut self, head: Head) -> Result<Vec<OwnedFd>, LinkError> {
        if head.descriptors == 0 {
            return Ok(Vec::new());
        }
        if self.early.as_ref().is_none_or(|early| early.0 != head.seq) {
            match self.drain() {
                Ok(()) | Err(LinkError::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        let early = self.early.take();
        early
            .filter(|(seq, found)| *seq == head.seq && found.len() == head.descriptors as usize)
            .map(|(_, found)| found)
            .ok_or(LinkError::Broken("descriptors of a message are missing"))
    }
}

/// Whether something wanted has come to `lane` before the deadline.
fn wait_on_futex(lane: &Lane, wanted: Wanted, until: &Deadline) -> Result<bool, LinkError> {
    lane.sleep(Sleep::Futex);
    let waited = loop {
        let seq = lane.seq();
        if wanted.takes(seq) {
            break Ok(true);
        }
        if until.is_over() {
            break Ok(false);
        }
        match futex::wait(lane.futex(), Flags::empty(), seq, until.timespec().as_ref()) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
            Err(error) => break Err(error.into()),
        }
    };
    lane.sleep(Sleep::Awake);
    waited
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;
    use rustix::net::{
        AddressFamily, SocketFlags, SocketType, socketpair, sockopt::set_socket_send_buffer_size,
    };
    use std::{os::fd::AsFd as _, sync::Arc};

    #[test]
    fn a_flood_of_packets_is_listened_to_in_part_before_the_clock_is_asked() {
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
        let (ours, theirs) = socketpair(family, SocketType::SEQPACKET, flags, None).unwrap();
        set_socket_send_buffer_size(&theirs, 1 << 20).unwrap();
        let flood = Socket::new(Arc::new(theirs), None);
        let bell = Message { seq: BELL, word: 0, body: &[], descriptors: &[] };
        let sent = (0..10_000).take_while(|_| flood.try_send(&bell).is_ok()).count();
        assert!(sent > MOST_PACKETS as usize, "only {sent} find room");
        let shared = Shared::map(sys::new_memory().unwrap().as_fd()).unwrap();
        let mut end = Memory::new(shared, Socket::new(Arc::new(ours), None), End::Server);
        let (mut body, mut descriptors) = (Body::default(), Vec::new());
        let now = Deadline::after(Some(Duration::ZERO));
        let received = end.receive(Wanted::Not(0), &mut body, &mut descriptors, &now);
        assert!(matches!(received, Err(LinkError::TimedOut)));
        let left = (0..sent).take_while(|_| end.socket.try_receive(&mut body).is_ok()).count();
        assert_eq!(sent - left, MOST_PACKETS as usize);
    }
}
