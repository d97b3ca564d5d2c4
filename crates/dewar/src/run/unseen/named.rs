//! What a command names by its arguments.

use super::{MOST_TOLD, Unseen};
use crate::machine;
use profile::Variables;
use std::{
    ffi::OsString,
    path::{Component, Path, PathBuf},
};

/// Words that are looked at.
const MOST_WORDS: usize = 1_000;

/// What a command names of the machine, as it was before the run.
pub(crate) struct Named(Vec<(&'static str, PathBuf)>);

impl Named {
    /// The files that `command` names, started in `directory`, but for those of the workspace.
    pub(crate) fn of(command: &[OsString], directory: &Path, variables: &Variables) -> Self {
        let words = command.iter().enumerate();
        let words = words.filter_map(|(index, word)| Some((index, word.to_str()?)));
        let words = words.flat_map(|(index, word)| {
            words_of(word, &variables.home).into_iter().map(move |word| (index, word))
        });
        let paths = words.take(MOST_WORDS).filter_map(|(index, word)| {
            let value = word.strip_prefix('-').and_then(|option| option.split_once('='));
            let word = value.map_or(word.as_str(), |(_, value)| value);
            let path = without_dots(&directory.join(word));
            let is_path = word.contains('/') && path.symlink_metadata().is_ok();
            let key = if index == 0 { "files.exec" } else { "files.read" };
            (is_path && !path.starts_with(&variables.workspace)).then_some((key, path))
        });
        Self(paths.collect())
    }

    /// Those of them that are not in the view, in which this is called.
    pub(crate) fn unseen(&self) -> Vec<Unseen> {
        let unseen = self.0.iter().filter(|(_, path)| path.symlink_metadata().is_err());
        let unseen =
            unseen.map(|(key, path)| Unseen { path: path.clone(), key: (*key).to_owned() });
        unseen.take(MOST_TOLD).collect()
    }
}

/// An argument; of a line for a shell, the words, with the home that it would put in them.
fn words_of(argument: &str, home: &Path) -> Vec<String> {
    if !argument.contains(char::is_whitespace) {
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
        let named = Named::of(&command.map(OsString::from), Path::new("/usr"), &variables);
        let paths: Vec<_> = named.0.iter().map(|(_, path)| path.as_path()).collect();
        assert_eq!(paths, [Path::new("/usr/lib"), Path::new("/etc")]);
        assert!(named.unseen().is_empty(), "both can be seen");
        let command = ["ls", "../lib", "bin/../../etc", "bin/..", "bin/../bin/sh"];
        let named = Named::of(&command.map(OsString::from), Path::new("/usr"), &variables);
        let paths: Vec<_> = named.0.iter().map(|(_, path)| path.as_path()).collect();
        assert_eq!(paths, [Path::new("/lib"), Path::new("/etc"), Path::new("/usr")]);
        let variables = Variables { home: "/usr".into(), ..variables };
        let line = "(grep -f ~/lib x;cat <'../etc/passwd');ls \"$HOME/sbin\" /no/such";
        let named =
            Named::of(&["sh", "-c", line].map(OsString::from), Path::new("/usr"), &variables);
        let paths: Vec<_> = named.0.iter().map(|(_, path)| path.as_path()).collect();
        assert_eq!(paths, ["/usr/lib", "/etc/passwd", "/usr/sbin"].map(Path::new));
    }
}
