//! Configurations: the ways to run a command that a benchmark compares.

use serde::{Deserialize, Serialize};
use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

/// Stands in a [`Config`]'s prefix for the directory that the command may write.
pub const WORKSPACE: &str = "{workspace}";

/// The part that a configuration plays in comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The command alone; every other is compared with it.
    Native,
    /// Interposed without decisions; Dewar's own are compared with it too.
    Base,
    /// Dewar, deciding.
    Dewar,
    /// Another tool on this machine.
    Peer,
}

/// One way to run a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Config {
    /// What tables call it; unique within a benchmark.
    pub name: String,
    /// What it is, for a person.
    pub description: String,
    /// What goes before the command. [`WORKSPACE`] in it stands for the directory that may be
    /// written.
    pub prefix: Vec<String>,
    /// Environment variables set beyond those inherited.
    pub env: Vec<(String, String)>,
    /// The part it plays.
    pub kind: Kind,
}

impl Config {
    /// The command alone.
    #[must_use]
    pub fn native() -> Self {
        Self::new("native", Kind::Native, &[], "the command alone")
    }

    /// The configuration of that name, without environment variables of its own.
    #[must_use]
    pub fn new(name: &str, kind: Kind, prefix: &[&str], description: &str) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            prefix: prefix.iter().map(|part| (*part).to_owned()).collect(),
            env: Vec::new(),
            kind,
        }
    }

    /// The whole command line that runs `command` in `workspace`.
    #[must_use]
    pub fn command_line(&self, workspace: &Path, command: &[OsString]) -> Vec<OsString> {
        let prefix = self.prefix.iter().map(|part| fill_in(part, workspace.as_os_str()));
        prefix.chain(command.iter().cloned()).collect()
    }
}

fn fill_in(part: &str, workspace: &OsStr) -> OsString {
    let mut filled = OsString::new();
    for (number, piece) in part.split(WORKSPACE).enumerate() {
        if number > 0 {
            filled.push(workspace);
        }
        filled.push(piece);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_filled_in_wherever_the_prefix_names_it() {
        let prefix = ["wrap", "--bind={workspace}:{workspace}", "--"];
        let config = Config::new("wrap", Kind::Peer, &prefix, "");
        let line = config.command_line(Path::new("/w"), &["make".into(), "-j2".into()]);
        assert_eq!(line, ["wrap", "--bind=/w:/w", "--", "make", "-j2"]);
    }

    #[test]
    fn native_is_the_command_alone() {
        let line = Config::native().command_line(Path::new("/w"), &["true".into()]);
        assert_eq!(line, ["true"]);
    }
}
