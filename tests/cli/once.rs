//! What passes once, and is revoked, or cut short, afterwards.

use crate::ask::{Home, text};
use std::{
    fs,
    io::{BufRead as _, BufReader, ErrorKind, Read},
    net::TcpListener,
    os::unix::net::UnixListener,
    process::{Child, ChildStdout, Stdio},
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// What scripts begin with: they wait for a file in the workspace.
const BEGIN: &str = "
import ctypes, os, signal, socket, time
def wait(name):
    while not os.path.exists(name):
        time.sleep(0.05)
open('ready', 'w').write('\\n')
";

/// A run named `it` that asks, with somebody who hears.
struct Asked<'a> {
    home: &'a Home,
    run: Child,
    events: Child,
    lines: BufReader<ChildStdout>,
}

impl<'a> Asked<'a> {
    /// Begins one under `rules` beside those of `workspace`.
    fn begin(home: &'a Home, rules: &str, script: &str) -> Self {
        let profile = home.path().join("once.toml");
        fs::write(&profile, format!("extends = \"workspace\"\n{rules}")).unwrap();
        let (profile, script) = (profile.display().to_string(), format!("{BEGIN}{script}"));
        let run = ["run", "--no-daemon", "--ask", "--name", "it", "-p", &profile, "--"];
        let words = [&run[..], &["/usr/bin/python3", "-c", &script]].concat();
        let run = home.command(&[], &words).stdout(Stdio::null()).spawn().unwrap();
        home.say_soon(&["ask", "it", "--list"], "no question");
        // What is imported before, nobody is asked about.
        home.written("ready");
        let hear = ["ask", "it", "--json"];
        let mut events = home.command(&[], &hear).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(events.stdout.take().unwrap());
        lines.read_line(&mut String::new()).unwrap();
        home.file("go");
        Self { home, run, events, lines }
    }

    /// Lets the next thing pass once.
    fn passes_once(&mut self) {
        let mut line = String::new();
        while !line.contains("\"question\"") {
            line.clear();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "no question");
        }
        let question = &serde_json::from_str::<serde_json::Value>(&line).unwrap()["question"];
        self.home.say(&["ask", "it", "--answer", &format!("{}=once", question["id"])]);
    }

    /// Says what takes something that somebody holds.
    fn is_taken_by(&self, words: &[&str]) {
        let said = self.home.say(&[&["revoke", "it"], words].concat());
        let told = text(&said.stdout) + &text(&said.stderr);
        assert!(told.contains("complete after") && !told.contains("held by nobody"), "{told}");
    }

    fn end(mut self) {
        self.run.wait().unwrap();
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        for child in [&mut self.run, &mut self.events] {
            // It has ended, or does by this.
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

impl Home {
    fn file(&self, name: &str) {
        fs::write(self.path().join("work").join(name), "").unwrap();
    }

    /// What the script has written there.
    fn written(&self, name: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            match fs::read_to_string(self.path().join("work").join(name)) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => assert!(Instant::now() < until, "{name} does not come"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What comes of a connection that was ended.
fn is_at_its_end(connection: &mut impl Read) {
    let ended = connection.read(&mut [0; 64]).map_err(|error| error.kind());
    assert!(matches!(ended, Ok(0) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
}

#[test]
fn a_connection_that_passed_once_is_revoked_with_the_file_of_the_socket() {
    let home = Home::new();
    let service = home.path().join("service");
    let listener = UnixListener::bind(&service).unwrap();
    let path = service.display().to_string();
    let rules = format!("[network]\nconnect = ['unix:{}']\n", home.path().join("other").display());
    let script = format!(
        "
wait('go')
made = socket.socket(socket.AF_UNIX)
made.connect('{path}')
wait('taken')
try:
    made.send(b'sent afterwards')
except OSError:
    pass
"
    );
    let mut asked = Asked::begin(&home, &rules, &script);
    asked.passes_once();
    let (mut connection, _) = listener.accept().unwrap();
    asked.is_taken_by(&["--file", &path]);
    home.file("taken");
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    is_at_its_end(&mut connection);
    asked.end();
}

#[test]
fn a_watch_that_passed_once_is_revoked_with_the_file() {
    let home = Home::new();
    let notes = home.path().join("notes.txt");
    let path = notes.display().to_string();
    let script = format!(
        "
wait('go')
libc = ctypes.CDLL(None)
inotify = libc.inotify_init1(os.O_NONBLOCK)
open('watched', 'w').write(str(libc.inotify_add_watch(inotify, b'{path}', 0xfff) > 0) + '\\n')
wait('taken')
try:
    os.read(inotify, 4096)
except OSError:
    pass
open('read', 'w').write('\\n')
wait('changed')
try:
    told = os.read(inotify, 4096)
except OSError:
    told = b''
open('told', 'w').write(str(len(told)) + '\\n')
"
    );
    let mut asked = Asked::begin(&home, "", &script);
    asked.passes_once();
    assert_eq!(home.written("watched"), "True\n");
    asked.is_taken_by(&["--file", &path]);
    home.file("taken");
    home.written("read");
    fs::write(&notes, "these are more notes").unwrap();
    home.file("changed");
    assert_eq!(home.written("told"), "0\n");
    asked.end();
}

#[test]
fn a_connection_that_passed_once_is_revoked_also_once_another_domain_has_it_granted() {
    let home = Home::new();
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = service.local_addr().unwrap();
    let (at, port) = (address.to_string(), address.port());
    let rules = "[network]\nconnect = ['192.0.2.1:1']\n\
                 [domains.other]\nexec = ['/usr/bin/env']\nnetwork.connect = ['192.0.2.1:2']\n";
    let script = format!(
        "
wait('go')
made = socket.create_connection(('127.0.0.1', {port}))
wait('taken')
try:
    made.send(b'sent afterwards')
except OSError:
    pass
"
    );
    let mut asked = Asked::begin(&home, rules, &script);
    asked.passes_once();
    let (mut connection, _) = service.accept().unwrap();
    let granted = home.say(&["grant", "it", "--net", &at, "--domain", "other"]);
    assert!(granted.status.success(), "{}", text(&granted.stderr));
    asked.is_taken_by(&["--net", &at, "--domain", "main"]);
    home.file("taken");
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    is_at_its_end(&mut connection);
    asked.end();
}

#[test]
fn a_question_that_a_signal_cuts_short_is_a_denial_on_record() {
    let home = Home::new();
    let path = home.path().join("notes.txt").display().to_string();
    let script = format!(
        "
class Alarm(Exception):
    pass
def ring(*_):
    raise Alarm
signal.signal(signal.SIGALRM, ring)
wait('go')
for _ in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        open('{path}')
    except Alarm:
        pass
"
    );
    Asked::begin(&home, "", &script).end();
    let record = home.record();
    let denials = record["denials"].as_array().unwrap();
    let of_notes: Vec<_> = denials.iter().filter(|it| it["object"] == path.as_str()).collect();
    assert_eq!(of_notes.len(), 1, "{record}");
    assert_eq!(of_notes[0]["count"], 1, "a call that is made again and again is on record once");
    assert_ne!(of_notes[0]["comm"], "", "{record}");
}
