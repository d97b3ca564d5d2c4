//! Where a case runs: a home with secrets, a workspace in it, something outside, and how commands
//! are started.

use crate::{
    daemon::Daemon,
    dewar::Call,
    process::run,
    record::Record,
    suite::{Ids, Suite, directory},
};
use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tempfile::TempDir;
use test_support::Variant;

/// Where programs are looked for: those of the system, whoever runs the tests.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// A home, a workspace, and the way to start commands there.
pub(crate) struct Stage {
    pub(crate) variant: Variant,
    /// Decides for the runs of this stage, if the suite is run so. Ended before the directories go.
    daemon: Mutex<Option<Daemon>>,
    suite: Arc<Suite>,
    home: TempDir,
    outside: TempDir,
}

/// How a command is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Native,
    /// Under `dewar run`, every access decided.
    Dewar,
    /// Under `dewar run`, reading left to the envelope.
    Fast,
}

impl Stage {
    pub(crate) fn new(suite: Arc<Suite>, variant: Variant) -> Self {
        let home = directory(suite.homes()).expect("a home");
        let outside = directory(suite.outside()).expect("a directory outside");
        let stage = Self { variant, daemon: Mutex::default(), suite, home, outside };
        stage.give(stage.home());
        stage.give(stage.outside());
        for name in ["work", "state", ".ssh", ".aws"] {
            stage.directory(&stage.home().join(name));
        }
        stage.file(&stage.home().join(".ssh/id_ed25519"), "secret key\n");
        stage.file(&stage.home().join(".aws/credentials"), "secret credentials\n");
        stage.file(&stage.outside().join("file"), "outside\n");
        if stage.suite.dewar.uses_daemon {
            *stage.lock() = Some(Daemon::start(&stage, &[]));
        }
        stage
    }

    fn lock(&self) -> MutexGuard<'_, Option<Daemon>> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a daemon decides for all runs of this stage.
    pub(crate) fn has_daemon(&self) -> bool {
        self.lock().is_some()
    }

    /// Ends that daemon, if there is one.
    pub(crate) fn stop_daemon(&self) {
        drop(self.lock().take());
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The directory that commands start in and may change.
    pub(crate) fn work(&self) -> PathBuf {
        self.home().join("work")
    }

    /// A directory of the same owner that no rule grants.
    pub(crate) fn outside(&self) -> &Path {
        self.outside.path()
    }

    /// The IDs that commands run with, unless they are the tests' own.
    fn ids(&self) -> Option<Ids> {
        self.suite.ids(self.variant)
    }

    pub(crate) fn give(&self, path: &Path) {
        if let Some((uid, gid)) = self.ids() {
            std::os::unix::fs::chown(path, Some(uid), Some(gid)).expect("give a file away");
        }
    }

    fn directory(&self, path: &Path) {
        std::fs::create_dir(path).expect("create a directory");
        self.give(path);
    }

    /// Makes a file that belongs to the user of the case.
    pub(crate) fn file(&self, path: &Path, content: &str) {
        std::fs::write(path, content).expect("write a file");
        self.give(path);
    }

    /// A profile of this text; its name for the command line.
    pub(crate) fn profile(&self, text: &str) -> String {
        let path = self.home().join("profile.toml");
        self.file(&path, text);
        path.to_string_lossy().into_owned()
    }

    /// The default profile without a loopback of the run's own: every use of sockets is decided.
    pub(crate) fn without_loopback(&self) -> String {
        self.profile("extends = 'workspace'\nnetwork.loopback = 'none'\n")
    }

    /// A command in the workspace, as the user of the case. `words` start with the program.
    pub(crate) fn command(&self, words: &[OsString]) -> Command {
        let mut all = self.variant.around(&self.suite.launcher);
        all.extend_from_slice(words);
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).current_dir(self.work()).env_clear().envs(environment());
        command.env("HOME", self.home()).env("XDG_STATE_HOME", self.home().join("state"));
        // There is none, so the control sockets lie with the records; their path is too long for an
        // address.
        command.env("XDG_RUNTIME_DIR", self.home().join("no-runtime-directory"));
        // Scripts reach what lies outside by this name.
        command.env("OUTSIDE", self.outside());
        if let Some((uid, gid)) = self.ids() {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// The call of Dewar that this stage's variant asks for.
    pub(crate) fn call(&self) -> Call<'static> {
        Call {
            profile: None,
            fast: false,
            namespaces: !self.variant.is_told_so(),
            audit: None,
            daemon: self.suite.dewar.uses_daemon,
        }
    }

    /// `words` under Dewar.
    pub(crate) fn dewar(&self, call: Call<'_>, words: &[OsString]) -> Command {
        self.command(&self.under_dewar(call, words))
    }

    /// The words that run `words` under Dewar; options come third.
    pub(crate) fn under_dewar(&self, call: Call<'_>, words: &[OsString]) -> Vec<OsString> {
        self.suite.dewar.words(call, words)
    }

    /// Another subcommand of Dewar.
    pub(crate) fn control(&self, arguments: &[&str]) -> Command {
        self.command(&self.suite.dewar.command(arguments))
    }

    /// The command for `words`, started as `how` says, by default under `profile`.
    pub(crate) fn prepared(&self, how: How, profile: Option<&str>, words: &[OsString]) -> Command {
        let call = Call { fast: how == How::Fast, profile, ..self.call() };
        if how == How::Native { self.command(words) } else { self.dewar(call, words) }
    }

    /// Runs a script natively, to prepare something. It must succeed.
    pub(crate) fn prepare(&self, script: &str) {
        let ran = run(self.command(&bash(script)), b"");
        assert!(ran.status.success(), "the preparation failed: {}{}", ran.out(), ran.err());
    }

    /// What was kept of the last run.
    pub(crate) fn record(&self) -> Record {
        Record::last(&self.home().join("state"))
    }
}

/// The words that run a script.
pub(crate) fn bash(script: &str) -> Vec<OsString> {
    ["bash", "-c", script].map(Into::into).into()
}

fn environment() -> [(&'static str, &'static str); 9] {
    [
        ("PATH", PATH),
        ("LANG", "C.UTF-8"),
        ("USER", "tester"),
        ("PYTHONDONTWRITEBYTECODE", "1"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_AUTHOR_NAME", "Tester"),
        ("GIT_AUTHOR_EMAIL", "tester@example.org"),
        ("GIT_COMMITTER_NAME", "Tester"),
        ("GIT_COMMITTER_EMAIL", "tester@example.org"),
    ]
}
