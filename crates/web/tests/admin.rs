//! Administration while requests come.

mod common;

use common::{Site, get, gray, image, split};
use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

fn admin(socket: &Path, method: &str, target: &str, body: &str) -> common::Reply {
    let mut stream = UnixStream::connect(socket).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    split(&all).0
}

fn fill(byte: char) -> String {
    format!(
        "long handle(const char *in, long n, char *out, long room) {{
            long i; for (i = 0; i < 1000; i++) out[i] = '{byte}'; return i; }}"
    )
}

#[test]
fn a_plugin_is_loaded_replaced_and_unloaded_without_a_lost_request() {
    let mut site = Site::new();
    let socket = site.directory.path().join("admin");
    site.config.admin = Some(socket.clone());
    let server = site.start();
    let address = server.addresses()[0];
    assert_eq!(get(address, "/fill/numbers.txt").status, 404);
    let loaded = admin(&socket, "POST", "/plugins/fill?route=%2Ffill%2F", &fill('a'));
    assert_eq!((loaded.status, loaded.text().as_str()), (201, "fill: version 1 is in use\n"));
    let again = admin(&socket, "POST", "/plugins/fill?route=/fill/", &fill('a'));
    assert_eq!(again.status, 409);
    assert!(again.text().contains("`dewar plugin replace fill`"), "{}", again.text());
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut served = 0;
                while !over.load(Ordering::Relaxed) || served < 10 {
                    let reply = get(address, "/fill/numbers.txt");
                    assert_eq!(reply.status, 200, "{}", reply.text());
                    let one = reply.body[0];
                    assert!(reply.body.len() == 1000 && reply.body.iter().all(|byte| *byte == one));
                    served += 1;
                }
            });
        }
        for turn in 0..10_u8 {
            let text = fill(char::from(b'a' + turn));
            let replaced = admin(&socket, "PUT", "/plugins/fill", &text);
            assert_eq!(replaced.status, 200, "{}", replaced.text());
            let now = get(address, "/fill/numbers.txt").body;
            assert_eq!(now[0], b'a' + turn, "the new one answers from now on");
        }
        over.store(true, Ordering::Relaxed);
    });
    let wrong = admin(&socket, "PUT", "/plugins/fill", "long handle(const char *in) { return x; }");
    assert_eq!(wrong.status, 422);
    let text = wrong.text();
    assert!(
        text.contains('x') && text.contains("long handle(const char *in)"),
        "as the compiler prints it: {text}"
    );
    assert_eq!(get(address, "/fill/numbers.txt").body[0], b'j', "the old one stays");
    let list = admin(&socket, "GET", "/plugins", "").text();
    assert!(list.contains("\"version\": 11"), "{list}");
    assert_eq!(admin(&socket, "DELETE", "/plugins/fill", "").status, 200);
    assert_eq!(get(address, "/fill/numbers.txt").status, 404);
    assert_eq!(admin(&socket, "PUT", "/plugins/fill", &fill('a')).status, 409);
    server.end();
    assert!(!socket.exists());
}

/// By its path, somebody else's file could get its mode, where others can write in the directory.
#[test]
fn the_socket_is_the_user_s_own_from_the_start() {
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    let mut site = Site::new();
    let socket = site.directory.path().join("admin");
    site.config.admin = Some(socket.clone());
    let events = inotify::init(CreateFlags::NONBLOCK).unwrap();
    let flags = WatchFlags::CREATE | WatchFlags::ATTRIB;
    inotify::add_watch(&events, site.directory.path(), flags).unwrap();
    let server = site.start();
    let mut room = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&events, &mut room);
    let mut seen = Vec::new();
    while let Ok(event) = events.next() {
        seen.extend(event.file_name().filter(|it| *it == c"admin").map(|_| event.events()));
    }
    assert_eq!(seen, [ReadFlags::CREATE], "nothing changes it");
    let mode = fs::symlink_metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.end();
}

#[test]
fn what_a_plugin_was_for_is_served_as_it_is_once_it_is_unloaded_and_never_refused() {
    let mut site = Site::new();
    let socket = site.directory.path().join("admin");
    site.config.admin = Some(socket.clone());
    let server = site.start();
    let address = server.addresses()[0];
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut stream = common::connect(address);
                let (mut reply, request) =
                    (vec![0; 4096], "GET /numbers.txt HTTP/1.1\r\nHost: t\r\n\r\n");
                while !over.load(Ordering::Relaxed) {
                    stream.write_all(request.as_bytes()).unwrap();
                    let count = stream.read(&mut reply).unwrap();
                    let head = String::from_utf8_lossy(&reply[..count]);
                    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
                }
            });
        }
        for _ in 0..50 {
            let loaded = admin(&socket, "POST", "/plugins/fill?type=text/plain", &fill('a'));
            assert_eq!(loaded.status, 201, "{}", loaded.text());
            assert_eq!(get(address, "/numbers.txt").body.len(), 1000);
            assert_eq!(admin(&socket, "DELETE", "/plugins/fill", "").status, 200);
            assert_eq!(get(address, "/numbers.txt").text(), "0123456789");
        }
        over.store(true, Ordering::Relaxed);
    });
    server.end();
}

#[test]
fn the_status_page_and_metrics_show_and_change_nothing_and_only_by_address() {
    let mut site = Site::new().plugin("gray", common::shipped("gray.e", common::route("/gray/")));
    site.config.status = Some("127.0.0.1:0".to_owned());
    let log = site.directory.path().join("log");
    site.config.access_log = Some(log.clone());
    let server = site.start();
    let (address, status) = (server.addresses()[0], server.status().unwrap());
    for _ in 0..7 {
        assert_eq!(get(address, "/gray/a.ppm").body, gray(&image(60, 50)));
    }
    let ask = |text: &str| {
        let mut stream = TcpStream::connect(status).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        split(&all).0
    };
    let metrics = ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n").text();
    assert!(metrics.contains("dewar_plugin_calls_total{plugin=\"gray\"} 7\n"), "{metrics}");
    assert!(metrics.contains("dewar_requests_total{status=\"2xx\"} 7\n"), "{metrics}");
    assert!(
        ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .text()
            .contains("<title>Dewar: status</title>")
    );
    assert_eq!(ask("GET /status HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
    assert_eq!(ask("DELETE /plugins/gray HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
    let long = "PUT /plugins/gray HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n";
    assert_eq!(ask(long).status, 413, "it is not waited for");
    server.end();
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.lines().filter(|line| line.ends_with(" gray")).count(), 7, "{log}");
}

#[test]
fn who_asks_for_the_status_byte_by_byte_is_let_go() {
    let mut site = Site::new();
    site.config.status = Some("127.0.0.1:0".to_owned());
    let server = site.start();
    let mut slow = TcpStream::connect(server.status().unwrap()).unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
    // Each byte comes well within the time that one piece has.
    let sent = (0..60).find(|_| {
        thread::sleep(std::time::Duration::from_secs(1));
        slow.write_all(b"x").is_err()
    });
    assert!(sent.is_some(), "it is still listened to");
    server.end();
}

#[test]
fn who_asks_for_nothing_keeps_nobody_from_the_status() {
    let mut site = Site::new();
    site.config.status = Some("127.0.0.1:0".to_owned());
    let server = site.start();
    let status = server.status().unwrap();
    let silent: Vec<_> = (0..40)
        .map(|_| {
            let mut silent = TcpStream::connect(status).unwrap();
            silent.write_all(b"G").unwrap();
            silent
        })
        .collect();
    let reply = common::raw(status, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(reply.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&reply));
    drop(silent);
    server.end();
}
