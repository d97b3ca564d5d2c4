//! What one address cannot take from the others over HTTP/1.1: memory for replies and requests.

mod common;

use common::{Site, route, split};
use rustix::net::{
    AddressFamily, Ipv4Addr, SocketAddrV4, SocketType, bind, connect, socket, sockopt,
};
use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread::sleep,
    time::Duration,
};
use web::{Kind, PluginConfig, Server};

/// Replies with what it is given.
const COPY: &str = "long handle(const char *in, long n, char *out, long room) {
    for (long i = 0; i < n; i++) out[i] = in[i];
    return n;
}";

/// Replies with what it was sent.
const TAKE: &str = "long handle(const char *in, long n, char *out, long room) {
    out[0] = '\\n'; out[1] = in[n - 1];
    return 2;
}";

const LARGE: usize = 3_900_000;
const FILE: usize = 60_000_000;

/// Two clients.
const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

fn site() -> Site {
    let patient = PluginConfig { time_ms: Some(60_000), ..route("/copy/") };
    let handler = PluginConfig { kind: Kind::Handler, ..route("/take/") };
    let mut site = Site::new().text("copy", COPY, patient).text("take", TAKE, handler);
    fs::write(site.root().join("large.bin"), vec![b'7'; LARGE]).unwrap();
    File::create(site.root().join("file.bin")).unwrap().set_len(FILE as u64).unwrap();
    (site.config.workers, site.config.limits.grace_ms) = (1, 100);
    site
}

/// A connection from an address; little of what it is sent lies in the kernel.
fn from(client: Ipv4Addr, server: &Server) -> TcpStream {
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_recv_buffer_size(&fd, 16 << 10).unwrap();
    bind(&fd, &SocketAddrV4::new(client, 0)).unwrap();
    let SocketAddr::V4(address) = server.addresses()[0] else { panic!("no IPv4") };
    connect(&fd, &address).unwrap();
    let stream = TcpStream::from(fd);
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn asks(client: Ipv4Addr, server: &Server, path: &str) -> TcpStream {
    let mut stream = from(client, server);
    let request = format!("GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn replies_that_one_address_does_not_take_cut_off_nobody_else_s() {
    let site = site();
    let server = site.start();
    let mut others =
        ["/file.bin", "/copy/large.bin"].map(|path| (path, asks(OTHER, &server, path)));
    let mut deaf: Vec<_> = (0..40).map(|_| asks(GREEDY, &server, "/copy/large.bin")).collect();
    sleep(Duration::from_secs(1));
    for _ in 0..3 {
        deaf.extend((0..16).map(|_| asks(GREEDY, &server, "/copy/large.bin")));
        sleep(Duration::from_millis(700));
    }
    for path in ["/file.bin", "/copy/large.bin"] {
        let mut stream = asks(OTHER, &server, path);
        let mut all = vec![0; 1 << 20];
        stream.read_exact(&mut all).unwrap();
        sleep(Duration::from_millis(200));
        let _ = stream.read_to_end(&mut all);
        let (reply, _) = split(&all);
        let want = if path == "/file.bin" { FILE } else { LARGE };
        assert_eq!((reply.status, reply.body.len()), (200, want), "{path}");
    }
    for (path, stream) in &mut others {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let want = if *path == "/file.bin" { FILE } else { LARGE };
        assert_eq!(split(&all).0.body.len(), want, "{path}, begun before");
    }
    drop(deaf);
    server.end();
}

#[test]
fn bodies_of_one_address_that_never_come_keep_nobody_else_from_an_answer() {
    let mut site = site();
    site.config.limits.waiting_bytes = 1 << 20;
    let server = site.start();
    let begun = |client, announced, sent| {
        let mut stream = from(client, &server);
        let head = format!(
            "POST /take/ HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {announced}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), &vec![b'x'; sent]].concat()).unwrap();
        stream
    };
    // Long ones, and so many short ones that they fill it alone.
    let mut held: Vec<_> = (0..40).map(|_| begun(GREEDY, 200_000, 60_000)).collect();
    held.extend((0..100).map(|_| begun(GREEDY, 200_000, 15_000)));
    sleep(Duration::from_millis(300));
    let mut other = begun(OTHER, 100_001, 100_000);
    sleep(Duration::from_millis(300));
    held.extend((0..40).map(|_| begun(GREEDY, 200_000, 60_000)));
    sleep(Duration::from_millis(300));
    other.write_all(b"y").unwrap();
    let mut all = Vec::new();
    let _ = other.read_to_end(&mut all);
    let (reply, _) = split(&all);
    assert_eq!((reply.status, &*reply.text()), (200, "y"));
    drop(held);
    server.end();
}
