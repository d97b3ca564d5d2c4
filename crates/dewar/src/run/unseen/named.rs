//! What a command names by its arguments.

use super::{MOST_TOLD, Unseen};
use crate::machine;
use profile::Variables;
use std::{
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path, PathBuf},
};

/// Words that are looked at.
const MOST_WORDS: usize = 1_000;

/// What a command names of the machine, as it was before the run.
pub(crate) struct Named {
    /// Files, each with the list of a profile that would show it.
    files: Vec<(&'static str, PathBuf)>,
    /// Names of programs that are looked for.
    programs: Vec<String>,
    /// The directories that they are looked for in, but for those of the workspace.
    path: Vec<PathBuf>,
    /// Where `PATH` has the command, the first one first, if it is called by a name alone.
    candidates: Vec<PathBuf>,
}

impl Named {
    /// The files that `command` names, started in `directory` with `path` for `PATH`, but for those
    /// of the workspace.
    pub(crate) fn of(
        command: &[OsString],
        (directory, path): (&Path, Option<&OsStr>),
        variables: &Variables,
    ) -> Self {
        let words = command.iter().enumerate();
        let words = words.filter_map(|(index, word)| Some((index, word.to_str()?)));
        let words = words.flat_map(|(index, word)| {
            let may_be_program = index == 0 || is_line(word);
            let words = words_of(word, &variables.home).into_iter();
            words.map(move |word| (index, word, may_be_program))
        });
        let words: Vec<_> = words.take(MOST_WORDS).collect();
        let programs = words.iter().filter(|(_, word, is_one)| *is_one && is_plain(word));
        let programs = programs.map(|(_, word, _)| word.clone()).collect();
        let paths = words.iter().filter_map(|(index, word, _)| {
            let value = word.strip_prefix('-').and_then(|option| option.split_once('='));
            let word = value.map_or(word.as_str(), |(_, value)| value);
            let path = without_dots(&directory.join(word));
            // Another process's, by now.
            let is_process = path.starts_with("/proc");
            let is_path = word.contains('/') && !is_process && path.symlink_metadata().is_ok();
            let key = if *index == 0 { "files.exec" } else { "files.read" };
            (is_path && !path.starts_with(&variables.workspace)).then_some((key, path))
        });
        let mut files: Vec<(&'static str, PathBuf)> = Vec::new();
        for (key, path) in paths {
            if files.iter().all(|(_, other)| *other != path) {
                files.push((key, path));
            }
        }
        let places = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>());
        let is_elsewhere = |place: &PathBuf| {
            place.is_absolute() && place.is_dir() && !place.starts_with(&variables.workspace)
        };
        let places = places.unwrap_or_default();
        let name = command.first().and_then(|word| word.to_str()).filter(|word| is_plain(word));
        let candidates = name.into_iter().flat_map(|name| {
            let candidates = places.iter().map(|place| directory.join(place).join(name));
            candidates.filter(|path| is_executable(path)).collect::<Vec<_>>()
        });
        let candidates = candidates.collect();
        let path = places.iter().filter(|place| is_elsewhere(place)).cloned().collect();
        Self { files, programs, path, candidates }.with_programs()
    }

    /// With the files of programs that are looked for, each where it is found first. What is there
    /// more than once is left out: the others may be in the view.
    fn with_programs(mut self) -> Self {
        for name in &self.programs {
            let found = self.path.iter().map(|place| place.join(name));
            let found: Vec<_> = found.filter(|path| path.is_file()).take(2).collect();
            if let [path] = found.as_slice() {
                self.files.push(("files.exec", path.clone()));
            }
        }
        self
    }

    /// Those of them that are not in the view, in which this is called.
    pub(crate) fn unseen(&self) -> Vec<Unseen> {
        let unseen = self.files.iter().filter(|(_, path)| path.symlink_metadata().is_err());
        let unseen =
            unseen.map(|(key, path)| Unseen { path: path.clone(), key: (*key).to_owned() });
        unseen.take(MOST_TOLD).collect()
    }

    /// The command as it is found outside, where it is not in the view, in which this is called,
    /// and the other one that is found there.
    pub(crate) fn another(&self) -> Option<(&Path, &Path)> {
        let is_seen = |path: &&PathBuf| path.symlink_metadata().is_ok();
        let first = self.candidates.first().filter(|first| !is_seen(first))?;
        Some((first, self.candidates.iter().find(is_seen)?))
    }

    /// The directories of `PATH` that are not in the view, in which this is called.
    pub(crate) fn path_unseen(&self) -> Vec<PathBuf> {
        let unseen = self.path.iter().filter(|place| place.symlink_metadata().is_err());
        unseen.cloned().collect()
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Whether an argument may be a line for a shell.
fn is_line(argument: &str) -> bool {
    argument.contains(char::is_whitespace)
}

/// Whether a word may be a program that is looked for.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-') && !word.contains('/')
}

/// An argument; of a line for a shell, the words, with the home that it would put in them.
fn words_of(argument: &str, home: &Path) -> Vec<String> {
    if !is_line(argument) {
        return vec![argument.to_owned()];
    }
    let operators = |c| "<>&|;()".contains(c);
    let at_home = |word: &str| {
        let below = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|top| word.strip_prefix(top));
        below.map(|rest| home.join(rest).to_string_lossy().into_owned())
    };
    let words = shlex::Shlex::new(argument).take(MOST_WORDS).flat_map(|word| {
        let words = word.split(operators);
        words.map(|word| at_home(word).unwrap_or_else(|| word.to_owned())).collect::<Vec<_>>()
    });
    words.collect()
}

/// A path without `.` and `..`: what that means depends on where links lead.
fn without_dots(path: &Path) -> PathBuf {
    if !path.components().any(|part| part == Component::ParentDir) {
        return path.components().collect();
    }
    match path.parent().zip(path.file_name()) {
        Some((above, name)) => machine::real(above).join(name),
        None => machine::real(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_is_looked_at_where_it_is_a_path_outside_of_the_workspace() {
        let variables = Variables { workspace: "/usr/bin".into(), ..Variables::default() };
        let command = ["sh", "--find-links=/usr/lib", "/usr/bin/env", "/etc", "lib", "/no/such"];
        let named = Named::of(&command.map(OsString::from), (Path::new("/usr"), None), &variables);
        let paths: Vec<_> = named.files.iter().map(|(_, path)| path.as_path()).collect();
        assert_eq!(paths, [Path::new("/usr/lib"), Path::new("/etc")]);
        assert!(named.unseen().is_empty(), "both can be seen");
        let command = ["ls", "../lib", "bin/../../etc", "bin/..", "bin/../bin/sh"];
        let named = Named::of(&command.map(OsString::from), (Path::new("/usr"), None), &variables);
        let paths: Vec<_> = named.files.iter().map(|(_, path)| path.as_path()).collect();
        assert_eq!(paths, [Path::new("/lib"), Path::new("/etc"), Path::new("/usr")]);
        let variables = Variables { home: "/usr".into(), ..variables };
        let line = "(grep -f ~/lib x;cat <'../etc/passwd');ls \"$HOME/sbin\" /no/such";
        let named = Named::of(
            &["sh", "-c", line].map(OsString::from),
            (Path::new("/usr"), None),
            &variables,
        );
        let paths: Vec<_> = named.files.iter().map(|(_, path)| path.as_path()).collect();
        assert_eq!(paths, ["/usr/lib", "/etc/passwd", "/usr/sbin"].map(Path::new));
    }
    #[test]
    fn programs_are_looked_for_in_the_directories_of_path() {
        let directory = tempfile::tempdir().unwrap();
        let [mine, other] = ["mine", "other"].map(|name| directory.path().join(name));
        for (place, name) in [(&mine, "tool"), (&mine, "both"), (&other, "both")] {
            std::fs::create_dir_all(place).unwrap();
            std::fs::write(place.join(name), "").unwrap();
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(place.join(name), executable).unwrap();
        }
        let path = std::env::join_paths([&mine, &other, &PathBuf::from("/no/such")]).unwrap();
        let variables = Variables { workspace: "/w".into(), ..Variables::default() };
        for (command, want) in [
            (&["tool"][..], &["tool"][..]),
            (&["both"], &[]),
            (&["sh", "-c", "make; tool x|both"], &["tool"]),
            (&["echo", "tool"], &[]),
        ] {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            let named = Named::of(&command, (Path::new("/w"), Some(&path)), &variables);
            let want = want.iter().map(|name| ("files.exec", mine.join(name))).collect::<Vec<_>>();
            assert_eq!(named.files, want, "{command:?}");
        }
        let named = Named::of(&["both".into()], (Path::new("/w"), Some(&path)), &variables);
        assert_eq!(named.another(), None, "the first can be seen");
        std::fs::remove_file(mine.join("both")).unwrap();
        assert_eq!(named.another(), Some((&*mine.join("both"), &*other.join("both"))));
        let named = Named::of(&["x".into()], (Path::new("/w"), Some(&path)), &variables);
        assert_eq!(named.path, [mine.as_path(), other.as_path()]);
        assert!(named.path_unseen().is_empty(), "both can be seen");
        std::fs::remove_dir_all(&mine).unwrap();
        assert_eq!(named.path_unseen(), [mine]);
    }
}
