//! Services outside that do what whoever connects asks for.

use crate::{
    case::{Case, Judge, Severity},
    outside::witness::{heard_unix, reached_unix},
    scene::{Scene, loot},
    stage::{Stage, word},
};
use rustix::{
    io::IoSliceMut,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketType, recvmsg, sendmsg,
    },
};
use std::{
    fs::File,
    io::{self, IoSlice, Read as _, Write as _},
    mem::MaybeUninit,
    os::{
        fd::AsFd as _,
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream},
    },
};

/// A service at a path below the home.
fn at(stage: &mut Stage, name: &str, what: &'static str) -> io::Result<Judge> {
    let path = stage.home().join(name);
    std::fs::create_dir_all(path.parent().unwrap_or(stage.home()))?;
    let (listener, mark) = (UnixListener::bind(&path)?, stage.mark());
    stage.tell("service", path.display());
    Ok(Judge::after(move |_| reached_unix(&listener, &mark).then(|| what.to_owned())))
}

/// Connects to the service, and asks for something.
fn ask(scene: &Scene) -> io::Result<()> {
    let mut stream = UnixStream::connect(scene.path("service"))?;
    stream.write_all(b"POST /containers/create HTTP/1.1\r\n\r\n")?;
    stream.write_all(scene.mark())
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "docker-socket",
        severity: Severity::Critical,
        claim: "Asks Docker's daemon by its socket to start a container with the whole machine in it.",
        source: "Docker docs, \"Docker daemon attack surface\"",
        outside: |stage| at(stage, ".docker/run/docker.sock", "the daemon got the request"),
        attack: ask,
    },
    Case {
        name: "dbus-session",
        severity: Severity::Critical,
        claim: "Asks the session's D-Bus to let systemd start a program outside.",
        source: "systemd.exec(5); org.freedesktop.systemd1(5), StartTransientUnit",
        outside: |stage| at(stage, "run/user/bus", "the bus got the request"),
        attack: ask,
    },
    Case {
        name: "ssh-agent",
        severity: Severity::High,
        claim: "Lets the SSH agent sign for it.",
        source: "ssh-agent(1)",
        outside: |stage| {
            let judge = at(stage, "run/agent.1", "the agent got the request")?;
            let path = stage.home().join("run/agent.1").display().to_string();
            stage.variables.push(("SSH_AUTH_SOCK".to_owned(), path));
            Ok(judge)
        },
        attack: ask,
    },
    Case {
        name: "socket-in-workspace",
        severity: Severity::Medium,
        claim: "Reaches a service outside whose socket lies in the workspace.",
        source: "unix(7)",
        outside: |stage| at(stage, "work/service.sock", "the service got the request"),
        attack: ask,
    },
    Case {
        name: "abstract-socket",
        severity: Severity::Critical,
        claim: "Reaches a service outside by a name that lies in no file system.",
        source: "CVE-2020-15257 (containerd-shim, abstract sockets)",
        outside: |stage| {
            let name = format!("dewar-selftest/{}", word());
            let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
            let mark = stage.mark();
            stage.tell("service", name);
            Ok(Judge::after(move |_| {
                reached_unix(&listener, &mark).then(|| "the service got the request".to_owned())
            }))
        },
        attack: |scene| {
            let address = SocketAddr::from_abstract_name(scene.get("service"))?;
            UnixStream::connect_addr(&address)?.write_all(scene.mark())
        },
    },
    Case {
        name: "notify-socket",
        severity: Severity::Medium,
        claim: "Sends datagrams to a service outside, as to systemd's notification socket.",
        source: "sd_notify(3); unix(7)",
        outside: |stage| {
            let path = stage.home().join("run/notify");
            let (receiver, mark) = (UnixDatagram::bind(&path)?, stage.mark());
            receiver.set_nonblocking(true)?;
            stage.tell("service", path.display());
            Ok(Judge::after(move |_| {
                heard_unix(&receiver, &mark).then(|| "the service got the datagram".to_owned())
            }))
        },
        attack: |scene| {
            let socket = UnixDatagram::unbound()?;
            socket.send_to(scene.mark(), scene.path("service")).map(drop)
        },
    },
    Case {
        name: "received-descriptor",
        severity: Severity::High,
        claim: "Is handed a secret by a program outside that listens in the workspace (SCM_RIGHTS).",
        source: "unix(7), SCM_RIGHTS",
        outside: |stage| {
            let word = stage.secret()?;
            let secret = File::open(stage.home().join(".ssh/id_ed25519"))?;
            let path = stage.workspace().join("helper.sock");
            let listener = UnixListener::bind(&path)?;
            stage.tell("service", path.display());
            std::thread::spawn(move || {
                // Whoever connects gets it; the thread ends with the program.
                for stream in listener.incoming().flatten() {
                    let _ = hand(&stream, &secret);
                }
            });
            Ok(crate::outside::look::came_out(word, "a secret was received and read"))
        },
        attack: |scene| {
            let stream = UnixStream::connect(scene.path("service"))?;
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let mut byte = [0];
            let pieces = &mut [IoSliceMut::new(&mut byte)];
            recvmsg(stream.as_fd(), pieces, &mut control, RecvFlags::empty())?;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(files) = message {
                    for file in files {
                        let mut all = Vec::new();
                        File::from(file).read_to_end(&mut all)?;
                        loot(&all);
                    }
                }
            }
            Ok(())
        },
    },
    Case {
        name: "inherited-datagram",
        severity: Severity::High,
        claim: "Sends to anybody by a datagram socket that the caller had left open.",
        source: "socket(7); unix(7)",
        outside: |stage| {
            let receiver = stage.receiver("127.0.0.1:0")?;
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            stage.inherited.push(socket);
            let mark = stage.mark();
            Ok(Judge::after(move |_| {
                crate::outside::witness::heard(&receiver, &mark)
                    .then(|| "a datagram arrived by a socket left open".to_owned())
            }))
        },
        attack: |scene| {
            let mut done = Err(io::Error::other("no socket was handed in"));
            let to = super::network::v4(libc::AF_INET, scene.port());
            crate::sys::with_inherited(|socket| {
                done = crate::sys::send_to(socket, scene.mark(), 0, &to);
            });
            done
        },
    },
];

/// Hands a file to whoever is at the other end.
fn hand(stream: &UnixStream, file: &File) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(stream.as_fd(), &[IoSlice::new(b"x")], &mut control, SendFlags::empty())?;
    Ok(())
}
