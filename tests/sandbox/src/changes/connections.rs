//! Connections and files that are taken while a program has them.

use super::{LOOP, Running, data, done, profile};
use crate::{Case, cases, dewar::Call, process::until, stage::Stage};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    os::unix::net::UnixListener,
    sync::mpsc::{Receiver, channel},
};
use test_support::Variant;

/// The cases of this part.
pub(super) const CASES: &[Case] =
    cases![a_host_is_taken_with_its_connections, a_netlink_socket_is_taken_by_another_profile];

/// Those that are tried in surroundings, too.
pub(crate) const SURROUNDED: &[Case] = cases![
    who_has_a_connection_that_is_taken_has_it_no_more,
    who_has_a_file_that_is_taken_has_it_no_more,
    who_answers_in_the_place_of_the_kernel_is_killed,
    a_connection_is_taken_whomever_its_socket_was_to_be_connected_to_since,
];

/// A server that greets whoever connects: its port, and a message for each connection that ended.
fn server() -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a server");
    let port = listener.local_addr().expect("an address").port();
    let (ended, ends) = channel();
    std::thread::spawn(move || {
        while let Ok((mut peer, _)) = listener.accept() {
            let ended = ended.clone();
            std::thread::spawn(move || {
                let _ = peer.write_all(b"hello");
                let _ = peer.read_to_end(&mut Vec::new());
                let _ = ended.send(());
            });
        }
    });
    (port, ends)
}

fn a_host_is_taken_with_its_connections(stage: &Stage) {
    let (port, _) = server();
    let profile = profile(stage, &format!("[network]\nconnect = [\"127.0.0.1:{port}\"]\n"));
    let call = Call { profile: Some(&profile), ..stage.call() };
    let held = format!(
        "trap '' PIPE; exec 7<>/dev/tcp/127.0.0.1/{port}; {}",
        LOOP.replace("ATTEMPT", "echo x >&7")
    );
    let running = Running::start(stage, call, &held);
    assert_eq!(running.attempt(), "yes");
    let endpoint = format!("127.0.0.1:{port}");
    let receipt = done(stage, &["revoke", "--net", &endpoint, "--json"]);
    assert!(receipt.contains("\"connection\": 7"), "{receipt}");
    assert_eq!(running.attempt(), "no");
    running.stop();
    std::fs::remove_file(stage.work().join("stop")).expect("remove a file");
    let new = format!("(exec 7<>/dev/tcp/127.0.0.1/{port})");
    let running = Running::trying(stage, call, &new);
    assert_eq!(running.attempt(), "yes");
    done(stage, &["revoke", "--net", "127.0.0.0/8"]);
    assert_eq!(running.attempt(), "no");
    done(stage, &["grant", "--net", "127.0.0.0/8"]);
    assert_eq!(running.attempt(), "yes");
    running.stop();
}

/// One that was made before asks the kernel nothing more.
fn a_netlink_socket_is_taken_by_another_profile(stage: &Stage) {
    let rules = |netlink: &str| {
        let rules = "loopback = 'none'\nconnect = ['192.0.2.1:9']\nnetlink = ";
        profile(stage, &format!("[network]\n{rules}{netlink}\n"))
    };
    let asks = rules("['route']");
    let script = r#"cat > asks.py <<'END'
import os, socket, struct, time
held = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
held.settimeout(2)
GETLINK, REQUEST_DUMP = 18, 0x301
def asks():
    try:
        held.send(struct.pack("=LHHLLB3x", 20, GETLINK, REQUEST_DUMP, 1, 0, 0))
        return held.recv(65536)
    except OSError:
        return b""
while not os.path.exists("stop"):
    said = "yes" if asks() else "no"
    with open("log", "a") as log:
        log.write(said + "\n")
    time.sleep(0.02)
END
python3 asks.py"#;
    let call = Call { profile: Some(&asks), ..stage.call() };
    let running = Running::start(stage, call, script);
    assert_eq!(running.attempt(), "yes");
    let receipt = done(stage, &["policy", "load", "last", &rules("false")]);
    assert!(receipt.contains("complete after"), "{receipt}");
    assert_eq!(running.attempt(), "no", "{receipt}");
    running.stop();
}

/// Its server sees the end, and the program goes on. Where a container refuses the monitor the
/// sockets of others, each process loses all that it has.
fn who_has_a_connection_that_is_taken_has_it_no_more(stage: &Stage) {
    if is_out_of_reach(stage) {
        return;
    }
    let (port, ends) = server();
    let profile = profile(stage, &format!("[network]\nconnect = [\"127.0.0.1:{port}\"]\n"));
    let call = Call { profile: Some(&profile), ..stage.call() };
    let script = format!(
        "(exec 7<>/dev/tcp/127.0.0.1/{port}; : > held; until [ -e stop ]; do sleep 0.02; done)
        echo $? > status"
    );
    let running = Running::start(stage, call, &script);
    until(|| stage.work().join("held").exists().then_some(())).expect("it connects");
    assert!(ends.try_recv().is_err(), "the connection has ended before");
    let receipt = done(stage, &["revoke", "--net", &format!("127.0.0.1:{port}"), "--json"]);
    assert!(receipt.contains("\"connection\": 7") && !receipt.contains("killed"), "{receipt}");
    let mut holders: Vec<&str> = receipt.lines().filter(|line| line.contains("\"pid\"")).collect();
    let named = holders.len();
    holders.sort_unstable();
    holders.dedup();
    assert_eq!(holders.len(), named, "who holds it is named once: {receipt}");
    until(|| ends.try_recv().ok()).expect("the server sees the end");
    let ran = running.stop();
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let status = std::fs::read_to_string(stage.work().join("status")).expect("a status");
    assert_eq!(status, "0\n", "{receipt}");
}

/// What an attempt to connect it once more would have reached is not what it is connected to.
fn a_connection_is_taken_whomever_its_socket_was_to_be_connected_to_since(stage: &Stage) {
    if is_out_of_reach(stage) {
        return;
    }
    let path = stage.outside().join("greets");
    let listener = UnixListener::bind(&path).expect("a server");
    stage.give(&path);
    let stream = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a connection");
        peer.read_to_end(&mut Vec::new())
    });
    let path = path.to_str().expect("UTF-8");
    let profile = profile(stage, &format!("[network]\nconnect = [\"unix:{path}\"]\n"));
    let call = Call { profile: Some(&profile), ..stage.call() };
    let script = format!(
        r#"cat > twice.py <<'END'
import os, socket, time
own = socket.socket(socket.AF_UNIX)
own.bind("own")
own.listen()
held = socket.socket(socket.AF_UNIX)
held.connect("{path}")
print(held.connect_ex("own") != 0, flush=True)
open("held", "w").close()
while not os.path.exists("stop"):
    time.sleep(0.02)
try:
    print(held.send(b"x", socket.MSG_NOSIGNAL))
except OSError:
    print("taken")
END
python3 twice.py > said 2>&1"#
    );
    let running = Running::start(stage, call, &script);
    until(|| stage.work().join("held").exists().then_some(())).expect("it connects");
    let receipt = done(stage, &["revoke", "--unix", path, "--json"]);
    running.stop();
    let said = std::fs::read_to_string(stage.work().join("said")).expect("what it said");
    assert_eq!(said, "True\ntaken\n", "{receipt}");
    let _ = stream.join();
}

/// From outside of another sandbox, nobody reaches a run in it.
fn is_out_of_reach(stage: &Stage) -> bool {
    matches!(stage.variant, Variant::NestedRoot | Variant::NestedUser)
}

/// The program goes on, with what it has besides.
fn who_has_a_file_that_is_taken_has_it_no_more(stage: &Stage) {
    if is_out_of_reach(stage) {
        return;
    }
    data(stage);
    let script = "(exec 7<data 8<>data 9<other; : > held; until [ -e stop ]; do sleep 0.02; done
        for fd in 7 8 9; do head -c1 <&$fd > /dev/null 2>&1; echo $?; done > read)
        echo $? > status";
    let running = Running::start(stage, stage.call(), script);
    until(|| stage.work().join("held").exists().then_some(())).expect("it opens them");
    let receipt = done(stage, &["revoke", "--file", "data", "--json"]);
    for held in ["\"descriptor\": 7", "\"descriptor\": 8", "\"replaced\""] {
        assert!(receipt.contains(held) && !receipt.contains("killed"), "{receipt}");
    }
    let ran = running.stop();
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let told = ["read", "status"].map(|name| std::fs::read_to_string(stage.work().join(name)));
    assert_eq!(told.map(Result::unwrap_or_default), ["1\n1\n0\n", "0\n"], "{receipt}");
}

/// Its own filter says that the call was made which replaces its second descriptor.
fn who_answers_in_the_place_of_the_kernel_is_killed(stage: &Stage) {
    if is_out_of_reach(stage) {
        return;
    }
    data(stage);
    let script = r#"cat > fake.py <<'END'
import ctypes, os, struct, time
held = [os.open("data", os.O_RDONLY) for _ in range(2)]
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 292), (0x06, 0, 0, 0x00050000), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(code))
assert ctypes.CDLL(None).prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0
open("held", "w").close()
while not os.path.exists("stop"):
    time.sleep(0.02)
END
python3 fake.py; echo $? > status"#;
    let running = Running::start(stage, stage.call(), script);
    until(|| stage.work().join("held").exists().then_some(())).expect("it opens it");
    let receipt = done(stage, &["revoke", "--file", "data", "--json"]);
    assert!(receipt.contains("its repair was interfered with"), "{receipt}");
    running.stop();
    let status = std::fs::read_to_string(stage.work().join("status")).expect("a status");
    assert_eq!(status, "137\n", "{receipt}");
}
