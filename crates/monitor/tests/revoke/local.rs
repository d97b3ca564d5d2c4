//! Connections of unix sockets.

use crate::{
    Case, cases,
    stage::{Stage, check},
};
use serde_json::json;
use std::{io::Read, os::unix::net::UnixListener};

pub(crate) const CASES: &[Case] = cases![
    unix_connections_end,
    unix_connections_end_whatever_their_peer_is_called,
    unix_connections_end_however_many_there_have_been,
];

fn unix_connections_end(stage: &Stage) {
    let path = stage.path().join("service");
    let listener = UnixListener::bind(&path).expect("bind");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .expect("chmod");
    let peer = std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("accept");
        let mut bytes = Vec::new();
        peer.read_to_end(&mut bytes).expect("read");
        bytes
    });
    let grant = format!("[network]\nconnect = ['unix:{}']\n", path.display());
    let ran = stage.change(
        (&grant, ""),
        "\"repair\"",
        r#"
service = socket.socket(socket.AF_UNIX)
service.connect("service")
service.send(b"before")
change()
say("send", lambda: service.send(b"after"))
say("receive", lambda: service.recv(5))
say("new", lambda: socket.socket(socket.AF_UNIX).connect("service"))
"#,
    );
    check(&ran, &json!({ "send": "EPIPE", "receive": "", "new": "EACCES" }));
    assert_eq!(ran.actions("connection"), ["shutdown"]);
    assert_eq!(peer.join().expect("a peer"), b"before");
}

/// A service whose socket has another name by now, and the rule that grants it.
fn renamed_service(stage: &Stage) -> (UnixListener, String) {
    let (made, renamed) = (stage.path().join("made"), stage.path().join("renamed"));
    let listener = UnixListener::bind(&made).expect("bind");
    std::fs::rename(&made, &renamed).expect("rename");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&renamed, mode).expect("chmod");
    let grant = format!("[network]\nconnect = ['unix:{}']\n", renamed.display());
    (listener, grant)
}

fn unix_connections_end_whatever_their_peer_is_called(stage: &Stage) {
    let (listener, grant) = renamed_service(stage);
    let ran = stage.change(
        (&grant, ""),
        "\"repair\"",
        r#"
service = socket.socket(socket.AF_UNIX)
service.connect("renamed")
own = socket.socket(socket.AF_UNIX)
own.bind("made")
change()
say("send", lambda: service.send(b"after"))
"#,
    );
    drop(listener);
    check(&ran, &json!({ "send": "EPIPE" }));
    assert_eq!(ran.actions("connection"), ["shutdown"]);
}

fn unix_connections_end_however_many_there_have_been(stage: &Stage) {
    let (listener, grant) = renamed_service(stage);
    let ran = stage.change(
        (&grant, ""),
        "\"repair\"",
        r#"
service = socket.socket(socket.AF_UNIX)
service.connect("renamed")
own = socket.socket(socket.AF_UNIX)
own.bind("made")
own.listen()
for _ in range(17000):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("made")
        own.accept()[0].close()
change()
say("send", lambda: service.send(b"after"))
"#,
    );
    drop(listener);
    check(&ran, &json!({ "send": "EPIPE" }));
    assert_eq!(ran.actions("connection"), ["shutdown"]);
}
