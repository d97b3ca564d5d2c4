//! Attacks on the limits of the network.

use crate::{
    Case, cases,
    stage::{Stage, Variant, held},
};
use rustix::{
    io::FdFlags,
    net::{AddressFamily, SocketType},
};
use std::{
    io::Read as _,
    net::{TcpListener, UdpSocket},
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt as _,
        unix::{fs::PermissionsExt, net},
    },
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

pub(crate) const CASES: &[Case] = cases![
    connecting_by_tcp_fast_open,
    listening_without_a_bind,
    connecting_to_a_name_that_was_its_own,
    sending_to_a_name_that_was_its_own,
    reaching_the_name_of_its_own_by_another_type,
    passing_for_a_service_outside_by_a_socket_that_nobody_finds,
    connecting_to_a_file_in_the_place_of_its_own,
    connecting_to_a_service_that_starts_where_it_binds,
    sending_to_an_address_of_no_family,
    setting_options_that_lead_elsewhere,
    asking_by_netlink,
    reaching_servers_of_the_machine_on_loopback,
    reaching_by_no_address_in_particular,
    connecting_to_a_port_that_was_its_own,
    waiting_for_a_port_that_becomes_anothers,
    sending_by_sockets_that_were_handed_in,
    sending_packets_in_the_name_of_the_monitor,
    sending_by_a_descriptor_that_is_anothers_by_then,
];

/// Connections to one port only, so that the sandbox shares the network with the outside.
const ONE_PORT: &str = "[network]\nconnect = [\"127.0.0.1:9\"]";

fn connecting_by_tcp_fast_open(stage: &Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let port = listener.local_addr().expect("an address").port().to_string();
    stage.holds(&stage.profile(ONE_PORT), "fast_open", &[&port]);
    listener.set_nonblocking(true).expect("not to wait");
    assert!(listener.accept().is_err(), "the attack has connected");
}

fn listening_without_a_bind(stage: &Stage) {
    stage.holds(&stage.profile(ONE_PORT), "listen_unbound", &[]);
}

/// Datagrams have to be decided, and so every send is.
fn sending_packets_in_the_name_of_the_monitor(stage: &Stage) {
    let profile = stage.profile("[network]\nconnect = [\"unixgram:${workspace}/nobody\"]");
    stage.holds(&profile, "borrowed_name", &[]);
}

/// A process with one thread sends packets itself; with two, or with a table of descriptors that is
/// another process's, too, it does not.
fn sending_by_a_descriptor_that_is_anothers_by_then(stage: &Stage) {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a receiver");
    let port = receiver.local_addr().expect("an address").port();
    let profile = one_datagram_port(stage, port ^ 1, false);
    for way in ["thread", "process"] {
        stage.holds(&profile, "swap_sender", &[&port.to_string(), way]);
        receiver.set_nonblocking(true).expect("not to wait");
        assert!(receiver.recv(&mut [0; 8]).is_err(), "the attack has sent something");
    }
}

/// Datagrams to one port of this machine, in one domain or in two.
fn one_datagram_port(stage: &Stage, port: u16, domains: bool) -> String {
    let rules = format!(
        "[network]\nconnect = [\"127.0.0.1:9\", \"127.0.0.1:{port}/udp\", \"[::1]:{port}/udp\"]\n"
    );
    let other = "[domains.other]\nexec = [\"/usr/bin/true\"]\n";
    stage.profile(&(rules + if domains { other } else { "" }))
}

fn sending_to_an_address_of_no_family(stage: &Stage) {
    let receivers = [UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("[::1]:0")];
    let receivers = receivers.map(|receiver| receiver.expect("a receiver"));
    for domains in [false, true] {
        for receiver in &receivers {
            let port = receiver.local_addr().expect("an address").port();
            let profile = one_datagram_port(stage, port ^ 1, domains);
            stage.holds(&profile, "no_family", &[&port.to_string()]);
            receiver.set_nonblocking(true).expect("not to wait");
            assert!(receiver.recv(&mut [0; 8]).is_err(), "the attack has sent something");
        }
    }
}

fn setting_options_that_lead_elsewhere(stage: &Stage) {
    let receiver = UdpSocket::bind("[::1]:0").expect("a receiver");
    let port = receiver.local_addr().expect("an address").port();
    for domains in [false, true] {
        let profile = one_datagram_port(stage, port, domains);
        stage.holds(&profile, "ways_around", &[&port.to_string()]);
    }
}

/// In a network of its own, the same ports are other ports.
fn reaching_servers_of_the_machine_on_loopback(stage: &Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a receiver");
    let ports = [listener.local_addr(), receiver.local_addr()];
    let ports = ports.map(|address| address.expect("an address").port().to_string());
    let profile = stage.profile("[network]\nloopback = \"private\"");
    let mut arguments = ports.each_ref().map(String::as_str).to_vec();
    if stage.variant == Variant::Bare {
        // Without namespaces there is no loopback, and no socket to try with.
        arguments.push("none");
    }
    stage.holds(&profile, "loopback", &arguments);
    listener.set_nonblocking(true).expect("not to wait");
    assert!(listener.accept().is_err(), "the attack has connected");
    receiver.set_nonblocking(true).expect("not to wait");
    assert!(receiver.recv(&mut [0; 8]).is_err(), "the attack has sent something");
}

/// The kernel takes no address for that of the socket, which can be another than was decided.
fn reaching_by_no_address_in_particular(stage: &Stage) {
    let listener = TcpListener::bind("127.0.0.2:0").expect("listen");
    let port = listener.local_addr().expect("an address").port();
    let receiver = UdpSocket::bind(("127.0.0.2", port)).expect("a receiver");
    let of_six = UdpSocket::bind("127.0.0.1:0").expect("a receiver");
    let six = of_six.local_addr().expect("an address").port();
    let profile = stage.profile(&format!(
        "[network]\nbind = [\"127.0.0.2:0\", \"127.0.0.2:0/udp\"]\n\
         connect = [\"127.0.0.1:{port}\", \"127.0.0.1:{port}/udp\", \"[::1]:{six}/udp\"]"
    ));
    stage.holds(&profile, "no_address", &[&port.to_string(), &six.to_string()]);
    listener.set_nonblocking(true).expect("not to wait");
    assert!(listener.accept().is_err(), "the attack has connected");
    for receiver in [receiver, of_six] {
        receiver.set_nonblocking(true).expect("not to wait");
        assert!(receiver.recv(&mut [0; 8]).is_err(), "the attack has sent something");
    }
}

/// Ports of the machine's loopback that the run has bound are its own, until somebody else has
/// them.
fn connecting_to_a_port_that_was_its_own(stage: &Stage) {
    let profile = stage.profile("[network]\nconnect = [\"192.0.2.1:9\"]\nloopback = \"own\"");
    take_over(stage, &profile, "own_port", &["close", "shutdown"]);
}

fn waiting_for_a_port_that_becomes_anothers(stage: &Stage) {
    let profile = stage.profile("[network]\nconnect = [\"192.0.2.1:9\"]\nloopback = \"own\"");
    take_over(stage, &profile, "waiting_connect", &["shutdown", "again", "signal"]);
}

/// Takes the port that an attack has let go of, each in one of these ways.
fn take_over(stage: &Stage, profile: &str, attack: &str, ways: &[&str]) {
    for way in ways {
        let [port, taken] =
            ["port", "taken"].map(|name| stage.work().join(format!("{way}-{name}")));
        let words = [&port, &taken].map(|path| path.to_str().expect("UTF-8").to_owned());
        let call = stage.call(profile);
        let mut command = stage.command(call, attack, &[way, &words[0], &words[1]]);
        let attack = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let attack = attack.expect("start `dewar`");
        let listener = taken_over(&port);
        std::fs::write(&taken, "").expect("say so");
        held(&attack.wait_with_output().expect("the attack's end"));
        let listener = listener.expect("nobody was to have the port");
        listener.set_nonblocking(true).expect("not to wait");
        assert!(listener.accept().is_err(), "the attack has connected after {way}");
    }
}

/// A server at the port that the attack says it had.
fn taken_over(port: &std::path::Path) -> std::io::Result<TcpListener> {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        let said = std::fs::read_to_string(port).unwrap_or_default();
        if let Some(said) = said.strip_suffix('\n').and_then(|said| said.parse::<u16>().ok()) {
            // The standard library sets `SO_REUSEADDR`.
            return TcpListener::bind(("127.0.0.1", said));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(std::io::ErrorKind::TimedOut.into())
}

fn asking_by_netlink(stage: &Stage) {
    stage.holds("workspace", "netlink", &[]);
    stage.holds(&one_datagram_port(stage, 9, true), "netlink", &[]);
}

/// The caller has left sockets open, as descriptors that close at no exec.
fn sending_by_sockets_that_were_handed_in(stage: &Stage) {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a receiver");
    let port = receiver.local_addr().expect("an address").port().to_string();
    let datagrams = stage.work().join("datagrams");
    let local = net::UnixDatagram::bind(&datagrams).expect("a receiver");
    std::fs::set_permissions(&datagrams, PermissionsExt::from_mode(0o777)).expect("open it to all");
    let connected = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    connected.connect(receiver.local_addr().expect("an address")).expect("connect");
    let stream = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None);
    let sockets: [OwnedFd; 5] = [
        UdpSocket::bind("127.0.0.1:0").expect("a socket").into(),
        connected.into(),
        net::UnixDatagram::unbound().expect("a socket").into(),
        net::UnixDatagram::pair().expect("a pair").0.into(),
        stream.expect("a socket"),
    ];
    for socket in &sockets {
        rustix::io::fcntl_setfd(socket, FdFlags::empty()).expect("hand it on");
    }
    let arguments = [port.as_str(), datagrams.to_str().expect("UTF-8")];
    for profile in ["workspace", "offline"] {
        stage.holds(profile, "given_sockets", &arguments);
        // In the place of the standard streams, too.
        for socket in &sockets {
            let stdio = || std::process::Stdio::from(socket.try_clone().expect("a copy"));
            let mut attack = stage.command(stage.call(profile), "given_sockets", &arguments);
            held(&attack.stdin(stdio()).stdout(stdio()).output().expect("start `dewar`"));
        }
    }
    receiver.set_nonblocking(true).expect("not to wait");
    assert!(receiver.recv(&mut [0; 8]).is_err(), "the attack has sent something");
    local.set_nonblocking(true).expect("not to wait");
    assert!(local.recv(&mut [0; 8]).is_err(), "the attack has sent something");
}

fn connecting_to_a_file_in_the_place_of_its_own(stage: &Stage) {
    let theirs = stage.work().join("theirs");
    let profile = stage.profile(ONE_PORT);
    let path = theirs.to_str().expect("UTF-8");
    let attack = stage.command(stage.call(&profile), "forgotten_file", &[path]);
    let listener = taken_meanwhile(stage, attack, || {
        let listener = net::UnixListener::bind(&theirs).expect("listen");
        stage.give(&theirs);
        Ok(listener)
    });
    listener.set_nonblocking(true).expect("not to wait");
    assert!(listener.accept().is_err(), "the attack has connected");
}

/// A service of the same user, in a directory that the run may write, starts over and over.
fn connecting_to_a_service_that_starts_where_it_binds(stage: &Stage) {
    let profile = stage.profile(ONE_PORT);
    let path = stage.work().join("sock");
    for name in ["sock", "led/sock"] {
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let service = scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    serve_for_a_moment(stage, &path);
                }
            });
            let attack = stage.command(stage.call(&profile), "started_meanwhile", &[name, "5"]);
            let output = { attack }.output();
            ends.store(true, Ordering::Relaxed);
            service.join().expect("the service");
            held(&output.expect("start `dewar`"));
        });
    }
}

/// Puts its socket there, as services do when they start, and says something to whoever connects.
fn serve_for_a_moment(stage: &Stage, path: &std::path::Path) {
    let new = path.with_extension("new");
    let listener = net::UnixListener::bind(&new).expect("listen");
    stage.give(&new);
    std::fs::rename(new, path).expect("take the name");
    listener.set_nonblocking(true).expect("not to wait");
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(5));
        if let Ok((mut connection, _)) = listener.accept() {
            let _ = std::io::Write::write_all(&mut connection, b"secret");
        }
    }
    let _ = std::fs::remove_file(path);
    std::thread::sleep(Duration::from_millis(20));
}

/// With a port, the sandbox shares the abstract names with the outside.
const PORT_AND_DATAGRAMS: &str =
    "[network]\nconnect = [\"127.0.0.1:9\", \"unixgram:${workspace}/nobody\"]";

fn reaching_the_name_of_its_own_by_another_type(stage: &Stage) {
    let names = ["streams", "datagrams"].map(|it| format!("{}/{it}", stage.home().display()));
    let [streams, datagrams] =
        names.each_ref().map(|it| net::SocketAddr::from_abstract_name(it).expect("a name"));
    let listener = net::UnixListener::bind_addr(&streams).expect("listen");
    let receiver = net::UnixDatagram::bind_addr(&datagrams).expect("a receiver");
    let profile = stage.profile(PORT_AND_DATAGRAMS);
    stage.holds(&profile, "name_of_another_type", &names.each_ref().map(String::as_str));
    listener.set_nonblocking(true).expect("not to wait");
    assert!(listener.accept().is_err(), "the attack has connected");
    receiver.set_nonblocking(true).expect("not to wait");
    assert!(receiver.recv(&mut [0; 8]).is_err(), "the attack has sent something");
}

/// Another domain may reach a name outside, and the attack has the name.
fn passing_for_a_service_outside_by_a_socket_that_nobody_finds(stage: &Stage) {
    stage.program("work/sender", "sender");
    let home = stage.home().file_name().and_then(|it| it.to_str()).expect("UTF-8");
    let name = format!("@{home}");
    let hidden = [
        (name.as_str(), "stream", "flight"),
        (&name, "stream", "thread"),
        (&name, "stream", "many"),
        (&name, "stream", "turns"),
        (&name, "datagram", "flight"),
        (&name, "datagram", "thread"),
        (&name, "datagram", "turns"),
        ("x.sock", "stream", "many"),
    ];
    for (name, kind, place) in hidden {
        let rule = match (name, kind) {
            (_, "datagram") => format!("unixgram:{name}"),
            ("x.sock", _) => "unix:${workspace}/x.sock".to_owned(),
            _ => format!("unix:{name}"),
        };
        let datagrams = "[network]\nconnect = [\"unixgram:${workspace}/nobody\"]\n";
        let datagrams = if kind == "datagram" { datagrams } else { "" };
        let profile = stage.profile(&format!(
            "{datagrams}[domains.sender]\nexec = [\"${{workspace}}/sender\"]\n\
             network.connect = [\"{rule}\"]"
        ));
        let words = [name, kind, place];
        let attack = stage.command(stage.call(&profile), "lost_owner", &words).output();
        held(&attack.unwrap_or_else(|error| panic!("{words:?}: {error}")));
    }
}

fn sending_to_a_name_that_was_its_own(stage: &Stage) {
    let name = format!("{}/datagrams", stage.home().display());
    let profile = stage.profile(PORT_AND_DATAGRAMS);
    let attack = stage.command(stage.call(&profile), "forgotten_name", &[&name, "datagram"]);
    let address = net::SocketAddr::from_abstract_name(&name).expect("a name");
    let receiver = taken_meanwhile(stage, attack, || net::UnixDatagram::bind_addr(&address));
    receiver.set_nonblocking(true).expect("not to wait");
    assert!(receiver.recv(&mut [0; 8]).is_err(), "the attack has sent something");
}

/// Runs an attack; `take` is called when it has let go of its name, until the kernel has, too, and
/// before it goes on.
fn taken_meanwhile<T>(
    stage: &Stage,
    mut attack: Command,
    take: impl Fn() -> std::io::Result<T>,
) -> T {
    let attack = attack.stderr(Stdio::piped()).spawn().expect("start `dewar`");
    let begun = Instant::now();
    while !stage.work().join("free").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the attack has not begun");
        std::thread::sleep(Duration::from_millis(1));
    }
    let taken = loop {
        match take() {
            Err(error) if begun.elapsed() > Duration::from_secs(60) => panic!("no name: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
            Ok(taken) => break taken,
        }
    };
    stage.file("work/taken", "");
    held(&attack.wait_with_output().expect("wait for `dewar`"));
    taken
}

fn connecting_to_a_name_that_was_its_own(stage: &Stage) {
    let name = format!("{}", stage.home().display());
    let profile = stage.profile(ONE_PORT);
    let attack = stage.command(stage.call(&profile), "forgotten_name", &[&name]);
    let address = net::SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = taken_meanwhile(stage, attack, || net::UnixListener::bind_addr(&address));
    listener.set_nonblocking(true).expect("not to wait");
    let mut text = String::new();
    if let Ok((mut connection, _)) = listener.accept() {
        let _ = connection.read_to_string(&mut text);
    }
    assert_eq!(text, "", "the attack has sent something");
}
