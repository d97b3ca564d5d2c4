//! What runs inside a configuration: a small program that measures itself and prints the result.
//!
//! A command line tool gives it a hidden subcommand, so that `COMMAND… worker walk` can be run natively and inside
//! any sandbox.

use crate::{floor, operation, walk};
use std::{fmt, io, path::Path, str::FromStr};

/// What a worker measures, in its current directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Single operations; prints JSON.
    Operations,
    /// The floor of notifications; prints JSON.
    Floor,
    /// The walk; prints seconds.
    Walk,
}

impl Task {
    /// Every task.
    pub const ALL: [Self; 3] = [Self::Operations, Self::Floor, Self::Walk];

    /// The word that stands for it on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Floor => "floor",
            Self::Walk => "walk",
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
