//! What runs inside a configuration: a small program that performs units of work and says what they
//! took.
//!
//! A command line tool gives it a hidden subcommand that calls [`Task::run`]; a [`Worker`] says how
//! that subcommand is reached.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

/// What a worker is called in a workspace.
const NAME: &str = "worker";

/// A program that runs tasks: it is copied into the workspace, so that a sandbox which lets the
/// workspace's programs run lets it run too, wherever it is installed.
#[derive(Clone, Debug)]
pub struct Worker {
    /// The program.
    pub program: PathBuf,
    /// Its arguments before the task's name.
    pub arguments: Vec<OsString>,
}

impl Worker {
    /// Puts the program into the workspace.
    pub(crate) fn install(&self, workspace: &Path) -> io::Result<()> {
        fs::copy(&self.program, workspace.join(NAME)).map(drop)
    }

    /// The command that performs units, as it lies in `directory`.
    pub(crate) fn runner(&self, directory: &Path) -> Vec<OsString> {
        self.command(&directory.join(NAME))
    }

    /// The same by the program itself: nobody who may write in a workspace exchanges it.
    pub(crate) fn itself(&self) -> io::Result<Vec<OsString>> {
        Ok(self.command(&fs::canonicalize(&self.program)?))
    }

    /// Whether every sandbox lets the program run where it is installed.
    pub(crate) fn is_everywhere(&self) -> bool {
        let installed = fs::canonicalize(&self.program).unwrap_or_default();
        ["/usr", "/opt"].iter().any(|system| installed.starts_with(system))
    }

    fn command(&self, program: &Path) -> Vec<OsString> {
        let arguments = self.arguments.iter().cloned().chain([Task::Runner.name().into()]);
        std::iter::once(program.into()).chain(arguments).collect()
    }
}

/// Refuses a directory of another user, who could exchange what is executed there.
pub(crate) fn insist_on_own(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    if fs::metadata(directory)?.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "`{}` is another user's, who could exchange what is executed there: measure in a directory of \
         your own, or with a Dewar that is installed below /usr or /opt",
        directory.display()
    )))
}

/// What a worker does, in its current directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Performs units as it is asked for them, and says what they took.
    Runner,
}

impl Task {
    /// The word that stands for it on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runner => "runner",
        }
    }

    /// Does it. Meant for a process with one thread.
    ///
    /// # Errors
    ///
    /// When nobody asks in words that can be read, or hears the answer.
    pub fn run(self) -> io::Result<()> {
        match self {
            Self::Runner => crate::pairs::serve(io::stdin().lock(), io::stdout().lock()),
        }
    }
}

impl FromStr for Task {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == Self::Runner.name() {
            return Ok(Self::Runner);
        }
        Err(format!("there is no task `{name}`"))
    }
}
