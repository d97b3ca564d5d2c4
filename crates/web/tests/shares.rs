//! What one client of HTTP/2 cannot take from the others: memory for replies and requests, turns.

mod common;

use common::{
    Site,
    h2::{self, ask, begin, frame, get, post},
    route,
};
use std::{
    fs,
    io::Write as _,
    time::{Duration, Instant},
};
use web::{Kind, PluginConfig};

/// Replies with what it is given.
const COPY: &str = "long handle(const char *in, long n, char *out, long room) {
    for (long i = 0; i < n; i++) out[i] = in[i];
    return n;
}";

/// Answers after some time.
const SLOW: &str = "long handle(const char *in, long n, char *out, long room) {
    long h = n;
    for (long i = 0; i < 20000000; i++) h = h * 31 + in[i % n];
    out[0] = '\\n'; out[1] = 'a' + (h & 1);
    return 2;
}";

const LARGE: usize = 3_900_000;

/// A site with a large file, one thread, and a plugin that copies.
fn site() -> Site {
    let patient = PluginConfig { time_ms: Some(60_000), ..route("/copy/") };
    let mut site = Site::new().text("copy", COPY, patient);
    fs::write(site.root().join("large.bin"), vec![b'7'; LARGE]).unwrap();
    (site.config.workers, site.config.limits.grace_ms) = (1, 100);
    site
}

#[test]
fn replies_that_one_client_does_not_take_keep_nobody_else_from_theirs() {
    let site = site();
    let server = site.start();
    let address = server.addresses()[0];
    let mut deaf = begin(address, 0);
    for at in 0..60 {
        deaf.write_all(&get(2 * at + 1, "/copy/large.bin")).unwrap();
    }
    std::thread::sleep(Duration::from_secs(2));
    for _ in 0..3 {
        assert_eq!(ask(address, "/numbers.txt"), (200, b"0123456789".to_vec()));
    }
    let (status, content) = ask(address, "/large.bin");
    assert_eq!((status, content.len()), (200, LARGE));
    server.end();
}

#[test]
fn files_that_many_connections_do_not_take_keep_nobody_else_from_theirs() {
    let site = site();
    let server = site.start();
    let address = server.addresses()[0];
    let deaf: Vec<_> = (0..40)
        .map(|_| {
            let mut deaf = begin(address, 0);
            let asked: Vec<_> = (0..64).flat_map(|at| get(2 * at + 1, "/large.bin")).collect();
            deaf.write_all(&asked).unwrap();
            deaf
        })
        .collect();
    std::thread::sleep(Duration::from_secs(1));
    let (status, content) = ask(address, "/large.bin");
    assert_eq!((status, content.len()), (200, LARGE));
    drop(deaf);
    server.end();
}

#[test]
fn who_asks_for_more_than_its_share_at_once_and_takes_it_gets_all() {
    let site = site();
    let server = site.start();
    let mut client = begin(server.addresses()[0], 0x7fff_ffff);
    client.write_all(&frame(h2::WINDOW_UPDATE, 0, 0, &0x7fff_0000_u32.to_be_bytes())).unwrap();
    for at in 0..12 {
        client.write_all(&get(2 * at + 1, "/copy/large.bin")).unwrap();
    }
    let (mut answered, mut ended, mut taken) = (0, 0, 0);
    while ended < 12 {
        let (kind, flags, _, payload) = h2::read(&mut client).unwrap();
        answered += usize::from(kind == h2::HEADERS && payload[0] == 0x88);
        taken += if kind == h2::DATA { payload.len() } else { 0 };
        ended += usize::from(matches!(kind, h2::HEADERS | h2::DATA) && flags & h2::END_STREAM != 0);
        assert_ne!(kind, h2::RST_STREAM);
    }
    assert_eq!((answered, taken), (12, 12 * LARGE));
    server.end();
}

#[test]
fn a_stream_of_which_nothing_is_taken_is_reset_whatever_else_is_asked_for() {
    let mut site = site();
    (site.config.limits.request_ms, site.config.limits.send_ms) = (1000, 1000);
    let server = site.start();
    let mut client = begin(server.addresses()[0], 0);
    client.write_all(&get(1, "/large.bin")).unwrap();
    let begun = Instant::now();
    let mut at = 3;
    while begun.elapsed() < Duration::from_secs(30) {
        let window = frame(h2::WINDOW_UPDATE, 0, at, &1000_u32.to_be_bytes());
        client.write_all(&[get(at, "/numbers.txt"), window].concat()).unwrap();
        loop {
            let (kind, flags, on, _) = h2::read(&mut client).unwrap();
            if (kind, on) == (h2::RST_STREAM, 1) {
                return server.end();
            }
            if (kind, on) == (h2::DATA, at) && flags & h2::END_STREAM != 0 {
                break;
            }
        }
        at += 2;
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("it is still kept");
}

#[test]
fn bodies_that_never_come_keep_nobody_from_an_answer() {
    let handler = PluginConfig { kind: Kind::Handler, ..route("/slow/") };
    let mut site = site().text("slow", SLOW, handler);
    site.config.limits.waiting_bytes = 8 << 20;
    let server = site.start();
    let address = server.addresses()[0];
    // Ever shorter, until no more may be announced.
    let lengths = |at: u32| 1 << (20 - at / 3).max(1);
    let begun: Vec<_> = (0..5)
        .map(|_| {
            let mut begun = begin(address, 65_535);
            let post = |at| post(2 * at + 1, "/slow/", lengths(at));
            begun.write_all(&(0..60).flat_map(post).collect::<Vec<_>>()).unwrap();
            begun
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    let long = format!("/numbers.txt?{}", "x".repeat(2000));
    assert_eq!(ask(address, &long), (200, b"0123456789".to_vec()));
    drop(begun);
    server.end();
}

#[test]
fn who_asks_for_much_at_once_lets_others_have_their_turn() {
    const MANY: u32 = 60;
    let handler = PluginConfig { kind: Kind::Handler, time_ms: Some(60_000), ..route("/slow/") };
    let site = site().text("slow", SLOW, handler);
    let server = site.start();
    let address = server.addresses()[0];
    let mut greedy = begin(address, 65_535);
    let asked: Vec<_> = (0..MANY).flat_map(|at| get(2 * at + 1, "/slow/")).collect();
    let begun = Instant::now();
    greedy.write_all(&asked).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(ask(address, "/numbers.txt"), (200, b"0123456789".to_vec()));
    let other = begun.elapsed();
    let mut ended = 0;
    while ended < MANY {
        let (kind, flags, ..) = h2::read(&mut greedy).unwrap();
        ended += u32::from(kind == h2::DATA && flags & h2::END_STREAM != 0);
    }
    let all = begun.elapsed();
    assert!(other < all / 2, "the other had to wait for all of them: {other:?} of {all:?}");
    server.end();
}

#[test]
fn a_refused_head_has_no_content_over_http_2() {
    let site = site();
    let server = site.start();
    let mut client = begin(server.addresses()[0], 65_535);
    // Two hosts: `host: a`, twice, beside `:authority`.
    let host = [0x0f, 0x17, 1, b'a'];
    let block = [&[0x02, 4][..], b"HEAD", &[0x86, 0x84, 0x01, 1, b't'], &host, &host].concat();
    let flags = h2::END_STREAM | h2::END_HEADERS;
    client.write_all(&frame(h2::HEADERS, flags, 1, &block)).unwrap();
    assert_eq!(h2::answer(&mut client, 1), (400, Vec::new()));
    server.end();
}

#[test]
fn pages_of_directories_that_one_client_does_not_take_count_as_its_own() {
    let mut site = site();
    (site.config.list, site.config.limits.request_ms) = (true, 2000);
    let directory = site.root().join("d");
    fs::create_dir(&directory).unwrap();
    for at in 0..2000 {
        fs::write(directory.join(format!("{at}{}", "&".repeat(200))), "").unwrap();
    }
    let server = site.start();
    let address = server.addresses()[0];
    let page = ask(address, "/d/").1.len();
    assert!(page > 2 << 20, "{page} bytes");
    let mut deaf = begin(address, 0);
    deaf.write_all(&(0..20).flat_map(|at| get(2 * at + 1, "/d/")).collect::<Vec<_>>()).unwrap();
    let (mut made, mut refused) = (0, 0);
    while made + refused < 20 {
        let (kind, _, _, payload) = h2::read(&mut deaf).unwrap();
        if kind == h2::HEADERS {
            // 200 as HPACK's table has it.
            let is_made = payload[0] == 0x88;
            (made, refused) = (made + usize::from(is_made), refused + usize::from(!is_made));
        }
    }
    assert!(made * page < 20 << 20, "{made} pages of {page} bytes");
    assert_eq!(ask(address, "/d/").0, 200);
    server.end();
}
