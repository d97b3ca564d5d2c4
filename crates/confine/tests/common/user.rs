//! As whom a test runs, and what belongs to whom.

use std::{
    fs::Permissions,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};
use tempfile::TempDir;
use test_support::KeptDirectory;

/// A uid that belongs to nobody.
const ORDINARY: u32 = 65533;

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

    /// A new directory of the user's, which everybody may enter.
    pub(crate) fn directory(self, prefix: &str) -> TempDir {
        let directory = open_directory(prefix);
        self.give(directory.path());
        directory
    }

    /// Makes a file in a directory of the user's.
    pub(crate) fn file(self, directory: &Path, name: &str, content: &str) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, content).expect("write a file");
        self.give(&path);
        path
    }

    pub(crate) fn give(self, path: &Path) {
        if self.is_another() {
            chown(path, Some(ORDINARY), Some(ORDINARY)).expect("give a file away");
        }
    }

    /// A command that the user runs in `directory`.
    pub(crate) fn command(self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env("PATH", "/usr/local/bin:/usr/bin:/bin");
        if self.is_another() {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command
    }

    /// Not who runs the tests.
    fn is_another(self) -> bool {
        self == Self::Ordinary && rustix::process::geteuid().is_root()
    }
}

/// This program, where every user can execute it.
pub(crate) fn program() -> &'static Path {
    static PROGRAM: OnceLock<(KeptDirectory, PathBuf)> = OnceLock::new();
    let (_, path) = PROGRAM.get_or_init(|| {
        let directory = KeptDirectory::new("dewar-program-");
        let path = directory.path().join(env!("CARGO_CRATE_NAME"));
        std::fs::copy(std::env::current_exe().expect("this program"), &path).expect("copy it");
        (directory, path)
    });
    path
}

fn open_directory(prefix: &str) -> TempDir {
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix(prefix).permissions(Permissions::from_mode(0o755)).tempdir();
    made.expect("a temporary directory")
}
