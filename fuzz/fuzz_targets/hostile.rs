//! A process that speaks the protocol of ports by hand: any packets, any descriptors, any bytes in
//! the shared memory.

use ipc::{MAX_DESCRIPTORS, MAX_MESSAGE};
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};
use std::{
    fs::File,
    io::{IoSlice, IoSliceMut, Write as _},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::fs::FileExt as _,
    },
};

/// Bytes of a head: number, word, length, descriptors.
pub(crate) const HEAD: usize = 16;

/// Bytes of a lane: a head, data, and on a line of its own how its reader sleeps.
pub(crate) const LANE: u64 = (HEAD + MAX_MESSAGE).next_multiple_of(64) as u64 + 64;

/// More descriptors than a message may have.
const MOST_DESCRIPTORS: u8 = 20;

/// What lies in the sealed memory that is passed.
pub(crate) const SEALED: &[u8] = b"sealed";

/// What is done, as bytes.
pub(crate) struct Script<'a>(pub(crate) &'a [u8]);

/// A packet.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    /// The kind of each descriptor.
    pub(crate) descriptors: Vec<u8>,
}

/// One thing that it does.
pub(crate) enum Step {
    Packet(Packet),
    /// Writes to the memory.
    Write(u64, Vec<u8>),
    /// Lets the other side look.
    Look,
    /// Closes its way to the other side.
    Shutdown,
}

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes.to_vec()
    }

    /// Some lengths at the edges, and all that are short.
    fn len(&mut self) -> usize {
        match self.byte() {
            255 => MAX_MESSAGE,
            254 => MAX_MESSAGE + 1,
            253 => MAX_MESSAGE - 1,
            short => short.into(),
        }
    }

    fn head(&mut self, len: usize, descriptors: usize) -> Vec<u8> {
        let (seq, word) = (self.byte() % 8, self.byte() % 8);
        let head = [seq.into(), word.into(), len as u32, descriptors as u32];
        head.map(u32::to_ne_bytes).concat()
    }

    fn descriptors(&mut self) -> Vec<u8> {
        let count = self.byte() % MOST_DESCRIPTORS;
        (0..count).map(|_| self.byte() % 4).collect()
    }

    /// A packet whose head says what it is.
    fn honest_packet(&mut self) -> Packet {
        let (descriptors, len) = (self.descriptors(), self.len());
        let mut bytes = self.head(len, descriptors.len());
        let body = self.bytes(len);
        bytes.extend(&body);
        bytes.resize(HEAD + len, b'x');
        Packet { bytes, descriptors }
    }
}

impl Iterator for Script<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let (what, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(match what % 8 {
            0 => {
                let (descriptors, len) = (self.descriptors(), self.len());
                Step::Packet(Packet { bytes: self.bytes(len), descriptors })
            }
            1 => Step::Packet(self.honest_packet()),
            // A message in a lane, written from its back as the protocol wants it.
            2 => {
                let (lane, len) = (u64::from(self.byte() % 2), self.len());
                let message = self.head(len, 0);
                Step::Write(lane * LANE, [message, self.bytes(len)].concat())
            }
            // Words of a head, or how a reader sleeps.
            3 => {
                let (lane, word) = (u64::from(self.byte() % 2), u64::from(self.byte() % 5));
                let place = if word == 4 { LANE - 64 } else { word * 4 };
                Step::Write(lane * LANE + place, self.bytes(4))
            }
            4 => {
                let place = self.bytes(4).try_into().map_or(0, u32::from_le_bytes);
                let len = self.len();
                Step::Write(u64::from(place) % (2 * LANE), self.bytes(len))
            }
            5 if self.byte() == 0 => Step::Shutdown,
            _ => Step::Look,
        })
    }
}

/// Writes to the memory of a port, as far as it reaches.
pub(crate) fn scribble(memory: &File, place: u64, bytes: &[u8]) {
    let room = (2 * LANE).saturating_sub(place) as usize;
    memory.write_all_at(&bytes[..bytes.len().min(room)], place).expect("it can be written");
}

/// Memory as a service makes it.
pub(crate) fn memory() -> File {
    let memory = memfd_create(c"fuzz", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let memory = memory.expect("memory");
    ftruncate(&memory, 2 * LANE).expect("its size");
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&memory, seals).expect("sealed");
    memory.into()
}

/// A descriptor: of a file, of sealed memory, of memory that can change, of the memory of a port.
fn descriptor(kind: u8, shared: &File) -> OwnedFd {
    match kind {
        0 => File::open("/dev/null").expect("a file").into(),
        1 => server_port::sealed(SEALED).expect("memory"),
        2 => {
            let memory = memfd_create(c"fuzz", MemfdFlags::CLOEXEC).expect("memory");
            File::from(memory.try_clone().expect("a descriptor"))
                .write_all(SEALED)
                .expect("written");
            memory
        }
        _ => shared.try_clone().expect("a descriptor").into(),
    }
}

/// Sends a packet if there is room; whether there was.
pub(crate) fn send(socket: &OwnedFd, packet: &Packet, shared: &File) -> bool {
    let fds: Vec<OwnedFd> =
        packet.descriptors.iter().map(|kind| descriptor(*kind, shared)).collect();
    let fds: Vec<BorrowedFd<'_>> = fds.iter().map(|fd| fd.as_fd()).collect();
    let mut space =
        [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS as usize))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(&packet.bytes)], &mut ancillary, flags).is_ok()
}

/// The bytes of a packet that lies on the socket, and its descriptors.
pub(crate) fn receive(socket: &OwnedFd) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = vec![0; HEAD + MAX_MESSAGE];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags);
    let len = received.ok().map(|received| received.bytes).filter(|len| *len > 0)?;
    let descriptors = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
        _ => Vec::new(),
    });
    let descriptors = descriptors.collect();
    bytes.truncate(len);
    Some((bytes, descriptors))
}

/// A message, as whoever reads it must understand it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) seq: u32,
    pub(crate) word: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) descriptors: usize,
}

impl Packet {
    /// The message in it; `None` if it is not what its head says.
    pub(crate) fn message(&self) -> Option<Message> {
        let (head, body) = self.bytes.split_first_chunk::<HEAD>()?;
        let message = Message::of(head, body.to_vec());
        let honest = number(head, 2) as usize == body.len()
            && body.len() <= MAX_MESSAGE
            && message.descriptors == self.descriptors.len()
            && message.descriptors <= MAX_DESCRIPTORS;
        honest.then_some(message)
    }
}

impl Message {
    fn of(head: &[u8; HEAD], body: Vec<u8>) -> Self {
        let descriptors = number(head, 3) as usize;
        Self { seq: number(head, 0), word: number(head, 1), body, descriptors }
    }

    /// What lies in a lane; `Err` with its number if it is longer than a message can be.
    pub(crate) fn in_lane(memory: &File, start: u64) -> Result<Self, u32> {
        let mut head = [0; HEAD];
        memory.read_exact_at(&mut head, start).expect("it can be read");
        let len = number(&head, 2) as usize;
        if len > MAX_MESSAGE {
            return Err(number(&head, 0));
        }
        let mut body = vec![0; len];
        memory.read_exact_at(&mut body, start + HEAD as u64).expect("it can be read");
        Ok(Self::of(&head, body))
    }
}

fn number(head: &[u8; HEAD], place: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|byte| head[4 * place + byte]))
}
