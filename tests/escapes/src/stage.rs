//! Where an attack runs: a home with secrets, a workspace in it, and how the attack is started.

use crate::{
    attack,
    dewar::{Call, words},
};
use std::{
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;
pub(crate) use test_support::Variant;
use test_support::ordinary_user;

/// What the secret file holds.
pub(crate) const SECRET: &str = "the secret key";
/// The variants that the caller of the tests can be.
pub(crate) fn available() -> Vec<Variant> {
    if rustix::process::geteuid().is_root() {
        return Variant::ALL.to_vec();
    }
    eprintln!("note: not run by root, so the part of these tests that needs root is left out");
    vec![Variant::User, Variant::Bare]
}

/// What one test has to itself.
pub(crate) struct Stage {
    pub(crate) variant: Variant,
    home: TempDir,
}

impl Stage {
    pub(crate) fn new(variant: Variant) -> Self {
        let home = tempfile::Builder::new()
            .prefix("dewar-escapes-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir_in("/var/lib")
            .or_else(|_| tempfile::tempdir())
            .expect("a home");
        let stage = Self { variant, home };
        stage.give(stage.home());
        stage.directory("work");
        stage.file(".ssh/id_ed25519", SECRET);
        stage
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The directory that attacks start in and may change.
    pub(crate) fn work(&self) -> PathBuf {
        self.home().join("work")
    }

    /// Makes a directory below the home, and those above it.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let mut path = self.home().to_owned();
        for part in Path::new(name) {
            path.push(part);
            if !path.exists() {
                std::fs::create_dir(&path).expect("create a directory");
                self.give(&path);
            }
        }
        path
    }

    /// Makes a file below the home.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        if let Some(parent) = Path::new(name).parent().and_then(Path::to_str) {
            self.directory(parent);
        }
        let path = self.home().join(name);
        std::fs::write(&path, content).expect("write a file");
        self.give(&path);
        path
    }

    /// Puts the program of an attack below the home.
    pub(crate) fn program(&self, name: &str, attack: &str) -> PathBuf {
        // Where an attack of before is just ending, its file cannot be written to.
        let _ = std::fs::remove_file(self.home().join(name));
        let path = self.file(name, "");
        test_support::copy_program(&attack::build(attack), &path);
        self.give(&path);
        path
    }

    /// Gives a file to the user of the test.
    pub(crate) fn give(&self, path: &Path) {
        if let Some((uid, gid)) = self.ids() {
            chown(path, Some(uid), Some(gid)).expect("give a file away");
        }
    }

    /// Makes a profile that extends `workspace`.
    pub(crate) fn profile(&self, rules: &str) -> String {
        let path = self.file("profile.toml", &format!("extends = \"workspace\"\n{rules}"));
        path.to_str().expect("UTF-8").to_owned()
    }

    /// A call of Dewar that this variant asks for.
    pub(crate) fn call<'a>(&self, profile: &'a str) -> Call<'a> {
        let namespaces = self.variant != Variant::Bare;
        Call { profile, namespaces, ..Call::default() }
    }

    /// A command that runs an attack, put into the workspace under its own name, with `arguments`.
    pub(crate) fn command(&self, call: Call<'_>, attack: &str, arguments: &[&str]) -> Command {
        let program = self.program(&format!("work/{attack}"), attack);
        let mut words = words(call);
        words.push(program.to_str().expect("UTF-8").to_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(arguments);
        self.like(command)
    }

    /// The command in the workspace, as the user of the test.
    pub(crate) fn like(&self, mut command: Command) -> Command {
        command.current_dir(self.work()).env_clear();
        command.env("HOME", self.home()).env("PATH", "/usr/bin:/bin");
        if let Some((uid, gid)) = self.ids() {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Runs an attack in both modes of mediation; it must have been held.
    pub(crate) fn holds(&self, profile: &str, attack: &str, arguments: &[&str]) {
        for fast in [false, true] {
            let call = Call { fast, ..self.call(profile) };
            held(&self.command(call, attack, arguments).output().expect("start `dewar`"));
        }
    }

    /// The IDs that attacks run with, unless they are the tests' own.
    fn ids(&self) -> Option<(u32, u32)> {
        let is_root = rustix::process::geteuid().is_root();
        (is_root && self.variant != Variant::Root).then(ordinary_user)
    }
}

/// Whether an attack says that it was held.
pub(crate) fn held(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}", output.status);
}
