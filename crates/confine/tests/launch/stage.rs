//! Where a test runs: as which user, in which directory, and how it starts the small Dewar.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::user::{User, program};

/// Longer than any sound run takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

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
        let directory = user.directory("dewar-launch-");
        Self { user, directory }
    }

    /// The test's own directory, which its user owns.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a directory below the test's own.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(&path).expect("create a directory");
        self.user.give(&path);
        path
    }

    /// Makes a file below the test's own directory.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        self.user.file(self.path(), name, content)
    }

    /// A command that runs `program` as the test's user.
    pub(crate) fn command(&self, program: &Path) -> Command {
        self.user.command(program, self.path())
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
