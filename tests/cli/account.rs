//! An account on which nothing was ever set up, with a project and secrets in it.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt as _, lchown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command},
};
use tempfile::TempDir;

/// An ordinary user, who need not have a name.
const USER: u32 = 61_235;

/// Whether the tool is here. A machine may say by `DEWAR_TEST_WITHOUT=npm,go` that it does without;
/// else that is a failure.
pub(crate) fn has(tool: &str) -> bool {
    let without = std::env::var("DEWAR_TEST_WITHOUT").unwrap_or_default();
    if without.split(',').any(|name| name == tool) {
        eprintln!("note: without `{tool}`, as DEWAR_TEST_WITHOUT says");
        return false;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&paths).any(|directory| directory.join(tool).exists());
    assert!(
        is_there,
        "`{tool}` is not installed, so a profile is not tested: install it, or set DEWAR_TEST_WITHOUT={tool}"
    );
    true
}

/// A fresh account with a project and secrets in it. Not below `/tmp`, of which each run has its
/// own.
pub(crate) struct Account {
    directory: TempDir,
    dewar: PathBuf,
    variables: Vec<(String, String)>,
    user: Option<u32>,
}

/// What a command came to.
pub(crate) struct Came {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Account {
    pub(crate) fn new(user: Option<u32>) -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        let dewar = test_support::install(directory.path(), &["dewar"]);
        let account = Self { directory, dewar, variables: Vec::new(), user };
        account.write(".ssh/id_ed25519", "planted");
        account.write(".aws/credentials", "planted");
        fs::create_dir(account.path("work")).unwrap();
        account
    }

    /// Has another of Dewar's programs beside `dewar`.
    pub(crate) fn bring(&self, program: &str) {
        test_support::install(self.directory.path(), &[program]);
    }

    /// Where `dewar` lies.
    pub(crate) fn programs(&self) -> &Path {
        self.directory.path()
    }

    /// In the home.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("home").join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.into(), value.into()));
    }

    /// Gives all of it to the user.
    pub(crate) fn give(&self) {
        fn give(path: &Path, user: u32) {
            lchown(path, Some(user), Some(user)).unwrap();
            if path.is_dir() && !path.is_symlink() {
                for entry in fs::read_dir(path).unwrap() {
                    give(&entry.unwrap().path(), user);
                }
            }
        }
        if let Some(user) = self.user {
            give(&self.path(""), user);
        }
    }

    pub(crate) fn dewar(&self, args: &[&str]) -> Came {
        let output = self.command(args).output().unwrap();
        Came {
            status: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The command, as the account would start it.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.dewar);
        command.args(args);
        self.of_account(command)
    }

    /// The same in a session of its own: without a terminal to ask on.
    pub(crate) fn alone(&self, args: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        command.arg("--wait").arg(&self.dewar).args(args);
        self.of_account(command)
    }

    /// A command of the account's without Dewar.
    pub(crate) fn plain(&self, words: &[&str]) -> Command {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        self.of_account(command)
    }

    fn of_account(&self, mut command: Command) -> Command {
        command.current_dir(self.path("work")).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap_or_default());
        command.env("HOME", self.path("")).env("NO_COLOR", "1").env("LANG", "C");
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// Starts a command under a profile.
    pub(crate) fn start(&self, profile: &str, command: &[&str]) -> Child {
        let args = [&["run", "--no-daemon", "-p", profile, "--"], command].concat();
        self.command(&args).spawn().unwrap()
    }

    /// Runs a command under a profile.
    pub(crate) fn run(&self, profile: &str, command: &[&str]) -> Came {
        self.dewar(&[&["run", "--no-daemon", "-p", profile, "--"], command].concat())
    }

    /// Runs a command under a profile; it has to succeed, and nothing is denied.
    pub(crate) fn green(&self, profile: &str, command: &[&str]) -> Came {
        let came = self.run(profile, command);
        let explained = self.dewar(&["explain"]).out;
        assert_eq!(came.status, 0, "{command:?}: {}{}\n{explained}", came.out, came.err);
        assert!(explained.contains("no denial was recorded"), "{command:?}: {explained}");
        came
    }

    /// Runs an attack under a profile; it has to get to its end, and nowhere else.
    pub(crate) fn holds(&self, profile: &str, command: &[&str]) {
        let came = self.run(profile, command);
        let said = came.out + &came.err;
        assert!(said.contains("tried\n"), "{command:?}: {said}");
        assert!(!said.contains("reached\n") && !said.contains("planted"), "{command:?}: {said}");
    }
}

/// As root, and as an ordinary user; by an ordinary user, as that one.
pub(crate) fn accounts(test: impl Fn(Account)) {
    test(Account::new(None));
    if rustix::process::geteuid().is_root() {
        test(Account::new(Some(USER)));
    }
}

/// Reads secrets and connects to `port`, and says what it could.
pub(crate) fn attack(port: u16) -> String {
    format!(
        "cat ~/.ssh/id_ed25519 ~/.aws/credentials ~/.npmrc 2>/dev/null\n\
         (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached\necho tried\n"
    )
}
