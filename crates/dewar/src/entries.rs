//! Entries of directories that a run sees nothing of: the kernel lets none be made, renamed or
//! removed there, whatever is granted of the entry itself.

use crate::{
    fitting::Fitting,
    guarded::{GIT, holds_guarded},
    names::is_name_of,
};
use learn::{Access, Judge, Line, Scope};
use monitor::visible;
use std::path::{Path, PathBuf};

/// Ends the reason why no line helps.
pub(crate) const OUTSIDE: &str = "do it outside of the run";

/// What takes an entry out of its directory, asked of the entry.
const TAKES: [&str; 4] = ["unlink", "rename", "rmdir", "reparent"];

/// Whether an entry was to be made, and whether one was to be taken.
fn changes(access: &Access) -> (bool, bool) {
    let is_made = access.wants("add_name") || access.wants("create");
    (is_made, TAKES.iter().any(|name| access.wants(name)))
}

/// The directory of an entry that was to be made, renamed or removed.
pub(crate) fn directory_of(access: &Access) -> Option<&Path> {
    let (is_made, is_taken) = changes(access);
    access.path().filter(|_| is_made || is_taken)?.parent()
}

/// `line`, so that it helps: where the run sees nothing of the entry's directory, or where somebody
/// has `named` that, it is about the directory.
///
/// # Errors
///
/// Why no line does.
pub(crate) fn placed(
    line: Line,
    (access, judge): (&Access, &Judge),
    fitting: &Fitting,
    named: &[PathBuf],
) -> Result<Line, String> {
    let scope = &fitting.scope;
    let Some((directory, entry)) = directory_of(access).zip(access.path()) else { return Ok(line) };
    let is_named = named.iter().any(|named| is_name_of(named, &directory.to_string_lossy()));
    // The next has another name, and what is made in it, too.
    let makes_up = ["mkdir", "mkdirat"].contains(&access.call.as_str())
        && entry.file_name().and_then(|name| name.to_str()).is_some_and(learn::is_made_up);
    if line.key == "files.write"
        && makes_up
        && scope.may_be_changed(directory)
        && !is_of_git(directory)
    {
        return Ok(Line { value: scope.text(directory), ..line });
    }
    let alone = Line { value: scope.text(entry), ..line.clone() };
    if line.key != "files.write" || !(is_named || alone.is_shut_in(judge, scope)) {
        return Ok(line);
    }
    let is_meant = is_named && directory.is_dir() && !scope.is_wide(directory);
    if is_meant || scope.may_be_changed(directory) && !is_of_git(directory) {
        return Ok(Line { value: scope.text(directory), ..line });
    }
    let is_pattern = scope.path(&line.value).is_none();
    match access.call.as_str() {
        // Dewar makes it.
        "mkdir" | "mkdirat" if !line.value.ends_with('/') => {
            Ok(Line { value: line.value + "/", ..line })
        }
        "open" | "openat" | "openat2" | "creat" => Ok(line),
        _ if is_pattern => Ok(line),
        _ => {
            let may_be_named = directory.is_dir() && !scope.is_wide(directory);
            let name = if may_be_named { "name that in full, or " } else { "" };
            let shown = visible(&scope.text(directory));
            Err(format!("it takes the right to change all of {shown}: {name}{OUTSIDE}"))
        }
    }
}

/// The line by which the run sees the names in the directory of a file that `line` grants, that is
/// not there yet and that it was to make: then it can.
pub(crate) fn seen(line: &Line, (access, judge): (&Access, &Judge), scope: &Scope) -> Option<Line> {
    let makes = ["open", "openat", "openat2", "creat"].contains(&access.call.as_str());
    let path = scope.path(&line.value).filter(|path| makes && !path.exists())?;
    let directory = path.parent().filter(|it| it.is_dir() && !scope.secrets.is_one(it))?;
    let (key, value) = ("files.list".to_owned(), scope.text(directory));
    line.is_shut_in(judge, scope).then(|| Line { key, value, ..line.clone() })
}

/// Whether a directory is a repository or part of what makes one: its hooks and configuration would
/// be changed, too.
fn is_of_git(directory: &Path) -> bool {
    directory.join(GIT).exists() || directory.ancestors().any(|it| it.ends_with(GIT))
}

/// What is said of a line for something that is not there, in a directory of which the run sees
/// nothing: it cannot be made there.
pub(crate) fn made_first(line: &Line, old: &Judge, scope: &Scope) -> Option<String> {
    let path = scope.path(&line.value).filter(|path| !path.exists())?;
    if !line.is_shut_in(old, scope) {
        return None;
    }
    if line.value.ends_with('/') {
        return Some("the directory is made before the run, where `mkdir` without -p fails".into());
    }
    // All of a home, nobody should grant for one name.
    let is_own = |directory: &&Path| !scope.is_wide(directory) && !holds_guarded(directory, scope);
    let directory = path.parent().filter(is_own);
    let instead = directory.map_or_else(String::new, |directory| {
        let slash = if directory.exists() { "" } else { "/" };
        format!(", or grant {}{slash}", visible(&scope.text(directory)))
    });
    Some(format!("it is not there: make it before the run{instead}"))
}
