//! Directories that last as long as the process.

use std::{
    fs::Permissions,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A directory that every user can enter, for a `static`, which nobody drops: another process
/// removes it when this one has ended, however it does.
pub struct KeptDirectory {
    path: PathBuf,
    /// The kernel closes its input at the end of this process.
    _sweeper: Child,
}

impl KeptDirectory {
    /// # Panics
    ///
    /// It cannot be made.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix).permissions(Permissions::from_mode(0o755));
        let path = builder.tempdir().expect("a temporary directory").keep();
        let mut sweeper = Command::new("sh");
        sweeper.args(["-c", "cat >/dev/null; rm -rf -- \"$1\"", "sh"]).arg(&path);
        // Not of the terminal's foreground, nor a holder of what the caller waits for the end of.
        sweeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let sweeper = sweeper.current_dir("/").spawn().expect("start `sh`");
        Self { path, _sweeper: sweeper }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::KeptDirectory;
    use std::{
        path::PathBuf,
        process::Command,
        time::{Duration, Instant},
    };

    const INNER: &str = "DEWAR_TEST_MAKES_A_DIRECTORY";

    #[test]
    fn nothing_is_left_of_a_process_that_was_killed() {
        if std::env::var_os(INNER).is_some() {
            println!("{}", KeptDirectory::new("dewar-kept-").path().display());
            std::process::abort();
        }
        let mut inner = Command::new(std::env::current_exe().expect("this program"));
        inner.args(["nothing_is_left", "--nocapture"]).env(INNER, "1");
        let said = inner.output().expect("start this program").stdout;
        let said = String::from_utf8(said).expect("UTF-8");
        let path =
            said.lines().find_map(|line| line.find("/").map(|at| PathBuf::from(&line[at..])));
        let path = path.unwrap_or_else(|| panic!("no path in `{said}`"));
        let until = Instant::now() + Duration::from_secs(30);
        while path.exists() {
            assert!(Instant::now() < until, "{} is left", path.display());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
