//! A server that runs, administered by `dewar plugin … --server`, reloaded by SIGHUP.

#[path = "../../web/tests/common/mod.rs"]
mod common;

use common::{Site, get, gray, image};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

struct Running {
    site: Site,
    child: Child,
    address: SocketAddr,
    dewar: PathBuf,
    told: Receiver<String>,
}

impl Running {
    /// A server as its file says; `more` is behind what every server needs.
    fn start(more: &str) -> Self {
        let site = Site::new();
        let place = site.directory.path().to_owned();
        let dewar = test_support::install(&place, &["dewar", "dewar-serve", "dewar-plugin"]);
        configure(&place, more);
        let mut command = Command::new(&dewar);
        command.arg("serve").arg("--config").arg(place.join("web.toml"));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (tell, told) = channel();
        thread::spawn(move || {
            errors.lines().map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        let line = told.recv_timeout(Duration::from_secs(30)).unwrap();
        let address = line.rsplit(' ').next().unwrap().parse();
        let address = address.unwrap_or_else(|error| panic!("{error}: {line}"));
        Self { site, child, address, dewar, told }
    }

    fn place(&self) -> &Path {
        self.site.directory.path()
    }

    fn plugin(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.dewar);
        let run = command.arg("plugin").args(arguments).arg("--server");
        run.arg(self.place().join("admin")).current_dir(self.place()).output().unwrap()
    }

    /// What it prints when it succeeds.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.plugin(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The next line on standard error with these words in it.
    fn hears(&self, words: &str) -> String {
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.told.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("it never says `{words}`"));
            if line.contains(words) {
                return line;
            }
        }
    }

    fn reload(&self, more: &str, words: &str) -> String {
        configure(self.place(), more);
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
        self.hears(words)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

fn configure(place: &Path, more: &str) {
    let root = place.join("root");
    let text = format!("root = '{}'\nadmin = 'admin'\nrevalidate_ms = 0\n", root.display());
    let listen = "[[listen]]\naddress = '127.0.0.1:0'\n";
    fs::write(place.join("web.toml"), format!("{text}{listen}{more}")).unwrap();
}

#[test]
fn plugins_are_loaded_replaced_listed_counted_and_unloaded_by_the_command() {
    let server = Running::start("");
    let shipped = Path::new(common::PLUGINS).join("gray.e").canonicalize().unwrap();
    let shipped = shipped.to_str().unwrap();
    server.done(&["load", "gray", shipped, "--route", "/gray/"]);
    assert_eq!(get(server.address, "/gray/a.ppm").body, gray(&image(60, 50)));
    let twice = server.plugin(&["load", "gray", shipped, "--route", "/gray/"]);
    assert!(!twice.status.success(), "there is one already");
    let list: serde_json::Value = serde_json::from_str(&server.done(&["list", "--json"])).unwrap();
    assert!(list.to_string().contains("\"gray\""), "{list}");
    let stats: serde_json::Value = serde_json::from_str(&server.done(&["stats", "gray"])).unwrap();
    assert!(stats.to_string().contains("\"calls\":1"), "{stats}");
    // Mistakes come back as the compiler prints them, and change nothing.
    let wrong = server.place().join("wrong.e");
    fs::write(
        &wrong,
        "long handle(const char *in, long n, char *out, long room)\n{\n\treturn m;\n}\n",
    )
    .unwrap();
    let refused = server.plugin(&["replace", "gray", wrong.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("`m`") && said.contains("return m;"),
        "{said}"
    );
    assert_eq!(get(server.address, "/gray/a.ppm").body, gray(&image(60, 50)));
    let other = server.place().join("other.e");
    fs::write(
        &other,
        "long handle(const char *in, long n, char *out, long room) { out[0] = 'x'; return 1; }",
    )
    .unwrap();
    server.done(&["replace", "gray", other.to_str().unwrap()]);
    assert_eq!(get(server.address, "/gray/a.ppm").text(), "x");
    server.done(&["unload", "gray"]);
    assert_eq!(get(server.address, "/gray/a.ppm").status, 404);
    assert!(!server.plugin(&["unload", "gray"]).status.success(), "there is none any more");
}

#[test]
fn what_a_plugin_did_wrong_is_told_by_its_function_and_its_limit_and_not_in_an_engine_s_words() {
    let texts = [
        (
            "zero",
            "static long part(long n)\n{\n\treturn n / (n - n);\n}\n\nlong handle(const char *in, long n, char *out, long room)\n{\n\treturn part(n);\n}\n",
        ),
        (
            "wild",
            "long handle(const char *in, long n, char *out, long room)\n{\n\tout[1 << 30] = 1;\n\treturn 1;\n}\n",
        ),
        (
            "deep",
            "static long down(long n)\n{\n\tvolatile char much[1000];\n\tmuch[n % 1000] = n;\n\treturn n < 0 ? 0 : down(n + 1) + much[5];\n}\nlong handle(const char *in, long n, char *out, long room)\n{\n\treturn down(1);\n}\n",
        ),
        (
            "endless",
            "long handle(const char *in, long n, char *out, long room)\n{\n\tfor (;;)\n\t\t;\n\treturn 0;\n}\n",
        ),
        (
            "long",
            "long handle(const char *in, long n, char *out, long room)\n{\n\treturn 1 << 30;\n}\n",
        ),
    ];
    let server = Running::start("");
    for (name, text) in texts {
        let file = server.place().join(format!("{name}.e"));
        fs::write(&file, text).unwrap();
        server.done(&["load", name, file.to_str().unwrap(), "--route", &format!("/{name}/")]);
    }
    for (name, status, words) in [
        ("zero", 502, ["divided by zero", "zero:3, in `part`"]),
        ("wild", 502, ["memory that is not its own", "wild:3, in `handle`"]),
        ("deep", 502, ["stack is used up", "deep:1, in `down`"]),
        ("endless", 504, ["used up its time", "time_ms = 100"]),
        ("long", 502, ["no length of a reply", "reply_bytes = 4194304"]),
    ] {
        assert_eq!(get(server.address, &format!("/{name}/a.ppm")).status, status, "{name}");
        let line = server.hears(&format!("plugin {name} on GET /{name}/a.ppm"));
        for words in words {
            assert!(line.contains(words), "{words}: {line}");
        }
        for engine in ["wasm", "unreachable", "trap", "backtrace"] {
            assert!(!line.contains(engine), "{engine}: {line}");
        }
    }
    assert_eq!(get(server.address, "/numbers.txt").text(), "0123456789");
}

#[test]
fn a_hangup_brings_other_limits_and_plugins_into_force_and_mistakes_change_nothing() {
    let body = "[plugins.echo]\nfile = 'echo.e'\nkind = 'handler'\nroute = '/echo/'\n";
    let server = Running::start("[limits]\nbody_bytes = 10\n");
    let echo = "long handle(const char *in, long n, char *out, long room)\n{\n\tout[0] = '\\n';\n\tout[1] = 'k';\n\treturn 2;\n}\n";
    fs::write(server.place().join("echo.e"), echo).unwrap();
    let post = |len: usize| {
        let fields = format!("Content-Length: {len}\r\n");
        let request = format!(
            "POST /echo/ HTTP/1.1\r\nHost: t\r\nConnection: close\r\n{fields}\r\n{}",
            "x".repeat(len)
        );
        common::split(&common::raw(server.address, request.as_bytes())).0.status
    };
    assert_eq!(post(5), 404, "no plugin yet");
    server.reload(&format!("[limits]\nbody_bytes = 10\n{body}"), "reloaded");
    assert_eq!((post(5), post(50)), (200, 413));
    server.reload(&format!("[limits]\nbody_bytes = 100\n{body}"), "reloaded");
    assert_eq!((post(50), post(500)), (200, 413));
    fs::write(server.place().join("echo.e"), "long handle(").unwrap();
    let limits = format!("[limits]\nbody_bytes = 100\n{body}");
    let wrong = server.reload(&limits, "everything stays as it was");
    assert!(wrong.contains("/echo.e`: "), "{wrong}");
    assert_eq!((post(50), post(500)), (200, 413));
    fs::write(server.place().join("echo.e"), echo).unwrap();
    let wrong = server.reload(&format!("[limits]\nbody_bytes = 'many'\n{body}"), "stays as it was");
    assert!(wrong.contains("web.toml`: TOML parse error at line 7"), "{wrong}");
    assert_eq!((post(50), post(500)), (200, 413));
    server.reload("[limits]\nbody_bytes = 100\n", "reloaded");
    assert_eq!(post(5), 404, "the plugin has gone with its lines");
}

#[test]
fn whoever_does_not_read_the_log_or_standard_error_keeps_nobody_from_an_answer() {
    let site = Site::new();
    let place = site.directory.path();
    let trap = "long handle(const char *in, long n, char *out, long room) { return n / (n - n); }";
    fs::write(place.join("trap.e"), trap).unwrap();
    let root = place.join("root");
    let mut text = format!("root = '{}'\naccess_log = '-'\nworkers = 1\n", root.display());
    text += "[[listen]]\naddress = '127.0.0.1:0'\n";
    // Ten lines are told of each at once.
    for at in 0..10 {
        text +=
            &format!("[plugins.trap{at}]\nfile = 'trap.e'\nroute = '/{at}/'\nfaults = 100000\n");
    }
    fs::write(place.join("web.toml"), text).unwrap();
    let mut command = Command::new(test_support::install(place, &["dewar", "dewar-serve"]));
    command.arg("serve").arg("--config").arg(place.join("web.toml"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    let address: SocketAddr = line.trim().rsplit(' ').next().unwrap().parse().unwrap();
    let (tell, answered) = channel();
    thread::spawn(move || {
        let target = "x".repeat(3000);
        for at in 0..2000 {
            let (path, want) =
                if at < 120 { (format!("/{}/a.ppm", at % 10), 502) } else { ("/".into(), 200) };
            assert_eq!(get(address, &format!("{path}?{target}")).status, want);
            let _ = tell.send(());
        }
    });
    let answered = (0..2000).map_while(|_| answered.recv_timeout(Duration::from_secs(20)).ok());
    let answered = answered.count();
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(answered, 2000);
}
