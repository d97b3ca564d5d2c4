//! Attacks on the limits of the network.

use crate::{
    Case, cases,
    stage::{Stage, held},
};
use std::{
    io::Read as _,
    net::TcpListener,
    os::{linux::net::SocketAddrExt as _, unix::net},
    time::Duration,
};

pub(crate) const CASES: &[Case] = cases![
    connecting_by_tcp_fast_open,
    listening_without_a_bind,
    connecting_to_a_name_that_was_its_own,
    sending_packets_in_the_name_of_the_monitor,
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

fn connecting_to_a_name_that_was_its_own(stage: &Stage) {
    let name = format!("{}", stage.home().display());
    let profile = stage.profile(ONE_PORT);
    let attack = stage.command(stage.call(&profile), "forgotten_name", &[&name]).spawn();
    let attack = attack.expect("start `dewar`");
    while !stage.work().join("free").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let address = net::SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = net::UnixListener::bind_addr(&address).expect("take the name");
    stage.file("work/taken", "");
    held(&attack.wait_with_output().expect("wait for `dewar`"));
    listener.set_nonblocking(true).expect("not to wait");
    let mut text = String::new();
    if let Ok((mut connection, _)) = listener.accept() {
        let _ = connection.read_to_string(&mut text);
    }
    assert_eq!(text, "", "the attack has sent something");
}
