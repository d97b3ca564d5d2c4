//! Files of Cargo's configuration, read as what others may have put there.

use monitor::visible;
use registries::Plain;
use std::{
    collections::HashSet,
    fmt,
    io::{ErrorKind, Read as _},
    path::{Path, PathBuf},
};
use toml::{Table, Value};

/// Longer than any that a person writes.
const MOST_BYTES: u64 = 1 << 20;

/// So many files are read of one directory, with those that are included.
const MOST_FILES: usize = 64;

/// A file of Cargo's configuration.
pub(super) struct Config {
    pub(super) file: PathBuf,
    pub(super) text: String,
    pub(super) table: Table,
}

impl Config {
    pub(super) fn aliases(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.table.get("alias").and_then(Value::as_table).into_iter().flatten()
    }
}

/// A file that is there, and cannot be understood.
pub(super) struct Unread {
    pub(super) file: PathBuf,
    why: String,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = visible(&self.file.to_string_lossy());
        write!(f, "{shown} tells Cargo what to do, and {}", self.why)
    }
}

/// Reads the configuration in `directory`, a `.cargo`, and what that includes, as far as it is not
/// among those that were `looked` for.
pub(super) fn read_all(
    directory: &Path,
    looked: &mut HashSet<PathBuf>,
    configs: &mut Vec<Config>,
) -> Result<(), Unread> {
    let mut waiting: Vec<PathBuf> =
        ["config", "config.toml"].map(|name| directory.join(name)).into();
    let mut read = 0;
    while let Some(file) = waiting.pop() {
        if !looked.insert(file.clone()) {
            continue;
        }
        read += 1;
        if read > MOST_FILES {
            let why = "there are too many such files".to_owned();
            return Err(Unread { file, why });
        }
        let table = match text(&file) {
            Ok(None) => continue,
            Ok(Some(text)) => text.parse::<Table>().map(|table| (text, table)),
            Err(why) => return Err(Unread { file, why }),
        };
        let Ok((text, table)) = table else {
            return Err(Unread { file, why: "is no TOML".into() });
        };
        let beside = file.parent().unwrap_or(&file);
        waiting.extend(included(&table).into_iter().map(|path| beside.join(path)));
        configs.push(Config { file, text, table });
    }
    Ok(())
}

/// The text of `file`; `None` if it is not there, or neither Cargo may look at it.
fn text(file: &Path) -> Result<Option<String>, String> {
    use ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    let unread = |error: &dyn fmt::Display| format!("cannot be read ({error})");
    let plain = match Plain::find(file) {
        Ok(plain) => plain,
        Err(error) if [NotFound, NotADirectory, PermissionDenied].contains(&error.kind()) => {
            return Ok(None);
        }
        Err(error) => return Err(unread(&error)),
    };
    let mut text = String::new();
    let opened = plain.open().map_err(|error| unread(&error))?;
    opened.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| unread(&error))?;
    if text.len() as u64 > MOST_BYTES {
        return Err("is too long".to_owned());
    }
    Ok(Some(text))
}

/// The files that are included by `table`.
fn included(table: &Table) -> Vec<&str> {
    match table.get("include") {
        Some(Value::Array(all)) => all.iter().filter_map(path_of).collect(),
        Some(value) => path_of(value).into_iter().collect(),
        None => Vec::new(),
    }
}

fn path_of(value: &Value) -> Option<&str> {
    match value {
        Value::Table(table) => table.get("path").and_then(Value::as_str),
        value => value.as_str(),
    }
}
