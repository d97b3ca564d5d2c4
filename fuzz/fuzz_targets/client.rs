//! A client whose service does not keep to the protocol.

use crate::hostile::{self, LANE, Message, Packet, SEALED, Script, Step, scribble, send};
use ipc::{Call, CallError, MAX_DESCRIPTORS, Port, Reply, Transport};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen,
    shutdown, socket_with,
};
use std::{
    collections::VecDeque,
    fs::File,
    os::fd::OwnedFd,
    path::PathBuf,
    sync::{
        LazyLock, Mutex, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

/// Calls of one client.
const MOST_CALLS: usize = 8;

/// What a service sends to its next client, and the memory that it passes.
type Conversation = (Vec<Packet>, File);

/// The connection, and what has found room there.
type Sent = (OwnedFd, VecDeque<Packet>);

struct World {
    path: PathBuf,
    service: Mutex<(Sender<Conversation>, Receiver<Sent>)>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("fuzz-client-{}", std::process::id()));
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let listener = socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket");
    bind(&listener, &SocketAddrUnix::new(&path).expect("an address")).expect("bound");
    listen(&listener, 1).expect("listening");
    let (conversations, next) = channel::<Conversation>();
    let (done, sent) = channel();
    thread::spawn(move || {
        for (packets, memory) in next {
            let socket = accept_with(&listener, SocketFlags::CLOEXEC).expect("a client");
            let packets = packets.into_iter().filter(|packet| send(&socket, packet, &memory));
            let packets = packets.collect();
            // So that nobody waits for more.
            shutdown(&socket, Shutdown::Write).expect("shut");
            drop(memory);
            if done.send((socket, packets)).is_err() {
                return;
            }
        }
    });
    World { path, service: Mutex::new((conversations, sent)) }
});

/// Makes what does not depend on an input.
pub(crate) fn prepare() {
    LazyLock::force(&WORLD);
}

/// Plays a service; `greets` if it begins as an honest one.
pub(crate) fn attacked(script: Script<'_>, memory: bool, greets: bool) {
    let (shared, mut packets, mut calls) = (hostile::memory(), Vec::new(), 1);
    if greets {
        let bytes = [1, 0, 0, u32::from(memory)].map(u32::to_ne_bytes).concat();
        packets.push(Packet { bytes, descriptors: vec![3; usize::from(memory)] });
    }
    for step in script {
        match step {
            Step::Packet(packet) => packets.push(packet),
            Step::Write(place, bytes) => scribble(&shared, place, &bytes),
            Step::Look | Step::Shutdown => calls = MOST_CALLS.min(calls + 1),
        }
    }
    let transport = if memory { Transport::Memory } else { Transport::Socket };
    let service = WORLD.service.lock().unwrap_or_else(PoisonError::into_inner);
    let conversation = (packets, shared.try_clone().expect("a descriptor"));
    service.0.send(conversation).expect("it waits for one");
    let port = Port::connect_within(&WORLD.path, transport, Duration::from_secs(5));
    let (_socket, mut sent) = service.1.recv().expect("it is done");
    let Ok(mut port) = port else {
        assert!(!greets, "an honest service is refused");
        return;
    };
    // What came before its greeting does not count.
    while sent.pop_front().is_some_and(|it| it.message().is_none_or(|it| it.seq != 1)) {}
    port.set_timeout(Some(if memory { Duration::ZERO } else { Duration::from_secs(5) }));
    for number in 1..=calls as u32 {
        let reply = port.send(Call { body: b"question", ..Call::default() });
        let ended = match memory {
            true => check_in_memory(reply, number, &shared),
            false => check_packets(reply, number, &mut sent),
        };
        if ended {
            return;
        }
    }
}

/// Whether a reply ends the conversation. The first packet with its number is the reply.
fn check_packets(
    reply: Result<Reply<'_>, CallError>,
    number: u32,
    sent: &mut VecDeque<Packet>,
) -> bool {
    let message = loop {
        match sent.pop_front().map(|packet| packet.message()) {
            Some(Some(message)) if message.seq == number => break Some(message),
            Some(Some(_)) => {}
            Some(None) | None => break None,
        }
    };
    match message {
        Some(message) => check(reply, &message),
        None => {
            assert!(matches!(reply, Err(CallError::Broken(_) | CallError::Gone)), "{reply:?}");
            true
        }
    }
}

/// As [`check_packets`]. What lies in the lane with its number is the reply, if the descriptors
/// that it names have come.
fn check_in_memory(reply: Result<Reply<'_>, CallError>, number: u32, shared: &File) -> bool {
    match Message::in_lane(shared, LANE) {
        Ok(message) if message.seq == number => {
            let missing = matches!(reply, Err(CallError::Broken(_)));
            missing && message.descriptors > 0 || check(reply, &message)
        }
        Err(seq) if seq == number => {
            assert!(matches!(reply, Err(CallError::Broken(_))), "{reply:?}");
            true
        }
        _ => {
            assert!(reply.is_err(), "a reply from nowhere: {reply:?}");
            !matches!(reply, Err(CallError::TimedOut))
        }
    }
}

/// The reply is this message.
fn check(reply: Result<Reply<'_>, CallError>, message: &Message) -> bool {
    match (reply, message.word) {
        (Ok(mut reply), 0) => {
            assert!(reply.body == message.body, "another reply");
            assert_eq!(reply.descriptors.len(), message.descriptors);
            assert!(message.descriptors <= MAX_DESCRIPTORS);
            let long = reply.body.is_empty() && !reply.descriptors.is_empty();
            // A long one is a copy of what lay in the memory that came: one of these two.
            match server_port::received(&mut reply) {
                Ok(bytes) if long => {
                    let lanes = bytes.len() as u64 == 2 * LANE;
                    assert!(lanes || *bytes == *SEALED, "{} other bytes", bytes.len());
                }
                Ok(bytes) => assert!(*bytes == message.body, "another reply"),
                Err(error) => assert!(long, "{error}"),
            }
            false
        }
        (Err(CallError::Denied), 1)
        | (Err(CallError::DeniedName), 2)
        | (Err(CallError::Unanswered), 3) => false,
        (Err(CallError::Broken(_)), 4..) => true,
        (reply, _) => panic!("{reply:?} instead of {message:?}"),
    }
}
