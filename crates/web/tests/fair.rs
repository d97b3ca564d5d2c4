//! What one client cannot take from the others: turns, memory, descriptors, connections.

mod common;

use common::{
    Site, connect, get,
    h2::{DATA, HEADERS, PING, frame},
    route, split,
};
use std::{
    fs,
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};
use web::{Kind, PluginConfig, Server};

/// Answers after a few milliseconds.
const SLOW: &str = "long handle(const char *in, long n, char *out, long room) {
    long h = n;
    for (long i = 0; i < 3000000; i++) h = h * 31 + in[i % n];
    out[0] = '\\n'; out[1] = 'a' + (h & 1);
    return 2;
}";

fn handler(path: &str) -> PluginConfig {
    let limits = PluginConfig { kind: Kind::Handler, ..route(path) };
    PluginConfig { time_ms: Some(60_000), ..limits }
}

/// How many answers there are among what has come by now.
fn answers_so_far(stream: &mut TcpStream) -> usize {
    stream.set_nonblocking(true).unwrap();
    let (mut all, mut piece) = (Vec::new(), [0; 1 << 16]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_nonblocking(false).unwrap();
    all.windows(9).filter(|it| it == b"HTTP/1.1 ").count()
}

#[test]
fn who_asks_for_much_in_a_row_lets_others_have_their_turn() {
    const MANY: usize = 100;
    let mut site = Site::new().text("slow", SLOW, handler("/slow/"));
    site.config.workers = 1;
    let server = site.start();
    let address = server.addresses()[0];
    let mut greedy = connect(address);
    greedy.write_all(&b"GET /slow/x HTTP/1.1\r\nHost: t\r\n\r\n".repeat(MANY)).unwrap();
    // They have come when the first is answered.
    let mut first = [0; 9];
    greedy.read_exact(&mut first).unwrap();
    assert_eq!(get(address, "/numbers.txt").text(), "0123456789");
    let before = answers_so_far(&mut greedy);
    assert!(before < MANY - 1, "the other had to wait for all of them");
    let (mut seen, mut piece) = (before, [0; 1 << 16]);
    while seen < MANY - 1 {
        let count = greedy.read(&mut piece).unwrap();
        assert!(count > 0, "all are answered in the end");
        seen += piece[..count].windows(9).filter(|it| it == b"HTTP/1.1 ").count();
    }
    server.end();
}

#[test]
fn requests_that_are_never_finished_take_no_more_memory_than_they_may_all_together() {
    let mut site = Site::new().text("slow", SLOW, handler("/slow/"));
    site.config.workers = 1;
    site.config.limits.waiting_bytes = 100_000;
    let server = site.start();
    let address = server.addresses()[0];
    let begun = |transfer: &str| {
        let mut stream = connect(address);
        let head = format!("POST /slow/ HTTP/1.1\r\nHost: t\r\n{transfer}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&[b'x'; 60_000]).unwrap();
        stream
    };
    let mut held = begun("Content-Length: 1000000\r\n");
    let mut refused = begun("Content-Length: 1000000\r\n");
    // One of the two: they are read piece by piece, in turn.
    let mut seen = 0;
    for _ in 0..200 {
        seen = answers_so_far(&mut held) + answers_so_far(&mut refused);
        if seen > 0 {
            break;
        }
        assert_eq!(get(address, "/numbers.txt").text(), "0123456789");
    }
    assert_eq!(seen, 1, "one of them is refused, and the other is not");
    server.end();
}

#[test]
fn one_file_is_opened_once_however_its_path_is_written() {
    let mut site = Site::new();
    site.config.workers = 1;
    site.config.revalidate_ms = 60_000;
    let server = site.start();
    let address = server.addresses()[0];
    let file = fs::canonicalize(site.root().join("numbers.txt")).unwrap();
    for count in 0..100 {
        for path in [
            format!("/{}numbers.txt", "./".repeat(count)),
            format!("{}/numbers.txt", "/".repeat(count)),
            format!("/numbers.txt{}", "?".repeat(count)),
            "/%6eumbers.txt".to_owned(),
        ] {
            assert_eq!(get(address, &path).text(), "0123456789", "{path}");
        }
    }
    let fds = fs::read_dir("/proc/self/fd").unwrap();
    let open = fds
        .filter(|fd| fs::read_link(fd.as_ref().unwrap().path()).is_ok_and(|target| target == file));
    assert_eq!(open.count(), 1);
    server.end();
}

/// Bytes of files that are kept for plugins, and compressed.
fn bytes_kept(server: &Server) -> usize {
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let metrics = split(&common::raw(server.status().unwrap(), request)).0.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("dewar_image_bytes "));
    line.unwrap().parse().unwrap()
}

#[test]
fn compressed_files_take_no_more_memory_than_they_may() {
    let mut site = Site::new();
    (site.config.workers, site.config.revalidate_ms) = (1, 60_000);
    site.config.limits.image_bytes = 100_000;
    site.config.status = Some("127.0.0.1:0".to_owned());
    // Digits without order: half as long in gzip.
    let mut state = 1_u32;
    for name in 0..20 {
        let digit = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b'0' + (state >> 24) as u8 % 10
        };
        let text: Vec<u8> = (0..50_000).map(digit).collect();
        fs::write(site.root().join(format!("{name}.txt")), text).unwrap();
    }
    let server = site.start();
    for name in 0..20 {
        let path = format!("/{name}.txt");
        let reply = common::ask(server.addresses()[0], "GET", &path, "Accept-Encoding: gzip\r\n");
        assert_eq!(reply.field("content-encoding").as_deref(), Some("gzip"));
        let now = bytes_kept(&server);
        assert!(now <= 100_000, "{now}");
        assert!(name > 0 || now == reply.body.len(), "it counts what is kept: {now}");
    }
    server.end();
}

#[test]
fn files_of_which_a_plugin_makes_nothing_take_no_more_memory_than_they_may() {
    const NOTHING: &str = "long handle(const char *in, long n, char *out, long room) { return 0; }";
    const TRAPS: &str = "long handle(const char *in, long n, char *out, long room) {
        return 1 / (n - n);
    }";
    let faulty = PluginConfig { faults: Some(2), ..route("/traps/") };
    let mut site =
        Site::new().text("nothing", NOTHING, route("/nothing/")).text("traps", TRAPS, faulty);
    (site.config.workers, site.config.revalidate_ms) = (1, 60_000);
    site.config.limits.image_bytes = 100_000;
    site.config.status = Some("127.0.0.1:0".to_owned());
    for name in 0..10 {
        fs::write(site.root().join(format!("{name}.bin")), [b'x'; 60_000]).unwrap();
    }
    fs::write(site.root().join("long.bin"), [b'x'; 100_001]).unwrap();
    let server = site.start();
    let address = server.addresses()[0];
    for route in ["nothing", "traps"] {
        for name in 0..10 {
            let reply = get(address, &format!("/{route}/{name}.bin"));
            assert!(matches!(reply.status, 502 | 503), "{}", reply.status);
            let now = bytes_kept(&server);
            assert!(now <= 100_000, "{route}, {name}: {now}");
        }
    }
    // What is longer is not read at all.
    let before = bytes_kept(&server);
    assert_eq!(get(address, "/nothing/long.bin").status, 503);
    assert_eq!(bytes_kept(&server), before);
    assert_eq!(get(address, "/long.bin").body.len(), 100_001);
    server.end();
}

/// A client that speaks HTTP/2 and answers every ping; how many bytes of data it was sent until the
/// server let it go.
fn until_let_go(address: SocketAddr, request: &[u8]) -> usize {
    let mut stream = connect(address);
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(4, 0, 0, &[])).unwrap();
    stream.write_all(request).unwrap();
    let (mut pings, mut data) = (0, 0);
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return data;
        }
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; len];
        if stream.read_exact(&mut payload).is_err() {
            return data;
        }
        data += usize::from(head[3] == DATA) * len;
        if head[3] == PING && head[4] == 0 {
            pings += 1;
            assert!(pings < 20, "it is still kept after {pings} pings");
            let _ = stream.write_all(&frame(PING, 1, 0, &payload));
        }
    }
}

#[test]
fn who_takes_nothing_over_http_2_is_let_go_though_it_answers_pings() {
    let mut site = Site::new();
    fs::write(site.root().join("index.html"), vec![b'7'; 1 << 20]).unwrap();
    let limits = &mut site.config.limits;
    (limits.request_ms, limits.send_ms, limits.idle_ms) = (1500, 1500, 60_000);
    (limits.grace_ms, site.config.workers) = (100, 1);
    let server = site.start();
    // `:method: GET`, `:scheme: http`, `:path: /`, `:authority: t`; its window is never widened.
    let get = [0x82, 0x86, 0x84, 0x01, 1, b't'];
    let data = until_let_go(server.addresses()[0], &frame(HEADERS, 5, 1, &get));
    assert_eq!(data, 65_535);
    server.end();
}

#[test]
fn who_asks_for_nothing_over_http_2_is_let_go_though_it_answers_pings() {
    let mut site = Site::new();
    (site.config.limits.idle_ms, site.config.limits.grace_ms) = (1500, 100);
    site.config.workers = 1;
    let server = site.start();
    assert_eq!(until_let_go(server.addresses()[0], &[]), 0);
    let reply = common::raw(server.addresses()[0], b"GET /numbers.txt HTTP/1.0\r\n\r\n");
    assert_eq!(split(&reply).0.text(), "0123456789");
    server.end();
}
