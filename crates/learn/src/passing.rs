//! Files that a run makes and that are gone at its end: temporary names, locks. The next run does
//! not find them, so their names alone grant nothing: in a directory that it does not see, nothing
//! is made.

use crate::{Access, Line, Scope, executed::holds_trusted, literal, names::numbered};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The paths of a run.
pub(crate) struct Passing<'a> {
    /// What was made, and is gone.
    gone: BTreeSet<&'a Path>,
    /// What was used.
    used: BTreeSet<&'a Path>,
}

impl<'a> Passing<'a> {
    /// Those of `accesses`, by what is there now.
    pub(crate) fn of(accesses: &'a BTreeMap<Access, u64>) -> Self {
        let granted = accesses.keys().filter(|access| access.granted);
        let used: BTreeSet<&Path> = granted.clone().filter_map(Access::path).collect();
        let made = granted.filter(|access| access.wants("create")).filter_map(Access::path);
        let gone = made.filter(|path| path.symlink_metadata().is_err()).collect();
        Self { gone, used }
    }

    /// `line`, or one for what is made in the place of what it names: names like it beside the
    /// file that it is named after, or with other numbers, else its directory. Where that would be
    /// too much, `line` it is.
    pub(crate) fn lasting(&self, line: Line, scope: &Scope) -> Line {
        let path = scope.path(&line.value).filter(|_| line.key == "files.write");
        let path = path.filter(|path| self.gone.contains(path.as_path()));
        let value = path.and_then(|path| {
            let directory = path.parent()?;
            self.beside(&path, scope).or_else(|| numbers(&path, scope)).or_else(|| {
                let is_fit = !scope.is_wide(directory)
                    && !scope.is_executed(directory)
                    && !holds_trusted(directory)
                    && scope.secrets.below(directory).is_none();
                is_fit.then(|| scope.text(directory))
            })
        });
        Line { value: value.unwrap_or_else(|| line.value.clone()), ..line }
    }

    /// The pattern for `main.lock` where `main` was used, too.
    fn beside(&self, path: &Path, scope: &Scope) -> Option<String> {
        let (directory, name) = (path.parent()?, path.file_name()?.to_str()?);
        let ends = name.char_indices().rev().filter(|(_, c)| ".-_~#".contains(*c));
        let mut stems = ends.filter(|(at, _)| self.is_used(&directory.join(&name[..*at])));
        let (at, separator) = stems.next()?;
        let glob = format!("{}{separator}*", literal(&name[..at]));
        scope.is_plain(directory, &glob).then(|| {
            let directory = scope.text(directory);
            format!("{}/{glob}", directory.trim_end_matches('/'))
        })
    }

    fn is_used(&self, path: &Path) -> bool {
        self.used.contains(path)
    }
}

/// The pattern for names like that of `path` with other numbers.
fn numbers(path: &Path, scope: &Scope) -> Option<String> {
    let (directory, glob) = (path.parent()?, numbered(path.file_name()?.to_str()?)?);
    scope.is_plain(directory, &glob).then(|| {
        let directory = scope.text(directory);
        format!("{}/{glob}", directory.trim_end_matches('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_gone_at_the_end_is_granted_by_names_like_it_or_by_its_directory() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap();
        for name in ["repo/refs", "keys", "work"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        for name in ["repo/HEAD", "repo/refs/main", "keys/HEAD.pem"] {
            fs::write(home.join(name), "").unwrap();
        }
        let scope = Scope {
            workspace: home.join("work"),
            home: home.clone(),
            tmp: "/tmp".into(),
            ..Scope::default()
        };
        let access = |name: &str, wants: &str| Access {
            granted: true,
            object: home.join(name).display().to_string(),
            tclass: "file".into(),
            requested: vec![wants.into()],
            ..Access::default()
        };
        let made = [
            "repo/HEAD.lock",
            "repo/refs/main.lock",
            "repo/refs/incoming",
            "keys/HEAD.lock",
            "repo/next-index-7.lock",
            "repo/.git/lone",
            "x",
            "repo/refs/main",
        ];
        let used = ["repo/HEAD", "repo/refs/main", "keys/HEAD"];
        let accesses = made.map(|name| access(name, "create")).into_iter();
        let accesses = accesses.chain(used.map(|name| access(name, "read")));
        let accesses: BTreeMap<Access, u64> = accesses.map(|access| (access, 1)).collect();
        let passing = Passing::of(&accesses);
        for (name, want) in [
            ("repo/HEAD.lock", "${home}/repo/HEAD.*"),
            ("repo/refs/main.lock", "${home}/repo/refs/main.*"),
            ("repo/refs/incoming", "${home}/repo/refs"),
            ("repo/next-index-7.lock", "${home}/repo/next-index-*.lock"),
            ("repo/.git/lone", "${home}/repo/.git/lone"),
            // It is there; a secret would be granted, too; all of the home would be.
            ("repo/refs/main", "${home}/repo/refs/main"),
            ("keys/HEAD.lock", "${home}/keys/HEAD.lock"),
            ("x", "${home}/x"),
        ] {
            let (key, value) = ("files.write".to_owned(), format!("${{home}}/{name}"));
            let line = Line { key, value, ..Line::default() };
            assert_eq!(passing.lasting(line, &scope).value, want, "{name}");
        }
    }
}
