//! Connections that are taken while a program has them.

use super::{LOOP, Running, done, profile};
use crate::{Case, cases, dewar::Call, process::until, stage::Stage};
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::mpsc::{Receiver, channel},
};
use test_support::Variant;

/// The cases of this part.
pub(super) const CASES: &[Case] = cases![a_host_is_taken_with_its_connections];

/// Those that are tried in surroundings, too.
pub(crate) const SURROUNDED: &[Case] = cases![who_has_a_connection_that_is_taken_has_it_no_more];

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

/// Its server sees the end. Where a container refuses the monitor the sockets of others, whoever
/// has one is killed, and nobody else.
fn who_has_a_connection_that_is_taken_has_it_no_more(stage: &Stage) {
    // From outside of another sandbox, nobody reaches a run in it.
    if matches!(stage.variant, Variant::NestedRoot | Variant::NestedUser) {
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
    let is_ended = stage.variant.has_descriptors();
    let done = if is_ended { "\"connection\": 7" } else { "\"done\": \"killed\"" };
    assert!(receipt.contains(done) && receipt.contains("\"connection\": 7"), "{receipt}");
    let mut holders: Vec<&str> = receipt.lines().filter(|line| line.contains("\"pid\"")).collect();
    let named = holders.len();
    holders.sort_unstable();
    holders.dedup();
    assert_eq!(holders.len(), named, "who holds it is named once: {receipt}");
    until(|| ends.try_recv().ok()).expect("the server sees the end");
    let ran = running.stop();
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let status = std::fs::read_to_string(stage.work().join("status")).expect("a status");
    assert_eq!(status, if is_ended { "0\n" } else { "137\n" }, "{receipt}");
}
