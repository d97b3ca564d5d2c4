//! A home, a daemon, a server of labelled entries, and clients of it outside and in a sandbox.

use crate::installed;
use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The languages of `examples/kv`. Python where `make wheel` has put its environment into
/// DEWAR_PYTHON.
pub(crate) fn languages() -> Vec<&'static str> {
    let python = env::var_os("DEWAR_PYTHON").map(|_| "python");
    if python.is_none() {
        eprintln!("note: DEWAR_PYTHON names no environment (`make wheel`), so Python is left out");
    }
    ["rust", "c"].into_iter().chain(python).collect()
}

/// The example in Rust, which is built with the tests.
fn rust_server() -> PathBuf {
    let own = env::current_exe().expect("this program");
    let server = own.ancestors().nth(2).expect("target/PROFILE").join("examples/kv");
    assert!(server.exists(), "cargo build --workspace --example kv");
    server
}

pub(crate) struct Stage {
    directory: TempDir,
    daemon: Option<Child>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        // Not below `/tmp`, which a sandbox has for itself.
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let home = Path::new("/home").is_dir() && root;
        let base = if home { "/home" } else { env!("CARGO_TARGET_TMPDIR") };
        let directory = tempfile::tempdir_in(base).expect("a directory");
        for name in ["home", "work", "run", "state"] {
            fs::create_dir(directory.path().join(name)).expect("created");
        }
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(directory.path().join("run"), private).expect("set");
        let profile = "extends = \"workspace\"\n[network]\nconnect = [\"unix:${workspace}/kv\"]\n";
        fs::write(directory.path().join("client.toml"), profile).expect("written");
        Self { directory, daemon: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn with_surroundings(&self, mut command: Command) -> Command {
        command.current_dir(self.path("work"));
        command.env("HOME", self.path("home")).env("XDG_RUNTIME_DIR", self.path("run"));
        command.env("XDG_STATE_HOME", self.path("state")).env("NO_COLOR", "1");
        command
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(test_support::dewar());
        command.args(words);
        self.with_surroundings(command)
    }

    pub(crate) fn say(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("started")
    }

    /// Starts the daemon, and waits until it listens.
    pub(crate) fn start(&mut self) {
        let command = &mut self.command(&["daemon"]);
        self.daemon = Some(command.stderr(Stdio::null()).spawn().expect("started"));
        let begin = Instant::now();
        while !self.say(&["daemon", "--runs"]).status.success() {
            assert!(begin.elapsed() < Duration::from_secs(60), "the daemon does not listen");
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn journal(&self, words: &[&str]) -> Vec<serde_json::Value> {
        let words: Vec<_> = ["audit", "--json"].iter().chain(words).copied().collect();
        let output = self.say(&words);
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).expect("Unicode");
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Starts the server, to which this user is `subject` outside of every sandbox.
    pub(crate) fn serve(self, language: &str, subject: &str, daemon: bool) -> Server {
        let mut command = match language {
            "rust" => Command::new(rust_server()),
            "c" => installed::c_server(&self.path("home")),
            _ => {
                let mut python = Command::new(env::var_os("DEWAR_PYTHON").expect("set"));
                python.arg(format!("{ROOT}/examples/kv/kv.py"));
                python
            }
        };
        command.arg(self.path("work/kv")).arg(format!("{ROOT}/examples/kv/kv.cil"));
        command.args(daemon.then_some("--daemon"));
        let uid = fs::metadata("/proc/self").expect("this process").uid();
        match subject {
            "nobody" => command.arg(format!("{}=dewar_u:dewar_r:reader_t", uid + 1)),
            subject => command.arg(format!("{uid}=dewar_u:dewar_r:{subject}_t")),
        };
        let said = fs::File::create(self.path("said")).expect("a file");
        let mut command = self.with_surroundings(command);
        let mut process = command.stdout(Stdio::piped()).stderr(said).spawn().expect("started");
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().expect("a pipe"));
        out.read_line(&mut line).expect("a line");
        let said = fs::read_to_string(self.path("said")).unwrap_or_default();
        assert!(line.starts_with("ready"), "{language}: {line}{said}");
        let run = line.trim_end().strip_prefix("ready as run ").map(str::to_owned);
        Server { stage: self, language: language.to_owned(), run, process }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            // One that has ended already is as good.
            let _ = (daemon.kill(), daemon.wait());
        }
    }
}

pub(crate) struct Server {
    pub(crate) stage: Stage,
    pub(crate) language: String,
    pub(crate) run: Option<String>,
    process: Child,
}

impl Server {
    /// A connection from outside.
    pub(crate) fn client(&self) -> Client {
        let stream = UnixStream::connect(self.stage.path("work/kv")).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        Client(BufReader::new(stream))
    }

    /// What it has put on standard error.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.stage.path("said")).expect("a file")
    }

    /// A client in a sandbox that sends these requests, and prints what comes until it is told
    /// `revoked`.
    pub(crate) fn inside(&self, requests: &[&str]) -> Inside {
        let script = "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => 'kv') or die \"connect: $!\";
            $s->autoflush; $| = 1; my $n = 0; for (@ARGV) { print $s \"$_\\n\"; }
            while (<$s>) { print; $n++; last if /revoked/ or ($n == @ARGV and \"@ARGV\" !~ /watch/); }";
        let profile = self.stage.path("client.toml");
        let mut command = self.stage.command(&["run", "-p"]);
        command.arg(profile).args(["--", "perl", "-e", script]).args(requests);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("started");
        let out = BufReader::new(process.stdout.take().expect("a pipe"));
        Inside { process, out }
    }

    pub(crate) fn ask_inside(&self, request: &str) -> String {
        let mut inside = self.inside(&[request]);
        let answer = inside.line();
        inside.rest();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = (self.process.kill(), self.process.wait());
    }
}

pub(crate) struct Client(BufReader<UnixStream>);

impl Client {
    pub(crate) fn ask(&mut self, request: &str) -> String {
        // A server that refuses whoever connects has closed already.
        let _ = writeln!(self.0.get_mut(), "{request}");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        line
    }
}

pub(crate) struct Inside {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Inside {
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// What it prints until it ends.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("Unicode");
        self.process.wait().expect("it ends");
        rest
    }
}
