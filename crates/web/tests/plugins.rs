//! Plugins in a server.

mod common;

use common::{Site, ask, get, gray, image, raw, route, shipped, split};
use std::{fs, thread};
use web::{Kind, PluginConfig};

const PPM: &str = "image/x-portable-pixmap";
const PGM: &str = "image/x-portable-graymap";

fn handler(path: &str) -> PluginConfig {
    PluginConfig { kind: Kind::Handler, ..route(path) }
}

#[test]
fn what_lies_beneath_a_route_is_its_plugins_also_where_its_name_is_no_text() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let site = Site::new()
        .plugin("gray", shipped("gray.e", route("/gray/")))
        .plugin("handler", shipped("words.e", handler("/own/")));
    for directory in ["gray", "own"] {
        let directory = site.root().join(directory);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(OsStr::from_bytes(b"\xff.txt")), "as it lies").unwrap();
    }
    let server = site.start();
    for path in ["/gray/%ff.txt", "/own/%FF.txt"] {
        let reply = get(server.addresses()[0], path);
        assert!(!reply.text().contains("as it lies"), "{path}: {}", reply.text());
    }
    server.end();
}

#[test]
fn gray_is_the_same_on_every_target_by_route_and_by_preference() {
    let gives = |config: PluginConfig| PluginConfig { gives: Some(PGM.to_owned()), ..config };
    let native = |target: &str| PluginConfig {
        target: Some(target.to_owned()),
        ..gives(route(&format!("/{target}/")))
    };
    let negotiated = PluginConfig {
        media: Some(PPM.to_owned()),
        negotiate: true,
        ..gives(PluginConfig::default())
    };
    let mut site = Site::new()
        .plugin("gray", shipped("gray.e", gives(route("/gray/"))))
        .plugin("native", shipped("gray.e", native("native")))
        .plugin("stack", shipped("gray.e", native("native+stack")))
        .plugin("negotiated", shipped("gray.e", negotiated));
    site.config.types.insert(".ppm".to_owned(), PPM.to_owned());
    let large = image(1200, 900);
    fs::write(site.root().join("large.ppm"), &large).unwrap();
    // Exactly a page, so that what is behind the image in a plugin's memory matters.
    let page = image(1, 1361);
    fs::write(site.root().join("page.ppm"), &page).unwrap();
    let server = site.start();
    let address = server.addresses()[0];
    for _ in 0..3 {
        for path in ["/gray", "/native", "/native+stack"] {
            for (name, image) in
                [("a.ppm", image(60, 50)), ("large.ppm", large.clone()), ("page.ppm", page.clone())]
            {
                let reply = get(address, &format!("{path}/{name}"));
                assert_eq!(reply.status, 200, "{path}/{name}: {}", reply.text());
                assert!(reply.body == gray(&image), "{path}/{name}");
                assert_eq!(reply.field("content-type").as_deref(), Some(PGM));
            }
        }
    }
    let head = ask(address, "HEAD", "/gray/large.ppm", "");
    assert_eq!(head.field("content-length"), Some(gray(&large).len().to_string()));
    let plain = get(address, "/a.ppm");
    assert_eq!((plain.body, plain.head.contains("Vary: Accept\r\n")), (image(60, 50), true));
    let wanted = ask(address, "GET", "/a.ppm", &format!("Accept: {PGM}, */*;q=0.1\r\n"));
    assert_eq!(wanted.body, gray(&image(60, 50)));
    assert_eq!(get(address, "/gray/numbers.txt").status, 502, "no image: nothing is sent instead");
    assert_eq!(get(address, "/gray/none").status, 404);
    // Another image under the same name is seen.
    let other = image(10, 10);
    fs::write(site.root().join("a.ppm"), &other).unwrap();
    assert_eq!(get(address, "/gray/a.ppm").body, gray(&other));
    server.end();
}

#[test]
fn shipped_plugins_do_what_their_pages_say() {
    let heads = PluginConfig { kind: Kind::Headers, ..route("/pages/") };
    let json =
        PluginConfig { media: Some("application/json".to_owned()), ..PluginConfig::default() };
    let site = Site::new()
        .plugin("thumbnail", shipped("thumbnail.e", route("/thumbnail/")))
        .plugin("counter", shipped("counter.e", handler("/visits/")))
        .plugin("headers", shipped("headers.e", heads))
        .plugin("filter", shipped("json-filter.e", json))
        .plugin("rot13", shipped("rot13.wat", route("/rot13/")));
    fs::create_dir(site.root().join("pages")).unwrap();
    fs::write(site.root().join("pages/a.html"), "page").unwrap();
    fs::write(site.root().join("a.json"), r#"{"a":1,"password":"x"}"#).unwrap();
    fs::write(site.root().join("hello.txt"), "Hello").unwrap();
    fs::write(site.root().join("wide.ppm"), image(960, 480)).unwrap();
    let server = site.start();
    let address = server.addresses()[0];
    let small = get(address, "/thumbnail/wide.ppm");
    assert!(small.body.starts_with(b"P6\n96 48\n255\n"), "{}", small.head);
    assert_eq!(small.body.len(), 13 + 96 * 48 * 3);
    for count in 1..=3 {
        assert_eq!(get(address, "/visits/x?y").text(), format!("{count}\n"));
    }
    assert_eq!(get(address, "/visits/other").text(), "1\n");
    let page = get(address, "/pages/a.html");
    assert_eq!((page.status, page.text().as_str()), (200, "page"));
    assert_eq!(page.field("x-frame-options").as_deref(), Some("DENY"));
    assert_eq!(page.field("last-modified"), None);
    for path in ["/%70ages/a.html", "//pages/a.html", "/./pages/a.html", "/pages//a.html"] {
        let same = get(address, path);
        assert_eq!((same.status, same.text().as_str()), (200, "page"), "{path}");
        assert_eq!(same.field("x-frame-options").as_deref(), Some("DENY"), "{path}");
    }
    assert_eq!(get(address, "/a.json").text(), r#"{"a":1}"#);
    assert_eq!(get(address, "/rot13/hello.txt").text(), "Uryyb");
    server.end();
}

#[test]
fn a_handler_sees_the_request_with_its_body_and_cannot_break_the_answer_s_frame() {
    let echo = "long handle(const char *in, long n, char *out, long room) {
        static const char head[] = \"Status: 201 Created\\nX-Own: yes\\nContent-Length: 1\\nTransfer-Encoding: chunked\\n\\n\";
        long i, length = sizeof head - 1;
        for (i = 0; i < length; i++) out[i] = head[i];
        for (i = 0; i < n; i++) out[length + i] = in[i];
        return length + n;
    }";
    let wrong = "long handle(const char *in, long n, char *out, long room) {
        static const char reply[] = \"Evil: a\\r\\n b\\r\\n\\0\\r\\n\\r\\n\";
        long i;
        for (i = 0; i < sizeof reply - 1; i++) out[i] = reply[i];
        return i;
    }";
    let site =
        Site::new().text("echo", echo, handler("/echo/")).text("wrong", wrong, handler("/wrong/"));
    let server = site.start();
    let address = server.addresses()[0];
    let request = "POST /echo/a?b HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nhello\
                   POST /echo/c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n\
                   GET /echo/ HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    let all = raw(address, request.as_bytes());
    let (first, rest) = split(&all);
    assert_eq!((first.status, first.field("x-own").as_deref()), (201, Some("yes")));
    assert!(
        first.text().starts_with("POST /echo/a?b HTTP/1.1\r\n")
            && first.text().ends_with("\r\n\r\nhello")
    );
    assert!(!first.head.to_lowercase().contains("transfer-encoding"));
    let (second, rest) = split(rest);
    assert!(second.text().ends_with("\r\n\r\nabcde"), "{}", second.text());
    let (third, rest) = split(rest);
    assert_eq!((third.status, rest.len()), (201, 0));
    assert_eq!(get(address, "/wrong/").status, 502);
    let long = format!("POST /echo/ HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", 2 << 20);
    assert_eq!(split(&raw(address, long.as_bytes())).0.status, 413);
    server.end();
}

#[test]
fn a_plugin_that_traps_or_never_ends_harms_its_own_request_only() {
    let trap = "long handle(const char *in, long n, char *out, long room) { return n / (n - n); }";
    let endless =
        "long handle(const char *in, long n, char *out, long room) { for (;;) ; return 0; }";
    let writes = "long handle(char *in, long n, char *out, long room) { in[0] = 1; return 0; }";
    let few =
        |config: PluginConfig| PluginConfig { time_ms: Some(20), faults: Some(1000), ..config };
    let site = Site::new()
        .text("trap", trap, few(route("/trap/")))
        .text("endless", endless, few(route("/endless/")))
        .text("writes", writes, few(route("/writes/")))
        .text("quarantined", trap, PluginConfig { faults: Some(3), ..route("/quarantined/") })
        .plugin("gray", shipped("gray.e", route("/gray/")));
    let server = site.start();
    let address = server.addresses()[0];
    thread::scope(|scope| {
        let bad = |path: &'static str, want: u16| {
            scope.spawn(move || {
                for _ in 0..15 {
                    assert_eq!(get(address, path).status, want, "{path}");
                }
            });
        };
        bad("/trap/a.ppm", 502);
        bad("/endless/a.ppm", 504);
        bad("/writes/a.ppm", 502);
        scope.spawn(move || {
            let want = gray(&image(60, 50));
            for _ in 0..60 {
                assert_eq!(get(address, "/gray/a.ppm").body, want);
                assert_eq!(get(address, "/numbers.txt").text(), "0123456789");
            }
        });
    });
    let statuses: Vec<_> = (0..5).map(|_| get(address, "/quarantined/a.ppm").status).collect();
    assert_eq!(statuses, [502, 502, 502, 503, 503]);
    server.end();
}

#[test]
fn what_one_client_makes_a_plugin_fail_on_is_taken_from_nobody_else() {
    let picky = "long handle(const char *in, long n, char *out, long room) {
        if (in[n - 1] == '!') for (;;) ;
        out[0] = '\\n'; out[1] = 'a'; return 2; }";
    let short = |kind, config| PluginConfig { kind, time_ms: Some(20), faults: Some(2), ..config };
    let site = Site::new().text("view", picky, short(Kind::Transform, route("/view/"))).text(
        "form",
        picky,
        short(Kind::Handler, route("/form/")),
    );
    fs::write(site.root().join("bad.txt"), "bad!").unwrap();
    let server = site.start();
    let address = server.addresses()[0];
    let post = |path: &str, body: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        split(&raw(address, request.as_bytes())).0.status
    };
    let statuses: Vec<_> = (0..4).map(|_| get(address, "/view/bad.txt").status).collect();
    assert_eq!(statuses, [504, 504, 503, 503]);
    assert_eq!(get(address, "/view/numbers.txt").status, 200);
    let statuses: Vec<_> = (0..4).map(|_| post("/form/", "bad!")).collect();
    assert_eq!(statuses, [504, 504, 503, 503]);
    assert_eq!((post("/form/", "good"), post("/form/", "also bad!")), (200, 504));
    // Another file of that name is another.
    fs::write(site.root().join("bad.txt"), "good").unwrap();
    assert_eq!(get(address, "/view/bad.txt").status, 200);
    server.end();
}

#[test]
fn a_plugin_that_fails_at_each_request_is_told_a_few_times_and_counted() {
    let trap = "long handle(const char *in, long n, char *out, long room) { return n / (n - n); }";
    let config = PluginConfig { faults: Some(1000), ..route("/trap/") };
    let mut site = Site::new().text("trap", trap, config);
    let socket = site.directory.path().join("admin");
    site.config.admin = Some(socket.clone());
    let server = site.start();
    let address = server.addresses()[0];
    let begin = std::time::Instant::now();
    for _ in 0..300 {
        assert_eq!(get(address, "/trap/a.ppm").status, 502);
    }
    let most = 11 + begin.elapsed().as_secs() as usize;
    let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    std::io::Write::write_all(&mut stream, b"GET /status HTTP/1.1\r\nHost: t\r\n\r\n").unwrap();
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut all).unwrap();
    let status: serde_json::Value = serde_json::from_slice(&split(&all).0.body).unwrap();
    let told = status["complaints"].as_array().unwrap().len();
    assert!((10..=most).contains(&told), "{told} lines");
    assert_eq!(status["plugins"][0]["faults"], 300);
    server.end();
}

#[test]
fn policy_says_which_requests_and_files_a_plugin_may_see() {
    let rules = r#"
(type staff_t) (roletype dewar_r staff_t)
(type secret_t) (roletype object_r secret_t)
(type narrow_t) (roletype dewar_r narrow_t)
(allow staff_t content_t (file (read)))
(allow staff_t secret_t (file (read)))
(allow host_t narrow_t (plugin (load call)))
(allow narrow_t self (plugin (read_request write_reply)))
(allow narrow_t staff_t (request (read reply)))
(allow narrow_t content_t (file (read)))
(filecon "ROOT/secret(/.*)?" any (dewar_u object_r secret_t ((s0) (s0))))
"#;
    let narrow =
        PluginConfig { label: Some("dewar_u:dewar_r:narrow_t".to_owned()), ..route("/narrow/") };
    let mut site = Site::new()
        .plugin("narrow", shipped("gray.e", narrow))
        .plugin("gray", shipped("gray.e", route("/gray/")));
    let root = site.root();
    fs::create_dir(root.join("secret")).unwrap();
    fs::write(root.join("secret/s.ppm"), image(8, 8)).unwrap();
    std::os::unix::fs::symlink("secret/s.ppm", root.join("link.ppm")).unwrap();
    let path = root.canonicalize().unwrap().display().to_string().replace('.', "\\.");
    let policy = site.directory.path().join("site.cil");
    fs::write(&policy, rules.replace("ROOT", &path)).unwrap();
    site.config.policy = vec![policy];
    let staff = web::Listen {
        address: "127.0.0.1:0".to_owned(),
        label: Some("dewar_u:dewar_r:staff_t".to_owned()),
        ..web::Listen::default()
    };
    site.config.listen.push(staff);
    site.config.list = true;
    fs::remove_file(root.join("index.html")).unwrap();
    let server = site.start();
    let [anybody, staff] = server.addresses() else { panic!("two listeners") };
    for (address, path, names) in [
        (anybody, "/", &["a.ppm", "numbers.txt"][..]),
        (anybody, "/secret/", &[]),
        (staff, "/", &["secret", "a.ppm", "link.ppm", "numbers.txt"]),
        (staff, "/secret/", &["s.ppm"]),
    ] {
        let page = get(*address, path).text();
        let listed = page.lines().filter_map(|it| it.strip_prefix("<li><a href=\"./"));
        let listed: Vec<_> = listed.filter_map(|it| it.split(['"', '/']).next()).collect();
        assert_eq!(listed, names, "{path}");
    }
    for (address, path, want) in [
        (anybody, "/a.ppm", 200),
        (anybody, "/secret/s.ppm", 403),
        (anybody, "/link.ppm", 403),
        (anybody, "/gray/a.ppm", 200),
        (anybody, "/narrow/a.ppm", 403),
        (staff, "/secret/s.ppm", 200),
        (staff, "/link.ppm", 200),
        (staff, "/narrow/a.ppm", 200),
        (staff, "/narrow/secret/s.ppm", 403),
        (staff, "/gray/a.ppm", 403),
    ] {
        // Twice: as it was decided, and as it is remembered.
        assert_eq!(get(*address, path).status, want, "{path}");
        assert_eq!(get(*address, path).status, want, "{path}");
    }
    server.end();
}

#[test]
fn a_status_without_content_is_sent_without_content() {
    const SAYS: &str = "long handle(const char *in, long n, char *out, long room) {
        static const char said[] = \"Status: STATUS None\\n\\ncontent\";
        for (long i = 0; i < sizeof said - 1; i++) out[i] = said[i];
        return sizeof said - 1;
    }";
    let mut site = Site::new();
    for status in [204, 205, 304] {
        let name = format!("says{status}");
        site = site.text(
            &name,
            &SAYS.replace("STATUS", &status.to_string()),
            handler(&format!("/{status}/")),
        );
    }
    let server = site.start();
    for status in [204, 205, 304] {
        let request = format!("GET /{status}/ HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        let bytes = raw(server.addresses()[0], request.as_bytes());
        let (reply, rest) = split(&bytes);
        assert_eq!(reply.status, status, "{}", reply.head);
        assert!(reply.body.is_empty() && rest.is_empty(), "{status}: {bytes:?}");
    }
    server.end();
}
