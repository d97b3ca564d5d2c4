//! Clients that do not keep to the protocol: the service goes on, and so do its other clients.

use crate::world::{TRANSPORTS, World};
use ipc::{Access, MAX_DESCRIPTORS, MAX_MESSAGE, Server, Session, SessionError, Transport};
use proptest::prelude::*;
use rustix::{
    io::retry_on_intr,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recvmsg,
        send, sendmsg, socket_with,
    },
};
use std::{
    fs::File,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{fs::FileExt as _, process::ExitStatusExt as _},
    },
    process::{self, Command},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Bytes of one lane, as the protocol lays it out: number, word, length, descriptors, data; then,
/// on a line of its own, how its reader sleeps.
const LANE: u64 = (16 + MAX_MESSAGE as u64).next_multiple_of(64) + 64;

/// A client that speaks the protocol by hand.
struct Raw {
    socket: OwnedFd,
    memory: Option<File>,
}

impl Raw {
    fn connect(world: &World, transport: Transport) -> Self {
        let kind = SocketType::SEQPACKET;
        let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a socket");
        let address = SocketAddrUnix::new(world.path()).expect("an address");
        connect(&socket, &address).expect("somebody listens");
        let mut raw = Self { socket, memory: None };
        raw.packet([1, u32::from(transport == Transport::Socket), 12, 0], b"dewar port 1");
        raw.memory = raw.answer();
        assert_eq!(raw.memory.is_some(), transport == Transport::Memory);
        raw
    }

    fn packet(&self, head: [u32; 4], body: &[u8]) {
        let bytes = [&head.map(u32::to_ne_bytes).concat(), body].concat();
        // The service may have closed the connection already; that is its right.
        let _ = send(&self.socket, &bytes, SendFlags::NOSIGNAL);
    }

    fn answer(&self) -> Option<File> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let (mut head, flags) = ([0; 16], RecvFlags::CMSG_CLOEXEC);
        let received = retry_on_intr(|| {
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut head)], &mut ancillary, flags)
        });
        assert_eq!(received.expect("an answer").bytes, 16);
        let memory = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        memory.map(File::from)
    }

    fn scribble(&self, place: u64, bytes: &[u8]) {
        let memory = self.memory.as_ref().expect("it was asked for");
        memory.write_all_at(bytes, place % (2 * LANE - 64)).expect("it can be written");
    }
}

/// Runs a service beside an honest client that calls all the time, while `attack` takes place.
fn under(attack: impl FnOnce(&World) + Send) {
    let world = World::new();
    world.with(
        // A hostile client may not take its reply.
        |request| drop(request.echo()),
        || {
            thread::scope(|scope| {
                let attacked = scope.spawn(|| attack(&world));
                for transport in TRANSPORTS {
                    let mut port = world.connect(transport);
                    let mut calls = 0_u32;
                    while !attacked.is_finished() || calls < 100 {
                        calls += 1;
                        assert_eq!(port.ask::<u32, u32>(&calls).expect("a reply"), calls);
                    }
                }
            });
        },
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn scribbling_over_the_memory_harms_nobody_else(
        writes in prop::collection::vec((any::<u64>(), any::<[u8; 9]>()), 1..400),
        // Heads and sleeping states are hit often, not once in a million.
        heads in prop::collection::vec((0..3_u64, 0..24_u64, any::<u32>()), 1..400),
    ) {
        under(|world| {
            let raw = Raw::connect(world, Transport::Memory);
            for ((place, bytes), (part, field, value)) in writes.iter().zip(&heads) {
                raw.scribble(*place, bytes);
                let start = [0, LANE, LANE - 64][*part as usize];
                raw.scribble(start + field, &value.to_ne_bytes());
            }
        });
    }

    #[test]
    fn packets_of_any_bytes_harm_nobody_else(
        packets in prop::collection::vec(
            (any::<[u32; 4]>(), prop::collection::vec(any::<u8>(), 0..100)), 1..40,
        ),
        memory in any::<bool>(),
    ) {
        under(|world| {
            let transport = if memory { Transport::Memory } else { Transport::Socket };
            for (head, body) in &packets {
                let raw = Raw::connect(world, transport);
                let honest = [head[0] | 1, 0, body.len() as u32, 0];
                raw.packet(honest, body);
                raw.packet(*head, body);
            }
        });
    }
}

/// A session with a hostile client, and the client.
fn session(world: &World, transport: Transport) -> (Server, Session, Raw) {
    world.label(process::id(), "build");
    let server = Server::bind(&world.path(), Access::Checked(world.guard())).expect("a server");
    let (session, raw) = thread::scope(|scope| {
        let raw = scope.spawn(|| Raw::connect(world, transport));
        (server.accept().expect("a client"), raw.join().expect("no panic"))
    });
    (server, session, raw)
}

#[test]
fn a_length_beyond_the_lane_ends_the_session() {
    for len in [MAX_MESSAGE as u32 + 1, u32::MAX] {
        let world = World::new();
        let (_server, mut session, raw) = session(&world, Transport::Memory);
        raw.scribble(8, &len.to_ne_bytes());
        raw.scribble(0, &1_u32.to_ne_bytes());
        let answer = session.recv(Some(Duration::from_secs(5))).map(drop);
        assert!(matches!(answer, Err(SessionError::Broken(_))), "{answer:?}");
    }
}

#[test]
fn descriptors_that_were_announced_and_not_sent_end_the_session() {
    for transport in TRANSPORTS {
        let world = World::new();
        let (_server, mut session, raw) = session(&world, transport);
        match transport {
            Transport::Memory => {
                raw.scribble(12, &1_u32.to_ne_bytes());
                raw.scribble(0, &1_u32.to_ne_bytes());
            }
            Transport::Socket => raw.packet([1, 0, 0, 1], b""),
        }
        let answer = session.recv(Some(Duration::from_secs(5))).map(drop);
        assert!(matches!(answer, Err(SessionError::Broken(_))), "{transport:?}: {answer:?}");
    }
}

#[test]
fn more_descriptors_than_a_message_may_have_end_the_session() {
    let world = World::new();
    let (_server, mut session, raw) = session(&world, Transport::Socket);
    for (number, count) in [(1, MAX_DESCRIPTORS), (2, MAX_DESCRIPTORS + 1)] {
        let head = [number, 0, 0, count as u32].map(u32::to_ne_bytes).concat();
        let descriptors = vec![raw.socket.as_fd(); count];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(32))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&raw.socket, &[IoSlice::new(&head)], &mut ancillary, SendFlags::empty())
            .expect("sent");
    }
    let mut request = session.recv(Some(Duration::from_secs(5))).expect("as many as it may have");
    assert_eq!(request.take_descriptors().len(), MAX_DESCRIPTORS);
    drop(request);
    let answer = session.recv(Some(Duration::from_secs(5))).map(drop);
    assert!(matches!(answer, Err(SessionError::Broken(_))), "{answer:?}");
}

#[test]
fn a_client_that_broke_the_protocol_is_not_heard_again() {
    let world = World::new();
    let (_server, mut session, raw) = session(&world, Transport::Socket);
    raw.packet([1, 0, 9, 0], b"");
    raw.packet([2, 0, 0, 0], b"");
    let timeout = Some(Duration::from_secs(5));
    assert!(matches!(session.recv(timeout).map(drop), Err(SessionError::Broken(_))));
    assert!(matches!(session.recv(timeout).map(drop), Err(SessionError::Gone)));
}

#[test]
fn a_message_that_changes_without_end_holds_its_session_no_longer_than_the_timeout() {
    let world = World::new();
    let (_server, mut session, raw) = session(&world, Transport::Memory);
    raw.scribble(8, &(MAX_MESSAGE as u32).to_ne_bytes());
    let (begin, is_over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1_u32.. {
                raw.scribble(0, &number.to_ne_bytes());
                if is_over.load(Ordering::Relaxed) || begin.elapsed() > Duration::from_secs(20) {
                    break;
                }
            }
        });
        // Each of these takes one message, or none; none takes longer than it may.
        while begin.elapsed() < Duration::from_millis(800) {
            let called = Instant::now();
            let _ = session.recv(Some(Duration::from_millis(20))).map(drop);
            assert!(called.elapsed() < Duration::from_secs(10), "{:?}", called.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_client_that_never_takes_its_replies_blocks_only_itself() {
    under(|world| {
        let raw = Raw::connect(world, Transport::Socket);
        let body = [0; 4096];
        for number in 1..100 {
            raw.packet([number, 0, body.len() as u32, 0], &body);
        }
        thread::sleep(Duration::from_millis(100));
    });
}

#[test]
fn clients_that_connect_and_say_nothing_hold_nobody_up() {
    under(|world| {
        let kind = SocketType::SEQPACKET;
        let address = SocketAddrUnix::new(world.path()).expect("an address");
        let silent: Vec<OwnedFd> = (0..20)
            .map(|_| {
                let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
                let socket = socket.expect("a socket");
                connect(&socket, &address).expect("somebody listens");
                socket
            })
            .collect();
        thread::sleep(Duration::from_millis(200));
        drop(silent);
    });
}

/// The port of one process is no use to another: a child that has inherited the socket, and speaks
/// on it.
#[test]
fn another_process_cannot_speak_on_a_connection() {
    let world = World::new();
    let (_server, mut session, raw) = session(&world, Transport::Socket);
    // `printf` writes one packet: number 1, in nobody's name, no bytes, no descriptors.
    let packet = r"printf '\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000'";
    let socket = raw.socket.try_clone().expect("a descriptor");
    let status = Command::new("sh").args(["-c", packet]).stdout(socket).status();
    assert_eq!(status.expect("a shell").into_raw(), 0);
    let answer = session.recv(Some(Duration::from_secs(5))).map(drop);
    assert!(matches!(answer, Err(SessionError::Broken(_))), "{answer:?}");
}
