//! Servers and their clients, both inside, over unix sockets.

use crate::{
    Case, cases,
    dewar::Call,
    process::run,
    stage::{Stage, bash},
};

pub(super) const CASES: &[Case] = cases![
    servers_are_reached_under_every_profile,
    servers_are_reached_when_who_bound_has_ended,
    descriptors_pass_between_processes,
    packets_pass_between_processes,
    pairs_of_datagrams_keep_their_borders,
    a_pair_that_is_refused_leaves_no_end_behind,
    a_stream_that_is_broken_is_signalled,
    options_of_sockets_are_set,
    udp_lite_is_decided_as_udp_is,
    servers_are_reached_on_a_loopback_of_their_own,
];

/// No rule for sockets, one for TCP, one for UDP, which has every send decided, and two domains.
const PROFILES: [&str; 4] = [
    "extends = 'workspace'\n",
    "extends = 'workspace'\n[network]\nconnect = ['127.0.0.1:9']\n",
    "extends = 'workspace'\n[network]\nconnect = ['127.0.0.1:9', '127.0.0.1:9/udp']\n",
    "extends = 'workspace'\n[network]\nconnect = ['127.0.0.1:9']\n[domains.other]\nexec = ['/usr/bin/tac']\n",
];

fn under_every_profile(stage: &Stage, script: &str) {
    for profile in PROFILES {
        let path = stage.home().join("profile.toml");
        stage.file(&path, profile);
        stage.same(script).profile(path.to_str().expect("UTF-8")).check();
    }
}

fn servers_are_reached_under_every_profile(stage: &Stage) {
    under_every_profile(
        stage,
        r#"python3 - <<'END'
import multiprocessing, os, socket, threading
if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        shared["x"] = 1
        print(shared)
    for name in ("s", "\0inside-%d" % os.getpid(), None):
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            listener = socket.socket(socket.AF_UNIX, kind)
            if name is None:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
                listener.bind("")
            else:
                listener.bind(name)
            listener.listen()
            client = socket.socket(socket.AF_UNIX, kind)
            client.connect(listener.getsockname())
            peer, _ = listener.accept()
            client.send(b"hello")
            print(kind, peer.recv(9))
            listener.close()
            if name == "s":
                again = socket.socket(socket.AF_UNIX, kind)
                print(again.connect_ex(name))
                os.unlink(name)
END
node -e 'const net = require("net"); const s = net.createServer(c => { c.end("node\n"); s.close() }).listen("n", () => net.connect("n").pipe(process.stdout))'"#,
    );
}

fn servers_are_reached_when_who_bound_has_ended(stage: &Stage) {
    under_every_profile(
        stage,
        r#"eval $(ssh-agent -s -a $PWD/agent) > /dev/null; ssh-add -l; echo $?; ssh-agent -k > /dev/null; while [ -e agent ]; do sleep 0.01; done
python3 - <<'END'
import os, socket, sys, time
for name in ("s", "\0forked-%d" % os.getpid()):
    ready, told = os.pipe()
    if os.fork() == 0:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(name)
        listener.listen()
        if os.fork():
            os._exit(0)
        moved = os.dup2(listener.fileno(), 77, inheritable=True)
        listener.close()
        listener = socket.socket(fileno=moved)
        os.write(told, b"x")
        listener.accept()[0].send(b"from a child")
        os._exit(0)
    os.wait()
    os.read(ready, 1)
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    print(client.recv(99))
END"#,
    );
}

fn descriptors_pass_between_processes(stage: &Stage) {
    under_every_profile(
        stage,
        r#"echo content > file; python3 - <<'END'
import array, os, socket
one, other = socket.socketpair()
if os.fork() == 0:
    with open("file") as file, open("/dev/null") as null:
        socket.send_fds(one, [b"two files"], [file.fileno(), null.fileno()])
    os._exit(0)
data, fds, flags, _ = socket.recv_fds(other, 99, 9)
os.wait()
print(data, len(fds), os.read(fds[0], 99), os.read(fds[1], 9))
try:
    socket.send_fds(one, [b"x"], [999])
except OSError as error:
    print(error.errno)
END"#,
    );
}

/// By a process with one thread, which sends itself where sends are decided, and with two.
fn packets_pass_between_processes(stage: &Stage) {
    under_every_profile(
        stage,
        r#"echo content > file; python3 - <<'END'
import array, ctypes, os, signal, socket, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
PACKETS, CREDENTIALS = socket.SOCK_SEQPACKET, struct.pack("iII", os.getpid(), os.getuid(), os.getgid())
signal.signal(signal.SIGPIPE, lambda *_: print("signalled"))
def say(attempt):
    try: print(attempt())
    except OSError as error: print(type(error).__name__, error.errno)
def many(it):
    texts = [ctypes.create_string_buffer(text, len(text)) for text in (b"one", b"other")]
    pieces = [ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(text), len(text)), 16) for text in texts]
    message = lambda piece: struct.pack("QQQQQQQQ", 0, 0, ctypes.addressof(piece), 1, 0, 0, 0, 0)
    table = ctypes.create_string_buffer(b"".join(map(message, pieces)), 128)
    return libc.sendmmsg(it.fileno(), table, 2, 0), struct.unpack_from("I", table, 56), struct.unpack_from("I", table, 120)
def work():
    one, other = socket.socketpair(socket.AF_UNIX, PACKETS)
    say(lambda: one.sendmsg([b"in ", b"parts"], [], socket.MSG_EOR)); say(lambda: one.sendmsg([b""]))
    say(lambda: one.sendmsg([b"to"], [], 0, b"\0nobody")); say(lambda: one.sendto(b"to", b"\0nobody")); say(lambda: many(one))
    print([other.recvmsg(99)[::2] for _ in range(6)])
    with open("file") as file:
        socket.send_fds(one, [b"descriptors"], [file.fileno(), file.fileno()])
    data, fds, flags, _ = socket.recv_fds(other, 99, 9)
    print(data, len(fds), os.read(fds[0], 99), flags); os.close(fds[0]); os.close(fds[1])
    say(lambda: one.sendmsg([bytes(1 << 22)])); say(lambda: one.sendmsg([b"x"], [], socket.MSG_OOB))
    say(lambda: socket.socket(socket.AF_UNIX, PACKETS).sendmsg([b"x"]))
    sent = 0
    try:
        while True: sent += one.sendmsg([bytes(1000)], [], socket.MSG_DONTWAIT)
    except BlockingIOError: print(sent)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 100000)); say(lambda: one.sendmsg([bytes(1000)]))
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))
    if os.fork() == 0:
        time.sleep(0.2)
        os._exit(0 if all(len(other.recv(9999)) == 1000 for _ in range(sent // 1000 + 1)) else 1)
    say(lambda: one.sendmsg([bytes(1000)])); print(os.wait()[1])
    other.close(); say(lambda: one.sendmsg([b"x"])); say(lambda: one.sendmsg([b"x"]))
    with socket.socket(socket.AF_UNIX, PACKETS) as listener, socket.socket(socket.AF_UNIX, PACKETS) as client:
        listener.bind("s"); listener.listen(); client.connect("s"); server, _ = listener.accept(); os.unlink("s")
        say(lambda: server.sendmsg([b"from the server"])); print(client.recv(99)); server.close()
def credentials():
    for kind in (socket.SOCK_STREAM, PACKETS):
        one, other = socket.socketpair(socket.AF_UNIX, kind)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        control = (socket.SOL_SOCKET, socket.SCM_CREDENTIALS, CREDENTIALS)
        say(lambda: one.sendmsg([b"x"], [control])); print(other.recvmsg(9, 99)[1] == [control])
        if os.getuid():
            say(lambda: one.sendmsg([b"x"], [(*control[:2], struct.pack("iII", 1, os.getuid(), os.getgid()))]))
    one.sendmsg([b"x"]); print(other.recvmsg(9, 99)[1] == [control])
    with socket.socket(socket.AF_UNIX, PACKETS) as listener, socket.socket(socket.AF_UNIX, PACKETS) as client:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        listener.bind("s"); listener.listen(); client.connect("s"); server, _ = listener.accept(); os.unlink("s")
        say(lambda: client.sendmsg([b"x"])); print(server.recvmsg(9, 99)[:2] == (b"x", [control]))
work(); credentials()
over = threading.Event(); thread = threading.Thread(target=over.wait, daemon=True); thread.start()
work(); over.set(); thread.join()
END"#,
    );
}

fn pairs_of_datagrams_keep_their_borders(stage: &Stage) {
    under_every_profile(
        stage,
        r#"python3 - <<'END'
import os, socket
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
print(one.get_inheritable(), other.get_inheritable())
if os.fork() == 0:
    for text in (b"first", b"", b"second"):
        one.send(text)
    os._exit(0)
os.wait()
print([other.recv(99) for _ in range(3)])
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
try:
    one.recv(1)
except BlockingIOError:
    print("would wait")
END"#,
    );
}

fn a_pair_that_is_refused_leaves_no_end_behind(stage: &Stage) {
    under_every_profile(
        stage,
        r#"python3 - <<'END'
import os, resource, socket
free = os.dup(0); os.close(free)
for more in range(3):
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + more, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        try:
            print([it.fileno() - free for it in socket.socketpair(socket.AF_UNIX, kind)])
        except OSError as error:
            print(more, kind, error.errno)
        left = []
        for fd in range(free, free + 3):
            try: os.fstat(fd); left.append(fd - free)
            except OSError: pass
        print(more, left)
END"#,
    );
}

/// As where the program writes it itself.
fn a_stream_that_is_broken_is_signalled(stage: &Stage) {
    under_every_profile(
        stage,
        r#"python3 - <<'END'
import ctypes, os, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
class Many(ctypes.Structure):
    _fields_ = [("header", ctypes.c_char * 56), ("sent", ctypes.c_uint)]
def many(it): return libc.sendmmsg(it.fileno(), ctypes.byref(Many()), 1, 0)
ways = {
    "sendmsg": lambda it: it.sendmsg([b"x"]),
    "sendmmsg": many,
    "quiet": lambda it: it.sendmsg([b"x"], [], socket.MSG_NOSIGNAL),
}
for name, way in ways.items():
    for handler in (signal.SIG_DFL, signal.SIG_IGN, lambda *_: os.write(1, b"signalled\n")):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGPIPE, handler)
            one, other = socket.socketpair()
            other.close()
            try: print(way(one), ctypes.get_errno(), flush=True)
            except OSError as error: print(error.errno, flush=True)
            os._exit(0)
        print(name, os.waitpid(child, 0)[1], flush=True)
END"#,
    );
}

/// As libcurl, node, PostgreSQL, Redis, Go and Python set them.
fn options_of_sockets_are_set(stage: &Stage) {
    let profile = stage.home().join("profile.toml");
    stage.file(&profile, PROFILES[2]);
    let script = r#"python3 - <<'END'
from socket import *
tcp, udp = socket(AF_INET6, SOCK_STREAM), socket(AF_INET, SOCK_DGRAM)
for level, names in (
    (SOL_SOCKET, "SO_REUSEADDR SO_REUSEPORT SO_KEEPALIVE SO_BROADCAST SO_SNDBUF SO_RCVBUF SO_OOBINLINE SO_PRIORITY"),
    (IPPROTO_TCP, "TCP_NODELAY TCP_CORK TCP_KEEPIDLE TCP_KEEPINTVL TCP_KEEPCNT TCP_SYNCNT TCP_LINGER2 TCP_DEFER_ACCEPT "
     "TCP_QUICKACK TCP_USER_TIMEOUT TCP_FASTOPEN TCP_NOTSENT_LOWAT"),
    (IPPROTO_IPV6, "IPV6_V6ONLY IPV6_UNICAST_HOPS IPV6_MULTICAST_HOPS IPV6_MULTICAST_LOOP IPV6_RECVPKTINFO IPV6_RECVTCLASS "
     "IPV6_TCLASS IPV6_RECVHOPLIMIT IPV6_DONTFRAG"),
):
    for name in names.split():
        tcp.setsockopt(level, globals()[name], 1)
tcp.setsockopt(IPPROTO_TCP, TCP_CONGESTION, b"cubic")
for name in "IP_TOS IP_TTL IP_MULTICAST_TTL IP_MULTICAST_LOOP".split() + [8, 10, 11, 24]:
    udp.setsockopt(IPPROTO_IP, globals()[name] if isinstance(name, str) else name, 1)
print("set")
END"#;
    stage.same(script).profile(profile.to_str().expect("UTF-8")).check();
}

fn servers_are_reached_on_a_loopback_of_their_own(stage: &Stage) {
    let profile = stage.home().join("profile.toml");
    stage.file(&profile, "extends = 'workspace'\n[network]\nloopback = 'private'\n");
    let script = r#"python3 - <<'END'
import http.server, socket, socketserver, threading, urllib.request
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass
for kind, host in ((socket.AF_INET, ""), (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET6, "::")):
    class Server(http.server.ThreadingHTTPServer):
        address_family = kind
    with Server((host, 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in ("127.0.0.1", "localhost") if kind == socket.AF_INET else ("[::1]",):
            print(urllib.request.urlopen("http://%s:%d/" % (name, server.server_port)).status)
        server.shutdown()
one, other = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
one.bind(("127.0.0.1", 0))
other.sendto(b"datagram", one.getsockname())
data, sender = one.recvfrom(99)
one.sendmsg([data.upper()], [], 0, sender)
print(other.recv(99))
END
node -e 'const http = require("http"); const s = http.createServer((_, r) => { r.end("node\n"); s.close() }).listen(0, () => http.get({ port: s.address().port, agent: false }, r => r.pipe(process.stdout)))'"#;
    if stage.variant.has_namespaces() {
        // Python asks the name servers for the name of the machine.
        let same = stage.same(script).profile(profile.to_str().expect("UTF-8"));
        same.does_without(&[":53"]).check();
    }
}

fn udp_lite_is_decided_as_udp_is(stage: &Stage) {
    let profile = stage.profile("extends = 'workspace'\nnetwork.connect = ['127.0.0.1:9/udp']\n");
    let send = |port: u16| {
        format!(
            "python3 - <<'END'
import errno, socket
try:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136)
    s.setsockopt(136, 10, 20)
    print(s.sendto(b'x', ('127.0.0.1', {port})))
except OSError as error: print(errno.errorcode[error.errno])
END"
        )
    };
    stage.same(&send(9)).profile(&profile).check();
    let call = Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &bash(&send(10))), b"");
    assert_eq!(ran.out(), "EACCES\n", "{}", ran.err());
    assert_eq!(stage.record().denials_of("127.0.0.1:10/udp").len(), 1, "{}", ran.err());
    let profile = stage.without_loopback();
    let call = Call { profile: Some(&profile), ..stage.call() };
    let ran = run(stage.dewar(call, &bash(&send(9))), b"");
    assert_eq!(ran.out(), "EACCES\n", "{}", ran.err());
    assert_eq!(stage.record().denials_of("a new udp_socket").len(), 1, "{}", ran.err());
}
