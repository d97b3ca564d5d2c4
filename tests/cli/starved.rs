//! Runs that use up what their monitor needs, too: they are seen, changed and stopped all the same,
//! and one that does not answer is not said to have ended.

use rustix::{
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with},
    process::{Pid, Signal, kill_process},
};
use std::{
    fs,
    os::unix::{
        fs::{DirBuilderExt as _, PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;
use test_support::ordinary_user;

const PATIENCE: Duration = Duration::from_secs(60);

/// What a program inside begins with: it says that it is ready by a file that is open already.
const READY: &str = "
import os, socket, sys, threading, time
ready = os.open('ready', os.O_WRONLY | os.O_CREAT)
";

/// Counts in a session of its own, where no Ctrl-Z reaches it.
const COUNTS: &str = "
ticks = os.open('ticks', os.O_RDWR | os.O_CREAT)
if os.fork() == 0:
    os.setsid()
    for count in range(1 << 30):
        os.pwrite(ticks, b'%d' % count, 0)
        time.sleep(0.005)
";

/// Makes all processes that there may be, and more whenever one has ended.
const PROCESSES: &str = "
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError:
        os.write(ready, b'x')
        time.sleep(0.005)
";

/// Has the monitor hold descriptors: of sockets with names, of terminals, of opens that wait.
const DESCRIPTORS: &str = "
def bound(number):
    made = socket.socket(socket.AF_UNIX)
    made.bind(f's{os.getpid()}-{number}')
    return made
def hold(what):
    try:
        held = [what(number) for number in range(120)]
    except OSError as error:
        print(what, error, flush=True)
    time.sleep(1000)
os.mkfifo('fifo')
for what in [bound, bound, lambda _: os.posix_openpt(os.O_RDWR), lambda _: os.posix_openpt(os.O_RDWR)]:
    if os.fork() == 0:
        hold(what)
    time.sleep(0.5)
for _ in range(60):
    threading.Thread(target=lambda: open('fifo'), daemon=True).start()
time.sleep(2)
os.write(ready, b'x')
time.sleep(1000)
";

/// Has the monitor hold descriptors: of messages that wait at a full queue, each with as many as
/// there may be, until there is room for none.
const MESSAGES: &str = "
import array
def full():
    made, other = socket.socketpair()
    made.setblocking(False)
    try:
        while True:
            made.send(bytes(4096))
    except BlockingIOError:
        made.setblocking(True)
    return made, other
def send(made, count):
    try:
        passed = array.array('i', [ready] * count).tobytes()
        made.sendmsg([b'x' * 4096], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
    except OSError as error:
        print(count, error, flush=True)
pairs = []
for count in [253] * 4 + [128, 64, 32, 16, 8, 4, 2, 1] * 2 + [1] * 9:
    pairs.append(full())
    threading.Thread(target=send, args=(pairs[-1][0], count), daemon=True).start()
    time.sleep(0.05)
os.write(ready, b'x')
time.sleep(1000)
";

/// Opens a FIFO in a second thread.
const WAITS: &str = "
def wait():
    with open('fifo') as fifo:
        open('read', 'w').write(fifo.read())
os.mkfifo('fifo')
threading.Thread(target=wait).start()
time.sleep(0.5)
os.write(ready, b'x')
";

/// A home of an ordinary user: root's processes have no limit.
struct Place {
    home: TempDir,
    dewar: PathBuf,
}

impl Place {
    fn new() -> Self {
        let mut home = tempfile::Builder::new();
        let home = home.permissions(fs::Permissions::from_mode(0o755));
        let home = home.tempdir_in("/var/lib").or_else(|_| tempfile::tempdir()).unwrap();
        fs::create_dir(home.path().join("bin")).unwrap();
        let dewar = test_support::install(&home.path().join("bin"), &["dewar"]);
        let place = Self { home, dewar };
        for name in ["", "work"] {
            let path = place.path(name);
            fs::create_dir_all(&path).unwrap();
            if let Some((uid, gid)) = ids() {
                chown(path, Some(uid), Some(gid)).unwrap();
            }
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn like(&self, mut command: Command) -> Command {
        command.current_dir(self.path("work")).env_clear().env("HOME", self.home.path());
        command.env("PATH", "/usr/bin:/bin").env("NO_COLOR", "1").stdin(Stdio::null());
        if let Some((uid, gid)) = ids() {
            command.uid(uid).gid(gid);
        }
        command
    }

    fn say(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.dewar);
        command.args(args);
        self.like(command).output().unwrap()
    }

    /// Begins a run under limits; comes back when its program is ready. It has a group of its own,
    /// as a shell makes one.
    fn begin(&self, limits: &str, words: &[&str]) -> Run {
        self.begin_under("workspace", limits, words)
    }

    fn begin_under(&self, profile: &str, limits: &str, words: &[&str]) -> Run {
        let mut command = Command::new("bash");
        let dewar = self.dewar.display();
        let script = format!(
            "{limits}; exec {dewar} run --no-daemon --name z -p {profile} -- \"$@\" >/dev/null 2>said"
        );
        command.args(["-c", &script, "bash"]).args(words).process_group(0);
        let run = Run(self.like(command).spawn().unwrap());
        let until = Instant::now() + PATIENCE;
        while !fs::read(self.path("work/ready")).is_ok_and(|it| !it.is_empty()) {
            assert!(Instant::now() < until, "the program is not ready");
            std::thread::sleep(Duration::from_millis(20));
        }
        run
    }

    /// Presses Ctrl-Z; whether that stops the run, of which nothing goes on then. Else it says so.
    fn is_stopped(&self, run: &Run) -> bool {
        kill_process(run.pid(), Signal::TSTP).unwrap();
        let until = Instant::now() + PATIENCE;
        while !run.is_stopped() {
            if fs::read_to_string(self.path("work/said")).unwrap().contains("dewar: not stopped") {
                return false;
            }
            assert!(Instant::now() < until, "it neither stops nor says why");
            std::thread::sleep(Duration::from_millis(20));
        }
        let ticks = || fs::read(self.path("work/ticks")).unwrap();
        let before = ticks();
        std::thread::sleep(Duration::from_millis(500));
        assert!(ticks() == before, "a process goes on while the run is stopped");
        true
    }

    /// The run is listed, and takes a change.
    fn is_seen_and_revoked(&self) {
        let shown = self.say(&["ps"]);
        let told = text(&shown.stdout) + &text(&shown.stderr);
        assert!(told.contains("(z)") && told.contains("[main]"), "{told}");
        let file = self.path("work/taken").display().to_string();
        let said = self.say(&["revoke", "z", "--file", &file]);
        let told = text(&said.stdout) + &text(&said.stderr);
        assert!(said.status.success() && told.contains("complete after"), "{told}");
    }
}

/// The IDs of the ordinary user, unless they are the tests' own.
fn ids() -> Option<(u32, u32)> {
    rustix::process::geteuid().is_root().then(ordinary_user)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A run that is killed in the end.
struct Run(Child);

impl Run {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit(')').next().unwrap().starts_with(" T")
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Leaves room for so many processes more than the user has.
fn processes(more: u32) -> String {
    format!("ulimit -u $(($(ps -L -u $(id -u) --no-headers | wc -l) + {more}))")
}

#[test]
fn a_run_that_has_its_monitor_use_up_descriptors_is_seen_and_revoked() {
    let place = Place::new();
    let _run = place.begin("ulimit -n 256", &["python3", "-c", &format!("{READY}{DESCRIPTORS}")]);
    place.is_seen_and_revoked();
}

#[test]
fn a_run_whose_messages_wait_with_all_descriptors_is_seen_and_revoked() {
    let place = Place::new();
    let profile = place.path("p.toml");
    // Datagrams are decided, and so every message is.
    let rules = "extends = 'workspace'\n[network]\nconnect = ['127.0.0.1:53/udp']\n";
    fs::write(&profile, rules).unwrap();
    let words = ["python3", "-c", &format!("{READY}{MESSAGES}")];
    let _run = place.begin_under(profile.to_str().unwrap(), "ulimit -n 1024", &words);
    place.is_seen_and_revoked();
}

#[test]
fn a_run_that_uses_up_all_processes_is_seen_and_revoked() {
    let place = Place::new();
    let _run = place.begin(&processes(60), &["python3", "-c", &format!("{READY}{PROCESSES}")]);
    for _ in 0..3 {
        place.is_seen_and_revoked();
    }
}

#[test]
fn a_run_that_uses_up_all_processes_stands_still_while_it_is_stopped() {
    let place = Place::new();
    let run =
        place.begin(&processes(60), &["python3", "-c", &format!("{READY}{COUNTS}{PROCESSES}")]);
    assert!(place.is_stopped(&run), "it does not stop");
}

#[test]
fn a_program_with_a_thread_that_waits_in_the_monitor_is_stopped_and_goes_on() {
    let place = Place::new();
    let run = place.begin("true", &["python3", "-c", &format!("{READY}{COUNTS}{WAITS}")]);
    assert!(place.is_stopped(&run), "it does not stop");
    kill_process(run.pid(), Signal::CONT).unwrap();
    fs::write(place.path("work/fifo"), "told").unwrap();
    let until = Instant::now() + PATIENCE;
    while !fs::read(place.path("work/read")).is_ok_and(|it| it == b"told") {
        assert!(Instant::now() < until, "the thread does not go on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_program_has_the_limits_of_dewars_caller() {
    let place = Place::new();
    let limits = |limits: &str| {
        let mut command = Command::new("sh");
        let dewar = place.dewar.display();
        let script = format!("{limits}; {dewar} run --no-daemon -- sh -c 'ulimit -Sn; ulimit -Hn'");
        command.args(["-c", &script]);
        text(&place.like(command).output().unwrap().stdout)
    };
    assert_eq!(limits("ulimit -Sn 300; ulimit -Hn 700"), "300\n700\n");
}

#[test]
fn a_run_that_does_not_answer_has_not_ended() {
    let place = Place::new();
    let runs = place.path("runtime/dewar/runs");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&runs).unwrap();
    // It listens, as this process, which lives; and it never answers.
    let socket = runs.join(format!("zz4k2m9x.{}", std::process::id()));
    let kind = SocketType::SEQPACKET;
    let fd = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    bind(&fd, &SocketAddrUnix::new(&socket).unwrap()).unwrap();
    listen(&fd, 8).unwrap();
    let say = |args: &[&str]| {
        let mut command = Command::new(&place.dewar);
        command.args(args).env_clear().env("HOME", place.path("")).env("NO_COLOR", "1");
        let runtime: &Path = &place.path("runtime");
        command.env("XDG_RUNTIME_DIR", runtime).env("XDG_STATE_HOME", place.path("state"));
        command.output().unwrap()
    };
    let ends = format!("`kill -KILL {}` ends it", std::process::id());
    for args in [
        &["ps"][..],
        &["revoke", "zz4k2m9x", "--all"],
        &["revoke", "other", "--all"],
        &["revoke", "last", "--all"],
        &["revoke", "--all"],
    ] {
        let said = say(args);
        let told = super::in_a_line(&(text(&said.stdout) + &text(&said.stderr)));
        assert!(told.contains("does not answer") && told.contains(&ends), "{args:?}: {told}");
        assert!(!told.contains("nothing runs") && !told.contains("has ended"), "{args:?}: {told}");
        assert_eq!(said.status.code(), Some(1), "{args:?}: {told}");
    }
    let top = say(&["top", "--once", "--interval", "0.1"]);
    let told = super::in_a_line(&text(&top.stdout));
    assert!(told.contains("does not answer") && told.contains(&ends), "{told}");
    let top = say(&["top", "--once", "--json", "--interval", "0.1"]);
    let told: serde_json::Value = serde_json::from_slice(&top.stdout).unwrap();
    assert_eq!(told["unheard"][0]["id"], "zz4k2m9x", "{told}");
    assert_eq!(told["unheard"][0]["stopped"], false, "{told}");
}
