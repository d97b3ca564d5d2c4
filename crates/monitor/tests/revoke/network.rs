//! Connections and listening sockets.

use crate::{
    Case, cases,
    stage::{Stage, check},
};
use serde_json::json;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    path::PathBuf,
    time::{Duration, Instant},
};

pub(crate) const CASES: &[Case] = cases![
    tcp_connections_are_reset,
    connections_on_their_way_end,
    accepted_connections_end,
    connections_to_no_address_at_all_end,
    connections_to_no_address_end_by_whom_they_reach,
    ports_of_its_own_are_taken,
    datagram_sockets_are_replaced,
    listening_ends,
    a_stream_that_lingers_holds_up_no_change,
];

fn tcp_connections_are_reset(stage: &Stage) {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("listen"));
    let [taken, kept] = [0, 1].map(|index| listeners[index].local_addr().expect("a port").port());
    let serve = |listener: TcpListener| {
        std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("accept");
            let mut bytes = Vec::new();
            let _ = peer.write_all(b"hello");
            (peer.read_to_end(&mut bytes).map_err(|it| it.kind()), bytes)
        })
    };
    let ends = listeners.map(serve);
    let both = format!("[network]\nconnect = ['127.0.0.1:{taken}', '127.0.0.1:{kept}']\n");
    let one = format!("[network]\nconnect = ['127.0.0.1:{kept}']\n");
    let script = format!(
        r#"
taken, kept = [socket.create_connection(("127.0.0.1", port)) for port in ({taken}, {kept})]
waits = []
waiting = threading.Thread(target=lambda: say("waiting", lambda: (taken.recv(5), taken.recv(5))))
waiting.start()
time.sleep(0.1)
change()
waiting.join()
say("send", lambda: taken.send(b"x"))
say("again", lambda: taken.connect(("127.0.0.1", {taken})))
say("new", lambda: socket.create_connection(("127.0.0.1", {taken})))
say("kept", lambda: kept.recv(5))
say("kept send", lambda: kept.send(b"bye"))
kept.close()
"#
    );
    let ran = stage.change((&both, &one), "\"repair\"", &script);
    check(
        &ran,
        &json!({
            "waiting": "ECONNRESET", "send": "EPIPE", "again": "EACCES", "new": "EACCES", "kept": "hello",
            "kept send": 3,
        }),
    );
    assert_eq!(ran.actions("connection"), ["reset"]);
    assert!(ran.is_complete());
    let [taken, kept] = ends.map(|end| end.join().expect("a peer"));
    assert_eq!(taken.0, Err(std::io::ErrorKind::ConnectionReset));
    assert_eq!(kept, (Ok(3), b"bye".to_vec()));
}

fn connections_on_their_way_end(stage: &Stage) {
    // With one connection that nobody accepts, the queue is full: who connects now is kept waiting.
    let full = || {
        let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
        rustix::net::listen(&listener, 0).expect("listen");
        let address = listener.local_addr().expect("an address");
        (TcpStream::connect(address).expect("connect"), listener, address.port())
    };
    let ((first, listener, taken), (second, other, kept)) = (full(), full());
    let changed = stage.path().join("changed");
    let accept = move |listener: TcpListener, changed: PathBuf| {
        std::thread::spawn(move || {
            while !changed.exists() {
                std::thread::sleep(Duration::from_millis(2));
            }
            listener.set_nonblocking(true).expect("a flag");
            let until = Instant::now() + Duration::from_secs(6);
            let mut accepted = 0;
            while Instant::now() < until {
                accepted += usize::from(listener.accept().is_ok());
                std::thread::sleep(Duration::from_millis(2));
            }
            accepted
        })
    };
    let ends = [listener, other].map(|listener| accept(listener, changed.clone()));
    let both = format!("[network]\nconnect = ['127.0.0.1:{taken}', '127.0.0.1:{kept}']\n");
    let one = format!("[network]\nconnect = ['127.0.0.1:{kept}']\n");
    let script = format!(
        r#"
early = socket.socket()
early.setblocking(False)
say("begin", lambda: early.connect(("127.0.0.1", {taken})))
def connect(name, port):
    thread = threading.Thread(target=lambda: say(name, lambda: socket.create_connection(("127.0.0.1", port)) and 1))
    thread.start()
    return thread
threads = [connect("connect", {taken}), connect("kept", {kept})]
time.sleep(0.2)
change()
for thread in threads:
    thread.join()
time.sleep(4)
say("send", lambda: early.send(b"x"))
say("again", lambda: early.send(b"x"))
"#
    );
    let ran = stage.change((&both, &one), "\"repair\"", &script);
    let want = json!({
        "begin": "EINPROGRESS", "connect": "EACCES", "kept": 1, "send": "ECONNRESET", "again": "EPIPE",
    });
    check(&ran, &want);
    assert!(ran.is_complete(), "{}", ran.receipt);
    assert_eq!(ran.actions("connection"), ["reset", "reset"]);
    drop((first, second));
    let accepted = ends.map(|end| end.join().expect("a peer"));
    assert_eq!(accepted, [1, 2], "connections that were accepted afterwards");
}

/// The monitor has its last descriptor, once it has taken what was on its way.
fn a_stream_that_lingers_holds_up_no_change(stage: &Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let port = listener.local_addr().expect("an address").port();
    let connect = format!("[network]\nconnect = ['127.0.0.1:{port}']\n");
    let without = format!("{connect}[files]\ndeny = ['${{workspace}}/secret*']\n");
    let script = format!(
        r#"
stream = socket.create_connection(("127.0.0.1", {port}))
stream.settimeout(0.3)
try:
    while True:
        stream.sendall(bytes(65536))
except TimeoutError:
    stream.settimeout(None)
stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, (1).to_bytes(4, "little") + (3600).to_bytes(4, "little"))
left, right = socket.socketpair()
secret = os.open("secret", os.O_RDONLY)
socket.send_fds(left, [b"x"], [secret, stream.fileno()])
os.close(secret)
stream.close()
change()
say("received", lambda: right.recv(1))
"#
    );
    let ran = stage.change((&connect, &without), "\"repair\"", &script);
    check(&ran, &json!({ "received": "" }));
    assert_eq!(ran.actions("inflight"), ["shutdown"]);
    assert!(ran.is_complete());
}

fn accepted_connections_end(stage: &Stage) {
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
    let peer = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(30);
        let mut stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind())
    });
    let script = format!(
        r#"
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("0.0.0.0", {port}))
listener.listen()
accepted, _ = listener.accept()
listener.close()
change()
say("send", lambda: accepted.send(b"x"))
"#
    );
    let bind = format!("[network]\nbind = ['0.0.0.0:{port}']\nconnect = ['127.0.0.1:1']\n");
    let none = "[network]\nconnect = ['127.0.0.1:1']\n";
    let ran = stage.change((&bind, none), "\"repair\"", &script);
    check(&ran, &json!({ "send": "ECONNRESET" }));
    assert_eq!(ran.actions("connection"), ["reset"]);
    assert_eq!(peer.join().expect("a peer"), Err(std::io::ErrorKind::ConnectionReset));
}

fn connections_to_no_address_at_all_end(stage: &Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let port = listener.local_addr().expect("a port").port();
    let script = format!(
        r#"
nowhere = socket.create_connection(("0.0.0.0", {port}))
change()
say("send", lambda: nowhere.send(b"x"))
say("again", lambda: socket.create_connection(("0.0.0.0", {port})))
say("there", lambda: socket.create_connection(("127.0.0.1", {port})))
"#
    );
    let (all, others) = (format!("*:{port}"), "127.0.0.1:1");
    let grant = |what: &str| format!("[network]\nconnect = ['{what}']\n");
    let ran = stage.change((&grant(&all), &grant(others)), "\"repair\"", &script);
    check(&ran, &json!({ "send": "ECONNRESET", "again": "EACCES", "there": "EACCES" }));
    assert_eq!(ran.actions("connection"), ["reset"]);
}

fn connections_to_no_address_end_by_whom_they_reach(stage: &Stage) {
    let listener = TcpListener::bind("127.0.0.2:0").expect("listen");
    let port = listener.local_addr().expect("a port").port();
    let script = format!(
        r#"
nowhere = socket.create_connection(("0.0.0.0", {port}), source_address=("127.0.0.2", 0))
change()
say("send", lambda: nowhere.send(b"x"))
"#
    );
    let grant = |what: &str| format!("[network]\nconnect = ['{what}']\nbind = ['127.0.0.2:0']\n");
    let (all, other) = (grant("*:*"), grant(&format!("127.0.0.1:{port}")));
    let ran = stage.change((&all, &other), "\"repair\"", &script);
    check(&ran, &json!({ "send": "ECONNRESET" }));
    assert_eq!(ran.actions("connection"), ["reset"]);
}

fn ports_of_its_own_are_taken(stage: &Stage) {
    let script = r#"
listener, idle = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
client = socket.create_connection(listener.getsockname())
accepted, _ = listener.accept()
say("before", lambda: client.send(b"x") + len(accepted.recv(5)))
listener.close()
change()
say("send", lambda: client.send(b"x"))
say("accept", lambda: idle.accept())
say("bind", lambda: socket.create_server(("127.0.0.1", 0)))
say("connect", lambda: socket.create_connection(idle.getsockname()))
"#;
    let outside = "[network]\nconnect = ['127.0.0.1:1']\n";
    let own = format!("{outside}loopback = 'own'\n");
    let ran = stage.change((&own, outside), "\"repair\"", script);
    check(
        &ran,
        &json!({
            "before": 2, "send": "ECONNRESET", "accept": "EINVAL", "bind": "EACCES", "connect": "EACCES",
        }),
    );
    assert!(ran.is_complete(), "{}", ran.receipt);
}

/// A datagram that is begun has an address, which a socket keeps when it is shut down or has its
/// peer taken.
fn datagram_sockets_are_replaced(stage: &Stage) {
    let peers = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let [taken, bound] = [0, 1].map(|index| peers[index].local_addr().expect("a port").port());
    let [peer, other] = peers;
    drop(other);
    let script = format!(
        r#"
begun, connected, elsewhere, bound = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(4)]
begun.sendto(b"begun", socket.MSG_MORE, ("127.0.0.1", {taken}))
connected.connect(("127.0.0.1", {taken}))
connected.send(b"begun", socket.MSG_MORE)
elsewhere.connect(("127.0.0.1", 1))
elsewhere.sendto(b"begun", socket.MSG_MORE, ("127.0.0.1", {taken}))
bound.bind(("127.0.0.1", {bound}))
change()
say("begun", lambda: begun.send(b"; ended"))
say("connected", lambda: connected.send(b"; ended"))
say("elsewhere", lambda: elsewhere.send(b"; ended"))
say("bound", lambda: bound.recv(9, socket.MSG_DONTWAIT))
say("again", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {taken})))
"#
    );
    let before = format!(
        "[network]\nconnect = ['127.0.0.1:{taken}/udp', '127.0.0.1:1/udp']\nbind = ['127.0.0.1:{bound}/udp']\n"
    );
    let after = "[network]\nconnect = ['127.0.0.1:1/udp']\n";
    let ran = stage.change((&before, after), "\"repair\"", &script);
    check(
        &ran,
        &json!({
            "begun": "ENOTSOCK", "connected": "ENOTSOCK", "elsewhere": "ENOTSOCK", "bound": "ENOTSOCK",
            "again": "EACCES",
        }),
    );
    assert_eq!(ran.actions("connection"), ["replaced", "replaced", "replaced"]);
    assert_eq!(ran.actions("listener"), ["replaced"]);
    peer.set_nonblocking(true).expect("a flag");
    let received = peer.recv(&mut [0; 32]).map_err(|error| error.kind());
    assert_eq!(received, Err(std::io::ErrorKind::WouldBlock), "a datagram came");
}

fn listening_ends(stage: &Stage) {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it").port();
    let script = format!(
        r#"
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", {port}))
listener.listen()
waiting = threading.Thread(target=lambda: say("accept", lambda: listener.accept() and 1))
waiting.start()
time.sleep(0.1)
change()
waiting.join()
say("listen", lambda: listener.listen())
other = socket.socket()
say("bind", lambda: other.bind(("127.0.0.1", {port})))
"#
    );
    let bind = format!("[network]\nbind = ['127.0.0.1:{port}']\nconnect = ['127.0.0.1:1']\n");
    let none = "[network]\nconnect = ['127.0.0.1:1']\n";
    let ran = stage.change((&bind, none), "\"repair\"", &script);
    check(&ran, &json!({ "accept": "EINVAL", "listen": "EACCES", "bind": "EACCES" }));
    assert_eq!(ran.actions("listener"), ["reset"]);
}
