//! The program under test: where it is, and how it is called.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};
use test_support::KeptDirectory;

/// How a command is to be run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call<'a> {
    pub(crate) profile: &'a str,
    pub(crate) workspace: Option<&'a Path>,
    pub(crate) fast: bool,
    pub(crate) namespaces: bool,
    /// The kernel does not keep signals inside.
    pub(crate) unscoped: bool,
    /// The kernel has no Landlock.
    pub(crate) unbounded: bool,
    /// The kernel does not tell cutting a file from reading it.
    pub(crate) uncut: bool,
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
    if call.unbounded {
        words.extend(["--without", "landlock"].map(str::to_owned));
    }
    if call.uncut {
        words.extend(["--without", "landlock-truncate"].map(str::to_owned));
    }
    if call.degraded || call.unbounded || !call.namespaces {
        words.push("--allow-degraded".to_owned());
    }
    words.push("--".to_owned());
    words
}

/// A copy that every user can execute.
fn program() -> &'static Path {
    static COPY: OnceLock<(KeptDirectory, PathBuf)> = OnceLock::new();
    let (_, path) = COPY.get_or_init(|| {
        let directory = KeptDirectory::new("dewar-escapes-");
        let path = test_support::install(directory.path(), &["dewar"]);
        (directory, path)
    });
    path
}
