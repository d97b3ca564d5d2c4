//! Pages in a browser, as people see them.

use std::{path::Path, process::Command};

/// What chromium prints of `page`, without network and with a new profile.
///
/// # Panics
///
/// Chromium does not start, or the page's scripts complain.
pub fn browse(page: &Path, arguments: &[&str]) -> String {
    let profile = tempfile::tempdir().expect("a directory");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=3000", "--enable-logging=stderr"])
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium is installed (scripts/setup)");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("CONSOLE"), "the page complains: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
