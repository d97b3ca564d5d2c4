//! Where a test runs: as which user, in which directory, and how it starts the small Dewar.

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longer than any sound run takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A uid that belongs to nobody.
const ORDINARY: u32 = 65533;

/// As whom a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    /// Someone without any privilege: uid 65533 if the tests are run by root.
    Ordinary,
}

impl User {
    /// Those that the caller of the tests can be.
    pub(crate) fn available() -> Vec<Self> {
        if rustix::process::geteuid().is_root() {
            return vec![Self::Root, Self::Ordinary];
        }
        eprintln!("note: not run by root, so the part of these tests that needs root is left out");
        vec![Self::Ordinary]
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Ordinary => "user",
        }
    }
}

/// What one test has to itself.
pub(crate) struct Stage {
    pub(crate) user: User,
    directory: TempDir,
}

/// How a run ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Stage {
    pub(crate) fn new(user: User) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("dewar-launch-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a temporary directory");
        let stage = Self { user, directory };
        stage.give(stage.path());
        stage
    }

    /// The test's own directory, which its user owns.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a directory below the test's own.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(&path).expect("create a directory");
        self.give(&path);
        path
    }

    /// Makes a file below the test's own directory.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("write a file");
        self.give(&path);
        path
    }

    pub(crate) fn give(&self, path: &Path) {
        if self.user == User::Ordinary && rustix::process::geteuid().is_root() {
            chown(path, Some(ORDINARY), Some(ORDINARY)).expect("give a file away");
        }
    }

    /// A command that runs `program` as the test's user.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path()).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        if self.user == User::Ordinary && rustix::process::geteuid().is_root() {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command
    }

    /// The small Dewar with `plan` and the words of its command.
    pub(crate) fn dewar(&self, plan: &Value, words: &[&str]) -> Command {
        let mut command = self.command(program());
        command.arg("--as-dewar").arg(plan.to_string()).args(words);
        command
    }

    /// Runs a shell script in a sandbox, to its end.
    pub(crate) fn run(&self, plan: &Value, script: &str) -> Ran {
        run(self.dewar(plan, &["sh", "-c", script]))
    }
}

/// This program, where every user can execute it.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let directory = tempfile::Builder::new()
            .prefix("dewar-program-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a temporary directory");
        let path = directory.path().join("launch");
        std::fs::copy(std::env::current_exe().expect("this program"), &path).expect("copy it");
        (directory, path)
    });
    path
}

/// Runs `command` to its end, without input.
pub(crate) fn run(mut command: Command) -> Ran {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("start");
    let out = reader(child.stdout.take().expect("stdout"));
    let err = reader(child.stderr.take().expect("stderr"));
    let status = end_of(&mut child);
    Ran { status, out: out.join().expect("read"), err: err.join().expect("read") }
}

fn reader(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("read");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// How `child` ends.
///
/// # Panics
///
/// If that takes too long.
pub(crate) fn end_of(child: &mut Child) -> ExitStatus {
    let ended = until(|| child.try_wait().expect("wait"));
    ended.unwrap_or_else(|| {
        let _ = child.kill();
        panic!("still running after {PATIENCE:?}")
    })
}

/// What `probe` finds as soon as it finds something; `None` if it never does.
pub(crate) fn until<T>(mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(found) = probe() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

/// The processes whose command line contains `mark` as one word.
pub(crate) fn processes(mark: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("read /proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let marked = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).any(|word| word == mark.as_bytes())
    };
    pids.filter(marked).collect()
}

/// Writes all of `text`.
pub(crate) fn say(mut stream: impl Write, text: &str) {
    stream.write_all(text.as_bytes()).expect("write");
    stream.flush().expect("flush");
}
