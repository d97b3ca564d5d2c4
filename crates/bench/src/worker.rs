//! What runs inside a configuration: a small program that measures itself and prints the result.
//!
//! A command line tool gives it a hidden subcommand that calls [`Task::run`] and prints what it returns; a
//! [`Worker`] says how that subcommand is reached.

use crate::{floor, operation, walk};
use std::{
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

/// What a worker is called in a workspace.
const NAME: &str = "worker";

/// A program that runs tasks: it is copied into the workspace, so that a sandbox which lets the workspace's
/// programs run lets it run too, wherever it is installed.
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

    /// The command that performs units in the workspace.
    pub(crate) fn station(&self) -> Vec<OsString> {
        let program = std::iter::once(format!("./{NAME}").into());
        program.chain(self.arguments.iter().cloned()).chain(["station".into()]).collect()
    }

    /// The command that runs `task` in the workspace.
    pub(crate) fn command(&self, task: Task) -> Vec<OsString> {
        let program = std::iter::once(format!("./{NAME}").into());
        program.chain(self.arguments.iter().cloned()).chain([task.name().into()]).collect()
    }
}

/// What a worker measures, in its current directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Single operations; prints JSON.
    Operations,
    /// The floor of notifications; prints JSON.
    Floor,
    /// The walk; prints seconds.
    Walk,
    /// Performs units as it is asked for them; prints what they took.
    Station,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 4] = [Self::Operations, Self::Floor, Self::Walk, Self::Station];

    /// The word that stands for it on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Floor => "floor",
            Self::Walk => "walk",
            Self::Station => "station",
        }
    }

    /// Measures, and returns what is to be printed. Meant for a process with one thread.
    ///
    /// # Errors
    ///
    /// When the directory cannot be used as the task needs it.
    pub fn run(self) -> io::Result<String> {
        let here = Path::new(".").canonicalize()?;
        match self {
            Self::Operations => Ok(serde_json::to_string(&operation::measure_all(&here)?)?),
            Self::Floor => Ok(serde_json::to_string(&floor::measure_all())?),
            Self::Station => {
                crate::pairs::serve(io::stdin().lock(), io::stdout().lock())?;
                Ok(String::new())
            }
            Self::Walk => Ok(format!("{:.6}", walk::walk(&here)?.as_secs_f64())),
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Task {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|task| task.name() == name)
            .ok_or_else(|| format!("there is no task `{name}`"))
    }
}
