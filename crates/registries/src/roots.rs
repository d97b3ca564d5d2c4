//! Where configuration lies, and which of it counts.

use crate::{asked::Unreadable, plain::Plain};
use realpath::RealPaths;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The most that is read of one file.
const MOST_BYTES: u64 = 1 << 20;

/// Whose configuration is asked.
#[derive(Clone, Copy, Debug)]
pub struct ConfigRoots<'a> {
    /// The user's home.
    pub home: &'a Path,
    /// The directory whose files do not count, without links.
    pub workspace: &'a Path,
    /// Where the machine's files lie: `/`.
    pub root: &'a Path,
    /// The environment, which is the user's word.
    pub variables: &'a [(String, String)],
    /// What is known of directories.
    pub paths: &'a RealPaths,
}

pub(crate) struct ConfigText {
    /// Without links, as far as it exists.
    pub(crate) path: PathBuf,
    pub(crate) text: Option<String>,
}

/// Why a file was not read.
pub(crate) enum Refused {
    InWorkspace(PathBuf),
    Unreadable(Unreadable),
}

impl<'a> ConfigRoots<'a> {
    pub(crate) fn variable(&self, name: &str) -> Option<&'a str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.trim().is_empty())
    }

    /// A path that a variable names, else one in the home.
    pub(crate) fn directory(&self, variable: &str, default: &str) -> PathBuf {
        let named = self.variable(variable).map(PathBuf::from);
        named.filter(|path| path.is_absolute()).unwrap_or_else(|| self.home.join(default))
    }

    /// A file of the machine.
    pub(crate) fn system(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(crate) fn read(&self, path: &Path) -> Result<ConfigText, Refused> {
        let unreadable =
            |reason: String| Refused::Unreadable(Unreadable { path: path.to_owned(), reason });
        // Found once; where that lies is what counts, whatever its name leads to by then. Opened
        // only then: what lies in the workspace may do something when it is.
        let found = match Plain::find(path) {
            Ok(found) => found,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                let path = self.paths.existing_part(path);
                return match path.starts_with(self.workspace) {
                    true => Err(Refused::InWorkspace(path)),
                    false => Ok(ConfigText { path, text: None }),
                };
            }
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let known = found.place().to_owned();
        if known.starts_with(self.workspace)
            || self.paths.existing_part(path).starts_with(self.workspace)
        {
            return Err(Refused::InWorkspace(known));
        }
        let file = found.open().map_err(|error| unreadable(error.to_string()))?;
        let mut text = String::new();
        let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
        let read = read.map_err(|error| unreadable(error.to_string()))?;
        if read as u64 > MOST_BYTES {
            return Err(unreadable("it is longer than 1 MiB".into()));
        }
        Ok(ConfigText { path: known, text: Some(text) })
    }
}
