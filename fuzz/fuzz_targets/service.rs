//! A service whose client does not keep to the protocol.

use crate::hostile::{self, HEAD, LANE, Message, Packet, Script, Step, receive, scribble, send};
use avc::Avc;
use flask::{SecurityServer as _, Sid};
use ipc::{
    Access, Generation, Guard, Label, MAX_DESCRIPTORS, Peer, Request, Server, Session, SessionError,
};
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, connect, shutdown,
    socket_with,
};
use std::{
    collections::VecDeque,
    fs::File,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::fs::FileExt as _,
    },
    path::PathBuf,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// The client may connect, and name nobody else.
const POLICY: &str = "
    (class port (connect specify_client)) (classorder (port))
    (sid kernel) (sid unlabeled) (sidorder (kernel unlabeled))
    (sidcontext kernel (u r client)) (sidcontext unlabeled (u r stranger))
    (user u) (role r) (userrole u r) (type client) (type stranger) (type service)
    (roletype r client) (roletype r stranger) (roletype r service)
    (allow client service (port (connect))) (allow stranger service (port (connect)))";

/// What a client says first.
const GREETING: &[u8] = b"dewar port 1";

/// What a reply says that is none.
const UNANSWERED: u32 = 3;

/// Looks of a service at memory that changes meanwhile.
const LOOKS: usize = 200;

struct World {
    server: Server,
    path: PathBuf,
    client: Sid,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let policy = security_server::Server::from_cil(&[("port.cil", POLICY)]).expect("a policy");
    let policy = Arc::new(policy);
    let sid = |context| policy.context_to_sid(context).expect("a context of the policy");
    let (client, service) = (sid("u:r:client"), sid("u:r:service"));
    let labels = move |_: &Peer| Some(Label::new(client, Generation::FOREVER));
    let guard = Guard::new(Arc::new(Avc::new(policy)), Arc::new(labels), service);
    let path = std::env::temp_dir().join(format!("fuzz-service-{}", std::process::id()));
    let server = Server::bind(&path, Access::Checked(guard)).expect("a server");
    World { server, path, client }
});

/// The client, and what it has sent.
struct Client {
    socket: OwnedFd,
    memory: Option<File>,
    /// For descriptors of it, where it has none of its own.
    other: File,
    sent: VecDeque<Packet>,
    /// Number of the last message that was taken.
    last: u32,
    /// It has closed its way to the service.
    shut: bool,
    /// The service has waited for it in vain.
    waited: bool,
}

/// What a look may come to.
#[derive(Debug, Default)]
struct Expected {
    request: Option<Message>,
    nothing: bool,
    end: bool,
}

/// Makes what does not depend on an input.
pub(crate) fn prepare() {
    LazyLock::force(&WORLD);
}

/// Plays a client.
pub(crate) fn attacked(script: Script<'_>, memory: bool, scribbles: bool) {
    let (mut client, mut session) = Client::connect(memory);
    let mut ended = false;
    for step in script {
        match step {
            Step::Packet(packet) => {
                if send(&client.socket, &packet, client.memory.as_ref().unwrap_or(&client.other)) {
                    client.sent.push_back(packet);
                }
            }
            Step::Write(place, bytes) => {
                let Some(memory) = &client.memory else { continue };
                if scribbles {
                    return look_meanwhile(&mut session, memory, place, &bytes);
                }
                scribble(memory, place, &bytes);
            }
            Step::Look if ended => {
                let answer = session.recv(Some(Duration::ZERO)).map(drop);
                assert!(!matches!(answer, Ok(()) | Err(SessionError::TimedOut)), "it goes on");
            }
            Step::Look => ended = client.looked_at(&mut session),
            Step::Shutdown => client.shut = shutdown(&client.socket, Shutdown::Write).is_ok(),
        }
    }
}

/// Plays a client that begins with anything, before one that is honest.
pub(crate) fn greeted(script: Script<'_>) {
    let (odd, honest, memory) = (connected(), connected(), hostile::memory());
    let mut sent = Vec::new();
    for step in script {
        if let Step::Packet(packet) = step
            && send(&odd, &packet, &memory)
        {
            sent.push(packet);
        }
    }
    // So that nobody waits for more.
    shutdown(&odd, Shutdown::Write).expect("shut");
    assert!(send(&honest, &greeting(true), &memory));
    // The first message numbered 1, if nothing broken comes before it.
    let first =
        sent.iter().map(Packet::message).find(|it| it.as_ref().is_none_or(|it| it.seq == 1));
    let good = first.flatten().is_some_and(|message| message.body == GREETING);
    let session = WORLD.server.accept().expect("a session");
    assert_eq!(
        receive(&honest).is_none(),
        good,
        "whoever does not greet is served, or the other way round"
    );
    if good {
        drop((session, WORLD.server.accept().expect("a session")));
        assert!(receive(&honest).is_some(), "the next client is not served");
    }
}

fn connected() -> OwnedFd {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket");
    let address = SocketAddrUnix::new(&WORLD.path).expect("an address");
    connect(&socket, &address).expect("connected");
    socket
}

fn greeting(by_socket: bool) -> Packet {
    let head = [1, u32::from(by_socket), GREETING.len() as u32, 0].map(u32::to_ne_bytes).concat();
    Packet { bytes: [&head[..], GREETING].concat(), descriptors: Vec::new() }
}

impl Client {
    fn connect(memory: bool) -> (Self, Session) {
        let (socket, other) = (connected(), hostile::memory());
        assert!(send(&socket, &greeting(!memory), &other));
        let session = WORLD.server.accept().expect("a session");
        let (_, mut descriptors) = receive(&socket).expect("it greets");
        let memory = descriptors.pop().map(File::from);
        let (sent, last, shut, waited) = (VecDeque::new(), 0, false, false);
        (Self { socket, memory, other, sent, last, shut, waited }, session)
    }

    /// What the protocol says. Requests in another's name are refused, and the service does not see
    /// them.
    fn expected(&mut self) -> Expected {
        match &self.memory {
            Some(memory) => {
                let (may_end, nothing) = (self.shut || !self.sent.is_empty(), true);
                let waits = Expected { nothing, end: may_end, request: None };
                let message = match Message::in_lane(memory, 0) {
                    Ok(message) if message.seq != 0 && message.seq != self.last => message,
                    Err(seq) if seq != 0 && seq != self.last => {
                        return Expected { end: true, ..Expected::default() };
                    }
                    _ => return waits,
                };
                self.last = message.seq;
                match (message.word, message.descriptors) {
                    (0, 0) => Expected { request: Some(message), ..Expected::default() },
                    (0, _) => Expected { request: Some(message), end: true, nothing: false },
                    (_, 0) => waits,
                    _ => Expected { nothing, end: true, request: None },
                }
            }
            None => loop {
                let Some(packet) = self.sent.pop_front() else {
                    return Expected { nothing: !self.shut, end: self.shut, request: None };
                };
                match packet.message() {
                    None => return Expected { end: true, ..Expected::default() },
                    Some(message) if message.seq == 0 || message.seq == self.last => {}
                    Some(message) => {
                        self.last = message.seq;
                        if message.word == 0 {
                            return Expected { request: Some(message), ..Expected::default() };
                        }
                    }
                }
            },
        }
    }

    /// Whether the session has ended.
    fn looked_at(&mut self, session: &mut Session) -> bool {
        let expected = self.expected();
        let in_vain = self.memory.is_none() && expected.nothing;
        if in_vain && std::mem::replace(&mut self.waited, true) {
            return false;
        }
        let timeout = match (&self.memory, in_vain) {
            (Some(_), _) => Duration::ZERO,
            (None, true) => Duration::from_millis(1),
            (None, false) => Duration::from_secs(5),
        };
        let request = match session.recv(Some(timeout)) {
            Ok(request) => request,
            Err(SessionError::TimedOut) => {
                assert!(expected.nothing, "nothing instead of {expected:?}");
                while receive(&self.socket).is_some() {}
                return false;
            }
            Err(error) => {
                assert!(expected.end, "{error} instead of {expected:?}");
                return true;
            }
        };
        let Some(message) = expected.request else { panic!("instead of {expected:?}") };
        self.answered(request, &message);
        false
    }

    /// A request is what was sent, and stays so; its reply arrives.
    fn answered(&self, mut request: Request<'_>, sent: &Message) {
        assert_eq!(request.client(), WORLD.client, "in another's name");
        assert_eq!(request.take_descriptors().len(), sent.descriptors);
        assert!(sent.descriptors <= MAX_DESCRIPTORS);
        assert!(request.body() == sent.body, "another request");
        if let Some(memory) = &self.memory {
            scribble(memory, HEAD as u64, &vec![0xff; sent.body.len()]);
        }
        assert!(request.body() == sent.body, "what was taken changes");
        // Refusals and bells before it.
        while receive(&self.socket).is_some() {}
        let (status, body) = match sent.seq % 3 {
            0 => (UNANSWERED, &[][..]),
            _ => (0, &sent.body[..]),
        };
        let done = match sent.seq % 3 {
            0 => Ok(drop(request)),
            1 => request.echo(),
            _ => request.reply_with(body, &[self.other.as_fd()]),
        };
        done.expect("there is room for a reply");
        let descriptors = usize::from(sent.seq % 3 == 2);
        let want = Message { seq: sent.seq, word: status, body: body.to_vec(), descriptors };
        let found = match &self.memory {
            Some(memory) => Message::in_lane(memory, LANE).ok(),
            None => receive(&self.socket).and_then(|(bytes, descriptors)| {
                Packet { bytes, descriptors: vec![0; descriptors.len()] }.message()
            }),
        };
        assert!(found == Some(want), "another reply");
    }
}

/// Looks again and again while another thread writes messages, and `bytes` to `place` and what lay
/// there back again: whatever is taken stays as it is.
fn look_meanwhile(session: &mut Session, memory: &File, place: u64, bytes: &[u8]) {
    let mut before = vec![0; bytes.len()];
    // Behind the end, zeros.
    memory.read_at(&mut before, place).expect("it can be read");
    let (writes, stop) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1_u32.. {
                scribble(memory, 0, &number.to_ne_bytes());
                // Not always as often, so that the two threads do not keep step.
                for _ in 0..=number % 4 {
                    scribble(memory, place, bytes);
                    scribble(memory, place, &before);
                }
                writes.store(true, Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        while !writes.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        for _ in 0..LOOKS {
            match session.recv(Some(Duration::ZERO)) {
                Ok(request) => {
                    let body = request.body().to_vec();
                    thread::yield_now();
                    assert!(request.body() == body, "what was taken changes");
                }
                Err(SessionError::TimedOut) => {}
                Err(_) => break,
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
