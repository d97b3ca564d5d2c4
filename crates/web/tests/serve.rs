//! Files over HTTP/1.1.

mod common;

use common::{Site, ask, connect, get, raw, route, split};
use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};
use web::{Config, Listen, Server};

#[test]
fn a_file_comes_with_its_type_and_length_and_date() {
    let site = Site::new();
    let server = site.start();
    let address = server.addresses()[0];
    let reply = get(address, "/numbers.txt");
    assert_eq!((reply.status, reply.text().as_str()), (200, "0123456789"), "{}", reply.head);
    assert_eq!(reply.field("content-type").as_deref(), Some("text/plain; charset=utf-8"));
    assert!(reply.field("date").is_some() && reply.field("last-modified").is_some());
    let reply = get(address, "/");
    assert_eq!((reply.status, reply.text().as_str()), (200, "<p>hello</p>\n"));
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 253) as u8).collect();
    fs::write(site.root().join("large.bin"), &large).unwrap();
    assert_eq!(get(address, "/large.bin").body, large);
    let head = ask(address, "HEAD", "/large.bin", "");
    assert_eq!((head.status, head.field("content-length").as_deref()), (200, Some("3000000")));
    assert!(head.body.is_empty());
    assert_eq!(ask(address, "POST", "/numbers.txt", "Content-Length: 0\r\n").status, 405);
    assert_eq!(get(address, "/none").status, 404);
    server.end();
}

#[test]
fn requests_in_a_row_are_answered_in_their_order() {
    let site = Site::new();
    fs::write(site.root().join("b.txt"), vec![b'b'; 100_000]).unwrap();
    let server = site.start();
    let one = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n");
    let last = "GET /numbers.txt HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    let mut request = String::new();
    for _ in 0..50 {
        request += &one("/b.txt");
        request += &one("/none");
    }
    let all = raw(server.addresses()[0], (request + last).as_bytes());
    let mut rest = all.as_slice();
    for _ in 0..50 {
        let (reply, behind) = split(rest);
        assert_eq!((reply.status, reply.body.len()), (200, 100_000));
        let (reply, behind) = split(behind);
        assert_eq!(reply.status, 404);
        rest = behind;
    }
    let (reply, rest) = split(rest);
    assert_eq!((reply.text().as_str(), rest.len()), ("0123456789", 0));
    server.end();
}

#[test]
fn a_request_may_come_byte_by_byte_and_its_client_may_close_its_side() {
    let site = Site::new();
    let server = site.start();
    let mut stream = connect(server.addresses()[0]);
    for byte in b"GET /numbers.txt HTTP/1.1\r\nHost: t\r\n\r\n" {
        stream.write_all(&[*byte]).unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(split(&all).0.text(), "0123456789");
    server.end();
}

#[test]
fn ranges_and_conditions_hold() {
    let site = Site::new();
    let server = site.start();
    let address = server.addresses()[0];
    let range = |range: &str| ask(address, "GET", "/numbers.txt", &format!("Range: {range}\r\n"));
    let part = range("bytes=2-4");
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    assert_eq!(part.field("content-range").as_deref(), Some("bytes 2-4/10"));
    assert_eq!(range("bytes=-3").text(), "789");
    let beyond = range("bytes=10-");
    assert_eq!(
        (beyond.status, beyond.field("content-range").as_deref()),
        (416, Some("bytes */10"))
    );
    let many = (0..1000).map(|at| format!("{at}-")).collect::<Vec<_>>().join(",");
    let many = range(&format!("bytes={many}"));
    assert_eq!(
        (many.status, many.text().as_str()),
        (200, "0123456789"),
        "several ranges: all of it"
    );
    let etag = get(address, "/numbers.txt").field("etag").unwrap();
    let known = ask(address, "GET", "/numbers.txt", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((known.status, known.body.len()), (304, 0));
    let stale = "If-Range: \"other\"\r\nRange: bytes=0-1\r\n";
    assert_eq!(ask(address, "GET", "/numbers.txt", stale).status, 200);
    assert_eq!(ask(address, "GET", "/numbers.txt", "If-Match: \"other\"\r\n").status, 412);
    fs::write(site.root().join("numbers.txt"), "new").unwrap();
    let changed = ask(address, "GET", "/numbers.txt", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((changed.status, changed.text().as_str()), (200, "new"));
    server.end();
}

#[test]
fn text_is_compressed_for_those_who_take_it() {
    let site = Site::new();
    let text = "compressible ".repeat(1000);
    fs::write(site.root().join("text.html"), &text).unwrap();
    let server = site.start();
    let address = server.addresses()[0];
    let coded = ask(address, "GET", "/text.html", "Accept-Encoding: gzip\r\n");
    assert_eq!(coded.field("content-encoding").as_deref(), Some("gzip"));
    assert!(coded.body.len() < text.len() / 10);
    let mut plain = String::new();
    flate2::read::GzDecoder::new(coded.body.as_slice()).read_to_string(&mut plain).unwrap();
    assert_eq!(plain, text);
    assert_ne!(coded.field("etag"), get(address, "/text.html").field("etag"));
    let refused = ask(address, "GET", "/text.html", "Accept-Encoding: gzip;q=0\r\n");
    assert_eq!((refused.field("content-encoding"), refused.text()), (None, text.clone()));
    assert_eq!(refused.field("vary").as_deref(), Some("Accept-Encoding"));
    fs::write(site.root().join("text.html.br"), "not really").unwrap();
    let beforehand = ask(address, "GET", "/text.html", "Accept-Encoding: gzip, br\r\n");
    assert_eq!(beforehand.field("content-encoding").as_deref(), Some("br"));
    assert_eq!(beforehand.text(), "not really");
    server.end();
}

#[test]
fn nothing_outside_of_root_is_served() {
    let site = Site::new();
    let root = site.root();
    fs::write(site.directory.path().join("secret"), "secret").unwrap();
    fs::create_dir(root.join("sub")).unwrap();
    fs::write(root.join(".hidden"), "secret").unwrap();
    symlink("../secret", root.join("up")).unwrap();
    symlink(site.directory.path().join("secret"), root.join("absolute")).unwrap();
    symlink("/", root.join("everything")).unwrap();
    symlink("../numbers.txt", root.join("sub/inside")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from(0o600),
        0,
    )
    .unwrap();
    let server = site.start();
    let address = server.addresses()[0];
    let secret = site.directory.path().join("secret").display().to_string();
    for path in [
        "/../secret",
        "/%2e%2e/secret",
        "/sub/../../secret",
        "/..%2fsecret",
        "/up",
        "/absolute",
        "/.hidden",
        "/everything/etc/passwd",
        "/loop",
        "/pipe",
        "/sub/%2e%2e/%2e%2e/secret",
        "//../secret",
        "/up/",
        "/numbers.txt/",
        "/numbers.txt/../../secret",
        "/%00",
        &format!("/{secret}"),
        &format!("//{secret}"),
    ] {
        let reply = get(address, path);
        assert!((400..500).contains(&reply.status), "{path}: {}", reply.status);
        assert!(!reply.text().contains("secret\n") && reply.text() != "secret", "{path}");
    }
    assert_eq!(get(address, "/sub/inside").text(), "0123456789", "links inside lead on");
    server.end();
}

#[test]
fn a_file_has_its_own_label_while_it_is_replaced() {
    const RULES: &str = r#"
(type draft_t) (roletype object_r draft_t)
(filecon "ROOT/draft\.txt" any (dewar_u object_r draft_t ((s0) (s0))))
"#;
    const PAIR: &str = "GET /draft.txt HTTP/1.1\r\nHost: t\r\n\r\n\
                        GET /public.txt HTTP/1.1\r\nHost: t\r\n\r\n";
    let mut site = Site::new();
    let (root, new) = (site.root(), site.directory.path().join("new"));
    let path = root.canonicalize().unwrap().display().to_string().replace('.', "\\.");
    let policy = site.directory.path().join("site.cil");
    fs::write(&policy, RULES.replace("ROOT", &path)).unwrap();
    site.config.policy = vec![policy];
    let replace = |name: &str| {
        fs::write(&new, "x").unwrap();
        fs::rename(&new, root.join(name)).unwrap();
    };
    replace("draft.txt");
    replace("public.txt");
    let server = site.start();
    let asked = PAIR.repeat(2000) + "GET /none HTTP/1.0\r\n\r\n";
    let over = AtomicBool::new(false);
    let all = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                replace("draft.txt");
                replace("public.txt");
            }
        });
        let all = raw(server.addresses()[0], asked.as_bytes());
        over.store(true, Ordering::Relaxed);
        all
    });
    let mut rest = all.as_slice();
    for _ in 0..2000 {
        for want in [403, 200] {
            let (reply, others) = split(rest);
            assert_eq!(reply.status, want, "{}", reply.text());
            rest = others;
        }
    }
    server.end();
}

#[test]
fn a_directory_leads_to_its_index_or_its_list_and_never_to_another_site() {
    let mut site = Site::new();
    site.config.list = true;
    let root = site.root();
    fs::create_dir_all(root.join("sub dir/deep")).unwrap();
    fs::write(root.join("sub dir/<b>&.txt"), "x").unwrap();
    let server = site.start();
    let address = server.addresses()[0];
    let page = get(address, "/sub%20dir/");
    assert_eq!(page.status, 200);
    let text = page.text();
    assert!(text.contains("<a href=\"./%3Cb%3E%26.txt\">&lt;b&gt;&amp;.txt</a>"), "{text}");
    assert!(text.contains("<a href=\"./deep/\">deep/</a>"), "{text}");
    fs::create_dir_all(root.join("evil.example")).unwrap();
    for path in ["/sub%20dir", "//evil.example", "///evil.example"] {
        let moved = get(address, path);
        assert_eq!(moved.status, 301);
        let location = moved.field("location").unwrap();
        assert!(location.starts_with('/') && !location.starts_with("//"), "{location}");
    }
    server.end();
}

#[test]
fn links_that_lead_a_long_way_are_not_followed_for_seconds_to_list_them() {
    let mut site = Site::new();
    site.config.list = true;
    let links = site.root().join("links");
    fs::create_dir_all(links.join("d")).unwrap();
    fs::write(links.join("file"), "x").unwrap();
    let way = "d/../".repeat(800);
    symlink(format!("{way}file"), links.join(".0")).unwrap();
    (1..36)
        .for_each(|at| symlink(format!("{way}.{}", at - 1), links.join(format!(".{at}"))).unwrap());
    for at in 0..8000 {
        symlink(".35", links.join(format!("l{at}"))).unwrap();
    }
    let server = site.start();
    let start = std::time::Instant::now();
    let page = get(server.addresses()[0], "/links/");
    let took = start.elapsed();
    let text = page.text();
    assert!(took.as_secs() < 10, "{took:?}");
    for said in ["./file\"", "./l", "There is more, which is not listed"] {
        assert!(text.contains(said), "{said} after {took:?}: {} bytes", text.len());
    }
    server.end();
}

#[test]
fn what_two_parties_could_read_differently_ends_the_connection() {
    let site = Site::new();
    let server = site.start();
    let address = server.addresses()[0];
    let behind = "GET /numbers.txt HTTP/1.1\r\nHost: t\r\n\r\n";
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding:\tchunked, chunked\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length : 5\r\n",
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: t\r\n{fields}\r\n{behind}");
        let all = raw(address, request.as_bytes());
        let (reply, rest) = split(&all);
        assert_eq!((reply.status, rest.len()), (400, 0), "{fields:?}");
    }
    // A body that nobody wants is not taken for the next request.
    let request =
        format!("GET / HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n{behind}", behind.len());
    let all = raw(address, request.as_bytes());
    let (reply, rest) = split(&all);
    assert_eq!((reply.status, rest.len()), (200, 0));
    assert_eq!(reply.field("connection").as_deref(), Some("close"));
    server.end();
}

#[test]
fn slow_clients_and_idle_ones_are_let_go_and_others_do_not_notice() {
    let mut site = Site::new();
    fs::write(site.root().join("large.bin"), vec![7; 64 << 20]).unwrap();
    site.config.limits.request_ms = 700;
    site.config.limits.idle_ms = 700;
    site.config.limits.send_ms = 700;
    site.config.workers = 1;
    let server = site.start();
    let address = server.addresses()[0];
    let mut slow = connect(address);
    slow.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    let mut idle = connect(address);
    let mut deaf = connect(address);
    deaf.write_all(b"GET /large.bin HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
    for _ in 0..20 {
        assert_eq!(get(address, "/numbers.txt").text(), "0123456789");
    }
    let mut all = Vec::new();
    let _ = slow.read_to_end(&mut all);
    assert!(String::from_utf8_lossy(&all).starts_with("HTTP/1.1 408 "), "{all:?}");
    all.clear();
    let _ = idle.read_to_end(&mut all);
    assert!(all.is_empty());
    std::thread::sleep(std::time::Duration::from_millis(3000));
    let _ = deaf.read_to_end(&mut all);
    assert!(all.len() < 64 << 20, "who takes nothing is sent nothing more");
    server.end();
}

#[test]
fn ending_answers_what_is_under_way_and_reloading_loses_nothing() {
    let site = Site::new();
    let server = site.start();
    let address = server.addresses()[0];
    let mut stream = connect(address);
    for turn in 0..20 {
        stream.write_all(b"GET /numbers.txt HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
        let mut reply = vec![0; 1000];
        let count = stream.read(&mut reply).unwrap();
        assert!(reply[..count].ends_with(b"0123456789"), "{turn}");
        let mut config = site.config.clone();
        config.list = turn % 2 == 0;
        assert_eq!(server.reload(config).unwrap(), Vec::<String>::new());
    }
    let mut wrong = site.config.clone();
    wrong.root = "/nowhere/at/all".into();
    assert!(server.reload(wrong).is_err());
    assert_eq!(get(address, "/numbers.txt").status, 200, "the old one stays");
    // What nobody may read by the new policy, which comes with a log that cannot be written.
    fs::create_dir(site.root().join("later")).unwrap();
    fs::write(site.root().join("later/a.txt"), "later").unwrap();
    let root = site.root().canonicalize().unwrap().display().to_string().replace('.', "\\.");
    let policy = site.directory.path().join("site.cil");
    let rules = format!(
        "(type draft_t) (roletype object_r draft_t)\n\
         (filecon \"{root}/later(/.*)?\" any (dewar_u object_r draft_t ((s0) (s0))))"
    );
    fs::write(&policy, rules).unwrap();
    let mut wrong = site.config.clone();
    wrong.policy = vec![policy];
    let right = wrong.clone();
    wrong.access_log = Some("/nowhere/at/all".into());
    assert!(server.reload(wrong).is_err());
    assert_eq!(get(address, "/later/a.txt").status, 200, "the old policy stays, too");
    assert_eq!(server.reload(right).unwrap(), Vec::<String>::new());
    assert_eq!(get(address, "/later/a.txt").status, 403);
    server.end();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_port_at_which_another_server_listens_is_refused() {
    let site = Site::new();
    let first = site.start();
    let mut config = Config::new(site.root());
    let address = first.addresses()[0].to_string();
    config.listen = vec![Listen { address, ..Listen::default() }];
    let error = Server::start(config).err().expect("it is in use").to_string();
    assert!(error.contains("in use"), "{error}");
    drop(first);
}

#[test]
fn a_plugin_that_does_not_compile_is_told_by_its_file() {
    let site = Site::new().text("g", "no plugin", route("/g/"));
    let error = Server::start(site.config.clone()).err().expect("it does not compile").to_string();
    assert!(error.contains("/g.e`: "), "{error}");
}
