//! Files and connections: what policy grants, what it denies, and that handles are worth nothing
//! but what they are.

mod common;

use common::{host_of, reload, server, spec};
use plugin_host::{CallFailure, Limits, PluginSpec};
use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::symlink,
    time::Duration,
};

/// Opens what the request names, and replies with what is in it or with the error.
const CAT: &str = "long handle(const char *in, long n, char *out, long room) {
    int file = host_open(in, n);
    if (file < 0) { out[0] = '-'; out[1] = '0' - file / 10; out[2] = '0' - file % 10; return 3; }
    long read = host_read(file, out, room);
    host_close(file);
    return read;
}";

/// Labels a directory `note_t`, with `secret` in it `secret_t`; plugins may read notes.
fn notes(dir: &str) -> String {
    format!(
        r#"(type note_t) (type secret_t) (roletype object_r note_t) (roletype object_r secret_t)
        (filecon "{dir}(/.*)?" any (dewar_u object_r note_t ((s0) (s0))))
        (filecon "{dir}/secret.*" any (dewar_u object_r secret_t ((s0) (s0))))
        (allow plugin_t note_t (file (open read)))"#
    )
}

#[test]
fn a_file_is_read_by_its_label_and_not_by_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let at = |name: &str| path.join(name).to_str().unwrap().to_owned();
    fs::write(at("note"), "a note").unwrap();
    fs::write(at("secret"), "a secret").unwrap();
    symlink(at("secret"), at("innocent")).unwrap();
    symlink(at("note"), at("secret-link")).unwrap();
    fs::create_dir(at("secrets")).unwrap();
    fs::write(at("secrets/there"), "a secret").unwrap();
    fs::create_dir(at("notes")).unwrap();
    symlink("secrets", at("innocents")).unwrap();
    symlink("notes", at("secret-notes")).unwrap();
    symlink("secrets/none", at("dangling")).unwrap();
    let server = server(&notes(path.to_str().unwrap()));
    let host = host_of(&server, None);
    host.load(&spec("cat", CAT)).unwrap();
    let fifo = at("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for (name, want) in [
        (at("note"), "a note"),
        (at("secret-link"), "a note"),
        (at("secret"), "-13"),
        (at("innocent"), "-13"),
        (at("missing"), "-02"),
        (at("secret-missing"), "-13"),
        (at("../missing"), "-13"),
        (at("innocents/there"), "-13"),
        (at("innocents/missing"), "-13"),
        (at("innocents/there/missing"), "-13"),
        (at("dangling"), "-13"),
        (at("dangling/missing"), "-13"),
        (at("secret-notes/missing"), "-02"),
        (at("./missing"), "-02"),
        (at("secrets/../note"), "-13"),
        (at("secrets/none/../../note"), "-13"),
        (at("notes/../note"), "-13"),
        (fifo, "-13"),
        ("/proc/self/mem".into(), "-13"),
        ("/proc/self/fd/0".into(), "-13"),
        ("/dev/zero".into(), "-13"),
        (path.to_str().unwrap().into(), "-13"),
        ("note".into(), "-13"),
    ] {
        assert_eq!(host.call("cat", name.as_bytes()).unwrap(), want.as_bytes(), "{name}");
    }
    let denial = host.denials().into_iter().find(|d| d.object == Some(at("secret"))).unwrap();
    assert_eq!(denial.permissions().collect::<Vec<_>>(), ["read", "open"]);
    let why = denial.explain(&*server).unwrap();
    let rule = why.would_allow.unwrap();
    assert!(rule.contains("plugin_t") && rule.contains("secret_t"), "{rule}");
    assert!(host.list()[0].stats.denials >= 3);
}

#[test]
fn a_permission_taken_back_holds_for_what_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let note = path.join("note");
    fs::write(&note, "a note").unwrap();
    let server = server(&notes(path.to_str().unwrap()));
    let host = host_of(&server, None);
    // Reads, waits for the other end, reads again.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let rules = notes(path.to_str().unwrap())
        + "(allow plugin_t self (tcp_socket (create connect)))
           (allow plugin_t object_t (endpoint (name_connect)))";
    let text = format!(
        "long handle(const char *in, long n, char *out, long room) {{
            int file = host_open(in, n);
            long first = host_read(file, out, 1);
            int peer = host_connect(\"{address}\", {});
            long waited = host_read(peer, out, 1), second = host_read(file, out, 1);
            out[0] = '0' + first; out[1] = '0' + waited; out[2] = second == -13 ? 'd' : 'r';
            return 3; }}",
        address.len()
    );
    reload(&server, &host, &rules);
    host.load(&spec("wait", &text)).unwrap();
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| host.call("wait", note.to_str().unwrap().as_bytes()));
        let (mut peer, _) = listener.accept().unwrap();
        let revoked = rules.replace("(allow plugin_t note_t (file (open read)))", "");
        reload(&server, &host, &revoked);
        peer.write_all(b"x").unwrap();
        assert_eq!(caller.join().unwrap().unwrap(), b"11d");
    });
}

#[test]
fn a_connection_needs_the_permission_and_carries_bytes_both_ways() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let text = "long handle(const char *in, long n, char *out, long room) {
        int peer = host_connect(in, n);
        if (peer < 0) { out[0] = peer == -13 ? 'd' : peer == -111 ? 'r' : '?'; return 1; }
        if (host_write(peer, \"ping\", 4) != 4) return 0;
        return host_read(peer, out, room);
    }";
    let server = server("");
    let host = host_of(&server, None);
    host.load(&spec("ping", text)).unwrap();
    assert_eq!(host.call("ping", address.as_bytes()).unwrap(), b"d");
    assert_eq!(host.call("ping", b"localhost:1").unwrap(), b"?");
    let rules = "(allow plugin_t self (tcp_socket (create connect)))";
    reload(&server, &host, rules);
    assert_eq!(host.call("ping", address.as_bytes()).unwrap(), b"d");
    let rules = rules.to_owned() + "(allow plugin_t object_t (endpoint (name_connect)))";
    reload(&server, &host, &rules);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut peer, _) = listener.accept().unwrap();
            let mut ping = [0; 4];
            peer.read_exact(&mut ping).unwrap();
            assert_eq!(&ping, b"ping");
            peer.write_all(b"pong").unwrap();
        });
        assert_eq!(host.call("ping", address.as_bytes()).unwrap(), b"pong");
    });
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let limits = Limits { call_time: Duration::from_millis(100), ..Limits::default() };
    host.load(&PluginSpec { limits, ..spec("hasty", text) }).unwrap();
    assert!(matches!(host.call("hasty", address.as_bytes()), Err(CallFailure::Timeout(_))));
    drop(silent);
    assert_eq!(host.call("ping", address.as_bytes()).unwrap(), b"r");
}

#[test]
fn forged_handles_are_errors_and_handles_end_with_their_call() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let note = path.join("note");
    fs::write(&note, "a note").unwrap();
    let host = host_of(&server(&notes(path.to_str().unwrap())), None);
    let text = "long handle(const char *in, long n, char *out, long room) {
        long wrong = 0;
        for (long h = -3; h < 70000; h++)
            if (host_read(h, out, 1) != -9 || host_write(h, in, 1) != -9 || host_close(h) != -9) wrong++;
        int file = host_open(in, n), opened = 1;
        if (host_write(file, in, 1) != -13) wrong++;
        if (host_read(file + 1, out, 1) != -9) wrong++;
        while (host_open(in, n) >= 0) opened++;
        out[0] = wrong ? 'w' : 'k'; out[1] = 'a' + opened;
        return 2;
    }";
    host.load(&spec("forge", text)).unwrap();
    for _ in 0..3 {
        assert_eq!(host.call("forge", note.to_str().unwrap().as_bytes()).unwrap(), b"kq");
    }
}

#[test]
fn a_plugin_that_asks_for_ever_more_does_not_push_out_what_others_were_denied() {
    let host = host_of(&server(""), None);
    host.load(&spec("quiet", CAT)).unwrap();
    host.load(&spec("loud", CAT)).unwrap();
    assert_eq!(host.call("quiet", b"/etc/passwd").unwrap(), b"-13");
    for n in 0..600 {
        assert_eq!(host.call("loud", format!("/missing/{n}").as_bytes()).unwrap(), b"-13");
    }
    let denials = host.denials();
    assert_eq!(denials[0].plugin, "quiet");
    assert_eq!(denials.len(), 33);
    assert_eq!(denials.last().unwrap().object.as_deref(), Some("/missing/599"));
}
