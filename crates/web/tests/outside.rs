//! Other people's clients: curl and nghttp, over TLS and HTTP/2; OpenSSL makes the certificates.

mod common;

use common::{Site, gray, image, route, shipped};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Output, Stdio},
};
use web::{Config, Listen, PluginConfig};

/// Debian's names of what these tests need.
const NEEDS: &str = "curl, openssl and nghttp2-client are needed";

fn run(program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}; {NEEDS}"))
}

fn openssl(directory: &Path, args: &str) {
    let args: Vec<_> = args.split(' ').collect();
    let made = Command::new("openssl").args(args).current_dir(directory).output();
    let made = made.unwrap_or_else(|error| panic!("openssl: {error}; {NEEDS}"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn curl(args: &[&str]) -> (String, Vec<u8>) {
    let common = [
        "--silent",
        "--show-error",
        "--max-time",
        "60",
        "--write-out",
        "%{stderr}%{http_version} %{http_code}",
    ];
    let output = run("curl", &[&common[..], args].concat());
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.stdout)
}

/// A site over TLS, whose clients are told apart by their certificates.
fn secure() -> Site {
    let mut site = Site::new().plugin("gray", shipped("gray.e", route("/gray/")));
    let directory = site.directory.path().to_owned();
    for name in ["server", "staff"] {
        openssl(
            &directory,
            &format!(
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.pem \
             -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
             -addext basicConstraints=critical,CA:FALSE"
            ),
        );
    }
    openssl(&directory, "x509 -in staff.pem -outform DER -out staff.der");
    let digest = run("sha256sum", &[directory.join("staff.der").to_str().unwrap()]);
    let digest = String::from_utf8(digest.stdout).unwrap()[..64].to_owned();
    let rules = directory.join("site.cil");
    fs::write(&rules, "(type staff_t) (roletype dewar_r staff_t)").unwrap();
    let text = format!(
        "root = 'root'\npolicy = ['site.cil']\n[[listen]]\naddress = '127.0.0.1:0'\n[listen.tls]\n\
         certificate = 'server.pem'\nkey = 'server.key'\nclients = 'staff.pem'\n\
         labels = {{ '{digest}' = 'dewar_u:dewar_r:staff_t' }}\n"
    );
    let path = directory.join("web.toml");
    fs::write(&path, text).unwrap();
    let read = Config::read(&path).unwrap();
    let plain = Listen { address: "127.0.0.1:0".to_owned(), ..Listen::default() };
    site.config = Config { plugins: site.config.plugins.clone(), workers: 1, ..read };
    site.config.listen.push(plain);
    site
}

#[test]
fn curl_and_nghttp_are_served_over_tls_and_http_2() {
    let site = secure();
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(site.directory.path().join("root/large.bin"), &large).unwrap();
    let server = site.start();
    let [secure, plain] = server.addresses() else { panic!("two listeners") };
    let ca = site.directory.path().join("server.pem");
    let ca = ca.to_str().unwrap();
    let url = |path: &str| format!("https://127.0.0.1:{}{path}", secure.port());
    let open = |path: &str| format!("http://127.0.0.1:{}{path}", plain.port());
    assert_eq!(
        curl(&["--cacert", ca, "--http2", &url("/large.bin")]),
        ("2 200".to_owned(), large.clone())
    );
    assert_eq!(
        curl(&["--cacert", ca, "--http1.1", &url("/large.bin")]),
        ("1.1 200".to_owned(), large.clone())
    );
    let known = curl(&["--http2-prior-knowledge", &open("/gray/a.ppm")]);
    assert_eq!(known, ("2 200".to_owned(), gray(&image(60, 50))));
    assert_eq!(curl(&["--http2-prior-knowledge", &open("/large.bin")]).1, large);
    let part = curl(&["--cacert", ca, "--http2", "-r", "10-19", &url("/large.bin")]);
    assert_eq!(part, ("2 206".to_owned(), large[10..20].to_vec()));
    assert_eq!(curl(&["--cacert", ca, "--head", &url("/none")]).0, "2 404");
    let climbs = curl(&["--cacert", ca, "--path-as-is", &url("/../web.toml")]);
    assert_eq!(climbs.0, "2 400");
    let many = run("nghttp", &["-n", "-s", "-m", "50", "--no-verify-peer", &url("/large.bin")]);
    let told = String::from_utf8_lossy(&many.stdout).into_owned();
    assert_eq!(told.matches(" 200 ").count(), 50, "{told}");
    server.end();
}

#[test]
fn a_client_is_who_its_certificate_says() {
    let site = secure();
    let server = site.start();
    let directory = site.directory.path();
    let path = |name: &str| directory.join(name).display().to_string();
    let (ca, key, own) = (path("server.pem"), path("staff.key"), path("staff.pem"));
    let url = format!("https://127.0.0.1:{}/index.html", server.addresses()[0].port());
    // `staff_t` may read nothing that is here: who shows the certificate is seen to be another.
    assert_eq!(curl(&["--cacert", &ca, &url]).0, "2 200");
    assert_eq!(curl(&["--cacert", &ca, "--cert", &own, "--key", &key, &url]).0, "2 403");
    let (other, other_key) = (path("server.pem"), path("server.key"));
    let strange = curl(&["--cacert", &ca, "--cert", &other, "--key", &other_key, &url]);
    assert!(!strange.0.ends_with("200"), "nobody has signed this one: {}", strange.0);
    server.end();
}

#[test]
fn who_was_known_by_an_authority_that_a_reload_takes_is_so_no_longer_on_an_open_connection() {
    let site = secure();
    let server = site.start();
    let directory = site.directory.path();
    let address = format!("127.0.0.1:{}", server.addresses()[0].port());
    let connection = ["-quiet", "-connect", &address, "-cert", "staff.pem", "-key", "staff.key"];
    let mut client = Command::new("openssl")
        .arg("s_client")
        .args(connection)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("openssl: {error}; {NEEDS}"));
    let (mut asks, answers) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines().map_while(Result::ok);
    let mut ask = || {
        asks.write_all(b"GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        answers.find(|line| line.starts_with("HTTP/1.1 ")).unwrap_or_default()
    };
    assert_eq!(ask(), "HTTP/1.1 403 Forbidden", "who shows it may read nothing");
    // The same once more changes nothing.
    server.reload(site.config.clone()).unwrap();
    assert_eq!(ask(), "HTTP/1.1 403 Forbidden");
    fs::copy(directory.join("server.pem"), directory.join("staff.pem")).unwrap();
    server.reload(site.config.clone()).unwrap();
    assert_eq!(ask(), "HTTP/1.1 421 Misdirected Request");
    assert_eq!(answers.find(|line| line.starts_with("HTTP/1.1 ")), None, "and the connection ends");
    drop(asks);
    let _ = client.wait();
    server.end();
}

#[test]
fn nothing_behind_a_request_that_could_end_elsewhere_is_taken_for_a_request_over_tls() {
    let site = secure();
    let server = site.start();
    let ca = site.directory.path().join("server.pem");
    let url = format!("https://127.0.0.1:{}/index.html", server.addresses()[0].port());
    let connects = |fields: &[&str]| {
        let common = ["--silent", "--cacert", ca.to_str().unwrap(), "--http1.1"];
        let told = ["--output", "/dev/null", "--write-out", "%{num_connects} "];
        let two = [&common[..], &told, fields, &[&url, "--next"], &common, &told, &[&url]].concat();
        String::from_utf8(run("curl", &two).stdout).unwrap()
    };
    assert_eq!(connects(&[]), "1 0 ", "one connection for both");
    for fields in
        [&["--data", "x", "-H", "Transfer-Encoding: chunked"][..], &["-X", "GET", "--data", "x"]]
    {
        assert_eq!(connects(fields), "1 1 ", "{fields:?}");
    }
    let none = ["--cacert", ca.to_str().unwrap(), "--http1.1", "-H", "Host:", &url];
    assert_eq!(curl(&none).0, "1.1 400", "no host");
    server.end();
}

/// What comes back over TLS for these very bytes.
fn raw(site: &Site, port: u16, bytes: &[u8]) -> String {
    let (address, ca) = (format!("127.0.0.1:{port}"), site.directory.path().join("server.pem"));
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_quiet", "-alpn", "http/1.1", "-connect", &address])
        .arg("-CAfile")
        .arg(ca)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("openssl: {error}; {NEEDS}"));
    client.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    String::from_utf8_lossy(&client.wait_with_output().unwrap().stdout).into_owned()
}

#[test]
fn nothing_behind_a_bare_line_feed_is_taken_for_a_request_over_tls() {
    let site = secure();
    let server = site.start();
    let port = server.addresses()[0].port();
    let behind = "GET /numbers.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for (first, answers) in [
        ("GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n", 2),
        ("GET /index.html HTTP/1.1\r\nHost: localhost\r\nX: a\n\n", 1),
        ("GET /index.html HTTP/1.1\nHost: localhost\r\n\r\n", 1),
        ("POST /index.html HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n", 1),
    ] {
        let said = raw(&site, port, format!("{first}{behind}").as_bytes());
        assert_eq!(said.matches("HTTP/1.1 ").count(), answers, "{first:?}: {said}");
    }
    server.end();
}

#[test]
fn a_process_behind_a_unix_socket_is_known_by_its_user() {
    let mut site = Site::new();
    let socket = site.directory.path().join("web.sock");
    let rules = site.directory.path().join("site.cil");
    fs::write(&rules, "(type nobody_t) (roletype dewar_r nobody_t)").unwrap();
    site.config.policy = vec![rules];
    let user = rustix::process::getuid().as_raw().to_string();
    let listen = |name: &str, user: &str| Listen {
        address: format!("unix:{}", site.directory.path().join(name).display()),
        users: [(user.to_owned(), "dewar_u:dewar_r:nobody_t".to_owned())].into(),
        ..Listen::default()
    };
    site.config.listen = vec![listen("web.sock", "4000000000"), listen("own.sock", &user)];
    let server = site.start();
    let own = site.directory.path().join("own.sock");
    let ask = |socket: &Path| {
        curl(&["--unix-socket", socket.to_str().unwrap(), "http://localhost/numbers.txt"])
    };
    assert_eq!(ask(&socket), ("1.1 200".to_owned(), b"0123456789".to_vec()));
    assert_eq!(ask(&own).0, "1.1 403");
    server.end();
    assert!(!socket.exists());
}

#[test]
#[ignore = "needs Chromium; run with --ignored"]
fn the_status_page_shows_plugins_in_a_browser() {
    let mut site =
        Site::new().plugin("gray", shipped("gray.e", PluginConfig { ..route("/gray/") }));
    site.config.status = Some("127.0.0.1:0".to_owned());
    let server = site.start();
    for _ in 0..5 {
        assert_eq!(common::get(server.addresses()[0], "/gray/a.ppm").status, 200);
    }
    let (status, profile) = (server.status().unwrap(), tempfile::tempdir().unwrap());
    let output = run(
        "chromium",
        &[
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--virtual-time-budget=4000",
            "--dump-dom",
            &format!("--user-data-dir={}", profile.path().display()),
            &format!("http://{status}/"),
        ],
    );
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(page.contains("is running"), "{page}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        page.contains(
            "<td>gray</td><td>transform</td><td>/gray/</td><td>isolated</td><td>1</td><td>5</td>"
        ),
        "{page}"
    );
    server.end();
}
