//! What the test crates share: Dewar's programs, found or built.
#![forbid(unsafe_code)]

mod browser;
mod kept;
mod screen;
mod variant;

pub use browser::browse;
pub use kept::KeptDirectory;
pub use screen::screen;
pub use variant::{Variant, ordinary_user};

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The program `dewar`, with those that belong to it beside it: that of `DEWAR_BIN`, or the
/// workspace's own, built if need be.
///
/// # Panics
///
/// It does not build.
pub fn dewar() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| std::env::var_os("DEWAR_BIN").map_or_else(build, PathBuf::from))
}

/// The program `dewar-mcp` beside `dewar`, built if need be: it is no part of the workspace.
///
/// # Panics
///
/// It does not build.
pub fn mcp() -> PathBuf {
    let program = dewar().with_file_name("dewar-mcp");
    if !program.exists() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../mcp/Cargo.toml");
        let profile = dewar().parent().expect("a directory of programs");
        let target = profile.parent().expect("a target directory");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--quiet", "--locked", "--manifest-path", manifest]);
        cargo.arg("--target-dir").arg(target);
        cargo.args(profile.ends_with("release").then_some("--release"));
        assert!(cargo.status().expect("cargo").success(), "dewar-mcp does not build");
    }
    program
}

/// Copies some of Dewar's programs into a directory, where every user can execute them; the path of
/// `dewar` there.
///
/// # Panics
///
/// They cannot be copied.
pub fn install(directory: &Path, programs: &[&str]) -> PathBuf {
    for name in programs {
        copy_program(&dewar().with_file_name(name), &directory.join(name));
    }
    directory.join("dewar")
}

/// Copies a program that will be executed, as a process of its own does it: what this one writes
/// to is open for a moment in whatever another thread starts meanwhile, and does not execute
/// (`ETXTBSY`).
///
/// # Panics
///
/// It cannot be copied.
pub fn copy_program(from: &Path, to: &Path) {
    let output =
        Command::new("cp").arg("--preserve=mode").args([from, to]).output().expect("start `cp`");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot copy a program: {error}");
}

/// Builds the programs as tests are built: for the whole workspace, and with a test, so that no
/// dependency is built anew for fewer features.
fn build() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::current_exe().expect("this program");
    let target = target.ancestors().nth(3).expect("a target directory").to_owned();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--workspace", "--bins", "--test", "cli", "--quiet", "--target-dir"]);
    cargo.arg(&target).current_dir(here);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo").success(), "Dewar's programs do not build");
    target.join(if cfg!(debug_assertions) { "debug/dewar" } else { "release/dewar" })
}
