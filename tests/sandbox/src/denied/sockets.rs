//! Servers outside.

use crate::{Case, cases, dewar::Call, kernel::with_say, process::run, stage::Stage};
use std::{
    net::{TcpListener, UdpSocket},
    os::unix::net::{SocketAddr, UnixListener},
};

pub(super) const CASES: &[Case] =
    cases![servers_outside_are_not_connected_to, ports_are_not_bound,];

/// Runs a Python program in which no attempt, one a line, may come to an end of success.
fn fails(stage: &Stage, program: &str) -> crate::record::Record {
    let words = ["python3".into(), "-c".into(), with_say(program).into()];
    let profile = stage.without_loopback();
    let call = Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &words), b"");
    assert!(ran.status.success() && !ran.out.is_empty(), "the program failed: {}", ran.err());
    for line in ran.out().lines() {
        assert!(
            !line.contains("connected") && line.contains(" E"),
            "not refused: {line}\n{}",
            ran.err()
        );
    }
    stage.record()
}

fn servers_outside_are_not_connected_to(stage: &Stage) {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a TCP server");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a UDP server");
    let path = stage.outside().join("socket");
    let unix = UnixListener::bind(&path).expect("a Unix server");
    stage.file(&stage.outside().join("note"), "");
    let name = format!("dewar-test-{}", udp.local_addr().expect("an address").port());
    let address = <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name);
    let abstract_name: SocketAddr = address.expect("an abstract name");
    let hidden = UnixListener::bind_addr(&abstract_name).expect("an abstract server");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .expect("open the server");
    let program = format!(
        "import socket
def attempt(family, kind, address):
    s = socket.socket(family, kind); s.settimeout(3); s.connect(address); s.send(b'x'); return 'connected'
tcp, udp, name = {tcp}, {udp}, {name:?}
say(lambda: attempt(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', tcp)), 'tcp'); say(lambda: attempt(socket.AF_INET6, socket.SOCK_STREAM, ('::ffff:127.0.0.1', tcp)), 'tcp6'); say(lambda: attempt(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', udp)), 'udp'); say(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', udp)), 'sendto')
say(lambda: attempt(socket.AF_UNIX, socket.SOCK_STREAM, os.environ['OUTSIDE'] + '/socket'), 'unix'); say(lambda: attempt(socket.AF_UNIX, socket.SOCK_STREAM, '\\0' + name), 'abstract'); say(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW), 'packet'); say(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1), 'raw'); say(lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM), 'vsock')
os.symlink(os.environ['OUTSIDE'] + '/socket', 'link'); say(lambda: attempt(socket.AF_UNIX, socket.SOCK_STREAM, 'link'), 'link')",
        tcp = tcp.local_addr().expect("an address").port(),
        udp = udp.local_addr().expect("an address").port(),
    );
    let record = fails(stage, &program);
    let classes: Vec<&str> = record.denials.iter().map(|denial| denial.tclass.as_str()).collect();
    for class in ["tcp_socket", "udp_socket", "unix_stream_socket"] {
        assert!(classes.contains(&class), "no denial for {class} among {classes:?}");
    }
    assert!(record.denials.iter().all(|denial| !denial.reason.is_empty()));
    for nonblocking in
        [unix.set_nonblocking(true), hidden.set_nonblocking(true), tcp.set_nonblocking(true)]
    {
        nonblocking.expect("ask without waiting");
    }
    assert!(
        unix.accept().is_err() && hidden.accept().is_err() && tcp.accept().is_err(),
        "someone connected"
    );
}

fn ports_are_not_bound(stage: &Stage) {
    let record = fails(
        stage,
        "import socket
say(lambda: socket.socket().bind(('127.0.0.1', 0)), 'tcp'); say(lambda: socket.socket().bind(('0.0.0.0', 8099)), 'tcp any'); say(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(('127.0.0.1', 0)), 'udp'); say(lambda: socket.socket(socket.AF_UNIX).bind(os.environ['OUTSIDE'] + '/own'), 'unix'); say(lambda: socket.socket().listen(), 'listen')",
    );
    assert!(!record.denials.is_empty());
    assert!(!stage.outside().join("own").exists());
}
