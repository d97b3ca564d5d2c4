//! Attack programs: C sources, built when first needed.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, OnceLock, PoisonError},
};
use test_support::KeptDirectory;

/// The program of attack `name`, from `attacks/NAME.c`; a library if the name says so.
pub(crate) fn build(name: &str) -> PathBuf {
    static BUILT: OnceLock<(KeptDirectory, Mutex<HashMap<String, PathBuf>>)> = OnceLock::new();
    let (directory, built) =
        BUILT.get_or_init(|| (KeptDirectory::new("dewar-attacks-"), Mutex::default()));
    let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
    let path = built.entry(name.to_owned()).or_insert_with(|| compile(directory.path(), name));
    path.clone()
}

fn compile(directory: &Path, name: &str) -> PathBuf {
    let out = directory.join(name);
    let mut cc = Command::new("cc");
    cc.args([
        "-O1",
        "-Wno-unused-result",
        "-Wno-stringop-truncation",
        "-Wno-format-truncation",
        "-Wall",
        "-Werror",
        "-pthread",
        "-D_GNU_SOURCE",
        "-o",
    ])
    .arg(&out);
    if name.ends_with("library") {
        cc.args(["-shared", "-fPIC"]);
    }
    if name == "static_gate" {
        cc.arg("-static");
    }
    if name == "loader" {
        cc.args(["-nostdlib", "-static-pie", "-fPIE", "-fno-stack-protector"]);
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("attacks");
    let status = cc.arg(sources.join(name).with_extension("c")).status();
    assert!(status.expect("a C compiler").success(), "`{name}` does not compile");
    out
}
