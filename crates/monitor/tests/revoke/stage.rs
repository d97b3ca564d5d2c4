//! Where a test runs, and how it starts the small Dewar.

use crate::user::{User, program};
use serde_json::Value;
use std::{
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Longer than any sound run takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one test has to itself: a workspace with the files `secret` and `public`.
pub(crate) struct Stage {
    user: User,
    directory: TempDir,
}

/// A change of booleans while a script runs.
#[derive(Clone, Copy)]
pub(crate) struct Booleans<'a> {
    /// Lines of the profile, which extends `workspace`.
    pub(crate) profile: &'a str,
    /// CIL beside that of the profile.
    pub(crate) added: &'a str,
    /// Text of the profile's CIL, and what stands there instead.
    pub(crate) without: Option<(&'a str, &'a str)>,
    pub(crate) set: &'a [(&'a str, bool)],
    pub(crate) mode: &'a str,
}

impl Default for Booleans<'_> {
    fn default() -> Self {
        Self { profile: "", added: "", without: None, set: &[], mode: "\"repair\"" }
    }
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

/// The script has said this, and nothing else.
pub(crate) fn check(ran: &Ran, want: &Value) {
    assert_eq!(ran.said, *want, "{:?} {}", ran.output, ran.receipt);
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
        let directory = user.directory("dewar-revoke-");
        let stage = Self { user, directory };
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
        self.user.file(self.path(), name, content);
    }

    /// Runs a script that calls `change()` once, while `secret` is taken from it.
    pub(crate) fn without_secret(&self, script: &str) -> Ran {
        self.change(("", "[files]\ndeny = ['${workspace}/secret*']\n"), "\"repair\"", script)
    }

    /// Runs a script that calls `change()` once, while booleans are set, as a daemon does it.
    pub(crate) fn set(&self, booleans: Booleans<'_>, script: &str) -> Ran {
        self.file("added.cil", booleans.added);
        let set = serde_json::json!({ "set": booleans.set, "without": booleans.without });
        self.file("booleans", &set.to_string());
        self.change((booleans.profile, ""), booleans.mode, script)
    }

    /// Runs a script that makes the file `ready`, and takes everything from it then.
    pub(crate) fn everything(&self, script: &str) -> Ran {
        self.file("everything", "");
        self.change(("", ""), "\"end\"", script)
    }

    /// The small Dewar; if the test has made a file `mounts`, a script of a shell, then as it says
    /// and in namespaces of its own.
    fn command(&self) -> Command {
        if !self.path().join("mounts").exists() {
            return self.user.command(program(), self.path());
        }
        let mut command = self.user.command(Path::new("unshare"), self.path());
        let then = ". ./mounts; exec \"$0\" \"$@\"";
        command.args(["-Urm", "sh", "-ec", then]).arg(program());
        command
    }

    /// Runs a script that calls `change()` once, first under the profile `workspace` with the lines
    /// `before`, then with the lines `after`.
    pub(crate) fn change(&self, (before, after): (&str, &str), mode: &str, script: &str) -> Ran {
        // What a change before has left would be taken for this one's.
        for name in ["ready", "changed", "receipt.json"] {
            let _ = std::fs::remove_file(self.path().join(name));
        }
        for (name, lines) in [("before.toml", before), ("after.toml", after)] {
            self.file(name, &format!("extends = 'workspace'\n{lines}"));
        }
        self.file("script.py", &format!("{PRELUDE}{script}\nprint(json.dumps(said))\n"));
        let mut command = self.command();
        command.arg("--as-dewar").arg(self.path()).arg(mode).args(["python3", "script.py"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
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
