//! Where a test runs, and how it starts the small Dewar.

use serde_json::Value;
use std::{
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A uid that belongs to nobody.
const ORDINARY: u32 = 65533;
/// Longer than any sound run takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// As whom a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What one test has to itself: a workspace with the files `secret` and `public`.
pub(crate) struct Stage {
    user: User,
    directory: TempDir,
}

/// What came of a run with a change in its middle.
pub(crate) struct Ran {
    /// What the script printed: a line of JSON.
    pub(crate) said: Value,
    pub(crate) receipt: Value,
    pub(crate) output: Output,
}

impl Ran {
    /// What was done, by what was held, as words.
    pub(crate) fn actions(&self, held: &str) -> Vec<&str> {
        let holders = self.receipt["holders"].as_array().expect("holders");
        let about = holders.iter().filter(|holder| !holder["held"][held].is_null());
        about.map(|holder| holder["action"].as_str().expect("an action")).collect()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.receipt["complete"] == true
    }
}

/// What every script begins with.
const PRELUDE: &str = r#"
import errno, json, mmap, os, select, signal, socket, subprocess, sys, threading, time
said = {}
def say(name, action):
    try:
        result = action()
        said[name] = result.decode() if isinstance(result, bytes) else result
    except OSError as error:
        said[name] = errno.errorcode[error.errno]
def change():
    open("ready", "w").close()
    while not os.path.exists("changed"):
        time.sleep(0.002)
"#;

impl Stage {
    pub(crate) fn new(user: User) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("dewar-revoke-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a temporary directory");
        let stage = Self { user, directory };
        stage.give(stage.path());
        stage.file("secret", "secret content");
        stage.file("public", "public content");
        stage
    }

    /// The test's own directory, which its user owns.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a file below the test's own directory.
    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("write a file");
        self.give(&path);
    }

    fn give(&self, path: &Path) {
        if self.user == User::Ordinary && rustix::process::geteuid().is_root() {
            chown(path, Some(ORDINARY), Some(ORDINARY)).expect("give a file away");
        }
    }

    /// Runs a script that calls `change()` once, while `secret` is taken from it.
    pub(crate) fn without_secret(&self, script: &str) -> Ran {
        self.change(("", "[files]\ndeny = ['${workspace}/secret*']\n"), "\"repair\"", script)
    }

    /// Runs a script that calls `change()` once, first under the profile `workspace` with the lines `before`, then
    /// with the lines `after`.
    pub(crate) fn change(&self, (before, after): (&str, &str), manner: &str, script: &str) -> Ran {
        for (name, lines) in [("before.toml", before), ("after.toml", after)] {
            self.file(name, &format!("extends = 'workspace'\n{lines}"));
        }
        self.file("script.py", &format!("{PRELUDE}{script}\nprint(json.dumps(said))\n"));
        let mut command = Command::new(program());
        command.arg("--as-dewar").arg(self.path()).arg(manner);
        command.args(["python3", "script.py"]).current_dir(self.path());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.user == User::Ordinary && rustix::process::geteuid().is_root() {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        let mut child = command.spawn().expect("start");
        let begun = Instant::now();
        while child.try_wait().expect("wait").is_none() {
            if begun.elapsed() > PATIENCE {
                let _ = child.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let output = child.wait_with_output().expect("its output");
        let receipt = std::fs::read_to_string(self.path().join("receipt.json"));
        let changes = std::fs::read_to_string(self.path().join("changes")).unwrap_or_default();
        // Of many changes the last that somebody held something at.
        let last = changes.lines().rfind(|line| !line.contains("\"holders\":[]"));
        let receipt = receipt.unwrap_or_else(|_| last.unwrap_or_default().to_owned());
        let said = String::from_utf8_lossy(&output.stdout);
        let said = serde_json::from_str(said.lines().last().unwrap_or_default());
        Ran {
            said: said.unwrap_or(Value::Null),
            receipt: serde_json::from_str(&receipt).unwrap_or(Value::Null),
            output,
        }
    }
}

/// This program, where every user can execute it.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let directory = tempfile::Builder::new()
            .prefix("dewar-program-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir()
            .expect("a temporary directory");
        let path = directory.path().join("revoke");
        std::fs::copy(std::env::current_exe().expect("this program"), &path).expect("copy it");
        (directory, path)
    });
    path
}
