//! What all tests share: the program under test, the ordinary user, the directories that stages lie
//! in.

use crate::dewar::Dewar;
use anyhow::{Context as _, bail};
use std::{
    fs::Permissions,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;
use test_support::{Variant, ordinary_user};

/// A user and a group.
pub(crate) type Ids = (u32, u32);

/// What is made once for all tests.
pub(crate) struct Suite {
    pub(crate) dewar: Dewar,
    /// Puts a command into the surroundings of a container.
    pub(crate) launcher: PathBuf,
    /// Homes and workspaces. Not below `/tmp`, which the sandbox has for itself.
    homes: TempDir,
    /// Files that no profile speaks of.
    outside: TempDir,
    /// The ordinary user, where the tests are run by root.
    ordinary: Option<Ids>,
}

impl Suite {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let root = rustix::process::geteuid().is_root();
        if !root && std::env::var_os("DEWAR_TESTS_AS").is_none_or(|who| who != "user") {
            bail!(
                "not run by root; set DEWAR_TESTS_AS=user to leave the part for root to another run"
            );
        }
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let homes = directory(if root { Path::new("/home") } else { target })?;
        let outside = directory(if root { Path::new("/var/lib") } else { target })?;
        let dewar = Dewar::install(homes.path());
        let launcher = launcher(homes.path())?;
        let ordinary = root.then(ordinary_user);
        Ok(Self { dewar, launcher, homes, outside, ordinary })
    }

    /// Whether the tests' caller can be what `variant` asks for.
    pub(crate) fn offers(&self, variant: Variant) -> bool {
        self.ordinary.is_some() || !variant.is_root()
    }

    /// The IDs to take on for `variant`; `None` to stay.
    pub(crate) fn ids(&self, variant: Variant) -> Option<Ids> {
        self.ordinary.filter(|_| !variant.is_root())
    }

    pub(crate) fn homes(&self) -> &Path {
        self.homes.path()
    }

    pub(crate) fn outside(&self) -> &Path {
        self.outside.path()
    }
}

/// Compiles `surrounded.c`.
fn launcher(directory: &Path) -> anyhow::Result<PathBuf> {
    let path = directory.join("surrounded");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/surrounded.c");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&path).arg(source);
    if !cc.status().context("cannot start `cc`")?.success() {
        bail!("`surrounded.c` does not compile");
    }
    Ok(path)
}

/// A new directory that everyone may enter.
pub(crate) fn directory(parent: &Path) -> anyhow::Result<TempDir> {
    let permissions = Permissions::from_mode(0o755);
    let builder =
        tempfile::Builder::new().prefix("dewar-tests-").permissions(permissions).tempdir_in(parent);
    builder.with_context(|| format!("cannot create a directory in `{}`", parent.display()))
}
