//! The program under test: where it is, and how it is called.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};
use tempfile::TempDir;

/// How a command is to be run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call<'a> {
    pub(crate) profile: &'a str,
    pub(crate) workspace: Option<&'a Path>,
    pub(crate) fast: bool,
    pub(crate) namespaces: bool,
    /// The kernel does not keep signals inside.
    pub(crate) unscoped: bool,
    /// What a machine cannot enforce is left out.
    pub(crate) degraded: bool,
}

/// The words before the command.
pub(crate) fn words(call: Call<'_>) -> Vec<String> {
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let mut words = vec![text(program()), "run".to_owned()];
    words.extend(["-p".to_owned(), call.profile.to_owned()]);
    if let Some(workspace) = call.workspace {
        words.extend(["--workspace".to_owned(), text(workspace)]);
    }
    words.extend(["--mode".to_owned(), if call.fast { "fast" } else { "all" }.to_owned()]);
    if !call.namespaces {
        // Whoever is not root gets all others through a user namespace.
        words.extend(["--without", "user"].map(str::to_owned));
    }
    if call.unscoped {
        words.extend(["--without", "landlock-scopes"].map(str::to_owned));
    }
    if call.degraded || !call.namespaces {
        words.push("--allow-degraded".to_owned());
    }
    words.push("--".to_owned());
    words
}

/// `DEWAR_BIN`, or the workspace's own, built if need be; a copy that every user can execute.
fn program() -> &'static Path {
    static COPY: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let built = std::env::var_os("DEWAR_BIN").map_or_else(build, PathBuf::from);
        let directory = tempfile::tempdir().expect("a directory");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).expect("open the directory");
        let path = directory.path().join("dewar");
        std::fs::copy(built, &path).expect("copy `dewar`");
        (directory, path)
    });
    path
}

/// Builds the command as these tests are built: for the whole workspace, so that no dependency is built anew for fewer
/// features.
fn build() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--workspace", "--test", "cli", "--no-run", "--quiet", "--target-dir"]);
    cargo.arg(target).current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo").success(), "`dewar` does not build");
    target.join(if cfg!(debug_assertions) { "debug/dewar" } else { "release/dewar" })
}
