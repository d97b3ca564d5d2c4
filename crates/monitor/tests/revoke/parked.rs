//! What a process holds that another domain was granted.

use crate::{
    Case, cases,
    stage::{Stage, check},
};
use serde_json::json;
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
};

pub(crate) const CASES: &[Case] = cases![
    connections_are_reset_also_where_another_domain_has_them,
    files_are_taken_also_where_another_domain_has_them,
    files_behind_a_deep_chain_of_directories_are_found,
];

/// A program of a domain that was never granted what it gets, and waits.
const HELD: &str = r#"
def held(fd):
    return subprocess.Popen(["/usr/bin/tac"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[fd])
"#;

fn connections_are_reset_also_where_another_domain_has_them(stage: &Stage) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let port = listener.local_addr().expect("an address").port();
    let end = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("accept");
        let _ = peer.write_all(b"hello");
        peer.read_to_end(&mut Vec::new()).map_err(|it| it.kind())
    });
    let domain = "[domains.tac]\nexec = ['/usr/bin/tac']\n";
    let before = format!("[network]\nconnect = ['127.0.0.1:{port}']\n{domain}");
    let script = format!(
        r#"{HELD}
connection = socket.create_connection(("127.0.0.1", {port}))
tac = held(connection.fileno())
connection.close()
time.sleep(0.3)
change()
say("tac", lambda: tac.communicate(b"x")[0])
"#
    );
    let ran = stage.change((&before, domain), "\"repair\"", &script);
    check(&ran, &json!({ "tac": "x" }));
    assert_eq!(ran.actions("connection"), ["reset"]);
    assert!(ran.is_complete());
    assert_eq!(end.join().expect("a peer"), Err(std::io::ErrorKind::ConnectionReset));
}

fn files_are_taken_also_where_another_domain_has_them(stage: &Stage) {
    let domain = "[domains.tac]\nexec = ['/usr/bin/tac']\nfiles.deny = ['${workspace}/secret']\n";
    let after = format!("[files]\ndeny = ['${{workspace}}/secret']\n{domain}");
    let script = format!(
        r#"{HELD}
fd = os.open("secret", os.O_RDWR)
tac = held(fd)
os.close(fd)
time.sleep(0.3)
change()
say("tac", lambda: tac.communicate(b"x")[0])
"#
    );
    let ran = stage.change((domain, &after), "\"repair\"", &script);
    check(&ran, &json!({ "tac": "x" }));
    assert_eq!(ran.actions("descriptor"), ["replaced"], "{}", ran.receipt);
    assert!(ran.is_complete());
}

/// More directories than the monitor may open.
fn files_behind_a_deep_chain_of_directories_are_found(stage: &Stage) {
    let after = "[files]\ndeny = ['${workspace}/**/key.pem']\n";
    let script = r#"
top = os.getcwd()
os.mkdir("other")
for name in ["a", "z"]:
    os.mkdir(name)
    open(name + "/key.pem", "w").close()
    os.link(name + "/key.pem", "other/" + name)
held = [os.open("other/" + name, os.O_RDWR) for name in ["a", "z"]]
os.mkdir("b")
os.chdir("b")
for level in range(1100):
    os.mkdir("d")
    os.chdir("d")
os.chdir(top)
change()
for name, fd in zip(["a", "z"], held):
    say(name, lambda: os.write(fd, b"x"))
    say(name + " anew", lambda: os.open("other/" + name, os.O_RDONLY))
"#;
    let ran = stage.change(("", after), "\"repair\"", script);
    let want = json!({ "a": "EBADF", "a anew": "EACCES", "z": "EBADF", "z anew": "EACCES" });
    check(&ran, &want);
    assert!(ran.is_complete());
}
