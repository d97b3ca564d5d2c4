//! The program under test: where it is, and how it is called.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The `dewar` binary, where every user can execute it.
pub(crate) struct Dewar {
    path: PathBuf,
    /// Every stage has a daemon, and its runs insist on it (`DEWAR_TESTS_DAEMON=1`).
    pub(crate) uses_daemon: bool,
}

/// How a command is to be run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) profile: Option<&'a str>,
    pub(crate) fast: bool,
    pub(crate) namespaces: bool,
    pub(crate) audit: Option<&'a Path>,
    /// Insist on a daemon.
    pub(crate) daemon: bool,
}

impl Dewar {
    /// Copies the programs that the tests need to `directory`.
    pub(crate) fn install(directory: &Path) -> Self {
        let path = test_support::install(directory, &["dewar", "dewar-daemon"]);
        let uses_daemon = std::env::var_os("DEWAR_TESTS_DAEMON").is_some_and(|value| value == "1");
        Self { path, uses_daemon }
    }

    /// Program and arguments for any subcommand.
    pub(crate) fn command(&self, arguments: &[&str]) -> Vec<OsString> {
        let arguments = arguments.iter().map(|argument| (*argument).into());
        std::iter::once(self.path.clone().into()).chain(arguments).collect()
    }

    /// Program and arguments that run `command` under Dewar.
    pub(crate) fn words(&self, call: Call<'_>, command: &[OsString]) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![self.path.clone().into(), "run".into()];
        if let Some(profile) = call.profile {
            words.extend(["-p".into(), profile.into()]);
        }
        if call.daemon {
            words.push("--daemon".into());
        }
        if call.fast {
            words.extend(["--mode".into(), "fast".into()]);
        }
        if !call.namespaces {
            // Whoever is not root gets all others through a user namespace.
            words.extend(["--without".into(), "user".into()]);
        }
        if let Some(audit) = call.audit {
            words.extend(["--audit".into(), audit.into()]);
        }
        words.push("--".into());
        words.extend_from_slice(command);
        words
    }
}
