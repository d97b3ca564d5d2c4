//! What a change of a profile grants beside what it was made for.

use crate::{Judge, Line, Scope};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Files that are looked at.
const MOST: u64 = 50_000;

/// Files that are there already, and that lines newly cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widening {
    /// How many.
    pub files: u64,
    /// There were more than were looked at.
    pub more: bool,
    /// Those of them that are secrets, or look like it.
    pub secrets: Vec<PathBuf>,
}

/// What `lines` newly cover, where `old` judges without them and `new` with them. What lies at
/// one of `meant` was asked for, and does not count.
#[must_use]
pub fn widening(
    lines: &[Line],
    (old, new): (&Judge, &Judge),
    scope: &Scope,
    meant: &[PathBuf],
) -> Widening {
    let mut found = Widening::default();
    let files = lines.iter().filter(|line| line.key.starts_with("files."));
    let roots = files.filter_map(|line| root(&line.value, scope));
    let mut roots: Vec<PathBuf> = roots.filter(|root| !scope.is_private(root)).collect();
    roots.sort();
    roots.dedup();
    let inner: Vec<PathBuf> = roots.clone();
    roots.retain(|root| !inner.iter().any(|other| other != root && root.starts_with(other)));
    let domains: Vec<Option<&str>> = lines.iter().map(|line| line.domain.as_deref()).collect();
    let mut seen = 0;
    for root in roots {
        walk(&root, &mut seen, &mut |path| {
            let is_new = domains.iter().any(|domain| {
                let (old, new) = (old.rights(path, *domain), new.rights(path, *domain));
                (new.read && !old.read) || (new.write && !old.write) || (new.exec && !old.exec)
            });
            if is_new && !meant.iter().any(|meant| meant == path) {
                found.files += 1;
                if scope.secrets.is_one(path) {
                    found.secrets.push(path.to_owned());
                }
            }
        });
    }
    found.more = seen >= MOST;
    found
}

/// The innermost directory, or the file, that all of a pattern lies in.
fn root(pattern: &str, scope: &Scope) -> Option<PathBuf> {
    if let Some(path) = scope.path(pattern) {
        return Some(path);
    }
    let glob = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    let glob =
        pattern.find("{").filter(|at| !pattern[..=*at].ends_with("${")).unwrap_or(glob).min(glob);
    scope.path(pattern[..glob].rsplit_once('/')?.0)
}

fn walk(path: &Path, seen: &mut u64, each: &mut impl FnMut(&Path)) {
    if *seen >= MOST {
        return;
    }
    *seen += 1;
    match fs::symlink_metadata(path) {
        Ok(it) if it.is_dir() => {
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                walk(&entry.path(), seen, each);
            }
        }
        Ok(_) => each(path),
        Err(_) => {}
    }
}
