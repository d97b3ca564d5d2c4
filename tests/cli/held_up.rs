//! What a client of the daemon sends keeps it from nothing.

use crate::daemon::{Stage, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Sends a socket that whoever closes it last waits for, as what it has sent is taken by nobody.
const LINGERS: &str = r#"
import array, os, signal, socket, struct, sys
port = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
port.connect(sys.argv[1])
def send(number, body, sent=[]):
    head = struct.pack("<IIII", number, number == 1, len(body), len(sent))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", sent))] if sent else []
    port.sendmsg([head + body], rights)
send(1, b"dewar port 1")
port.recv(65536)
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
full = socket.create_connection(listener.getsockname())
peer, _ = listener.accept()
full.setblocking(False)
try:
    while True:
        full.send(bytes(65536))
except BlockingIOError:
    pass
full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1000000))
# The daemon is to close it last.
os.kill(int(sys.argv[2]), signal.SIGSTOP)
send(2, b"?", [full.fileno()])
full.close()
os.kill(int(sys.argv[2]), signal.SIGCONT)
port.settimeout(2)
try:
    port.recv(65536)
except OSError:
    pass
print("sent", flush=True)
sys.stdin.read()
"#;

#[test]
fn a_daemon_ends_though_what_a_client_has_sent_cannot_be_closed() {
    let stage = Stage::new();
    let daemon = stage.command(&["daemon"]).stderr(Stdio::null()).spawn();
    let mut daemon = daemon.expect("started");
    wait_until("the daemon listens", || stage.say(&["daemon", "--runs"]).status == Some(0));
    let mut client = Command::new("python3");
    client.args(["-c", LINGERS]).arg(stage.path("run/dewar/daemon")).arg(daemon.id().to_string());
    client.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = client.spawn().expect("python3");
    let mut said = String::new();
    let out = client.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut said).expect("read");
    let pid = Pid::from_child(&daemon);
    kill_process(pid, Signal::TERM).expect("signalled");
    let begun = Instant::now();
    let mut ended = None;
    while ended.is_none() && begun.elapsed() < Duration::from_secs(40) {
        std::thread::sleep(Duration::from_millis(50));
        ended = daemon.try_wait().expect("waited for");
    }
    for child in [&mut client, &mut daemon] {
        // One that has ended already is as good.
        let _ = (child.kill(), child.wait());
    }
    assert_eq!(said, "sent\n");
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
}
