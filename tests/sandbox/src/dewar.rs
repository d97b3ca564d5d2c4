//! The program under test: where it is, and how it is called.

use anyhow::{Context as _, bail};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
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
    /// `DEWAR_BIN`, or the workspace's own, built if need be; copied to `directory`.
    pub(crate) fn find(directory: &Path) -> anyhow::Result<Self> {
        let built = match std::env::var_os("DEWAR_BIN") {
            Some(path) => path.into(),
            None => build()?,
        };
        let path = directory.join("dewar");
        std::fs::copy(&built, &path)
            .with_context(|| format!("cannot copy `{}`", built.display()))?;
        let uses_daemon = std::env::var_os("DEWAR_TESTS_DAEMON").is_some_and(|value| value == "1");
        Ok(Self { path, uses_daemon })
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

/// Builds the command as these tests are built: for the whole workspace, so that no dependency is built anew for fewer
/// features.
fn build() -> anyhow::Result<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("no target directory")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["test", "--workspace", "--test", "cli", "--no-run", "--quiet", "--target-dir"])
        .arg(target);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    if !cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .context("cannot start cargo")?
        .success()
    {
        bail!("`dewar` does not build");
    }
    Ok(target.join(if cfg!(debug_assertions) { "debug/dewar" } else { "release/dewar" }))
}
