//! Finding and executing the command, as `execvp` does.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

use crate::sys;

/// Where programs are looked for if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command in the form that the kernel takes, and where to look for it.
#[derive(Debug)]
pub(super) struct Program {
    candidates: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

/// Why a command cannot even be tried.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no command.
    #[error("no command given")]
    Empty,
    /// A word of the command or the environment holds a NUL byte.
    #[error("`{}` holds a NUL byte", .0.display())]
    Nul(OsString),
}

impl Program {
    /// Prepares `command`; its first word without a slash is looked for along the `PATH` of
    /// `environment`, which is the one that the command gets.
    pub(super) fn new(
        command: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> Result<Self, CommandError> {
        let name = command.first().ok_or(CommandError::Empty)?;
        let path = environment.iter().find(|(key, _)| key == "PATH").map(|(_, path)| path);
        let path = path.map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
        let variables = environment
            .iter()
            .map(|(key, value)| string(&[key.as_bytes(), b"=", value.as_bytes()].concat()));
        Ok(Self {
            candidates: candidates(name, path)?,
            arguments: command
                .iter()
                .map(|word| string(word.as_bytes()))
                .collect::<Result<_, _>>()?,
            environment: variables.collect::<Result<_, _>>()?,
        })
    }

    /// Where a program is, of the places to look in; all of them if there is none, so that each is
    /// refused with its reason. To be asked before calls are trapped: then a look costs little.
    pub(super) fn present(&self) -> Vec<&CString> {
        let is_there = |path: &&CString| {
            !matches!(rustix::fs::lstat(*path), Err(Errno::NOENT | Errno::NOTDIR))
        };
        let present: Vec<_> = self.candidates.iter().filter(is_there).collect();
        if present.is_empty() { self.candidates.iter().collect() } else { present }
    }

    /// Executes the program at the first of `candidates` that can be. Returns only to say why it
    /// could not: `EACCES` wins over "not found", as a program that was found and refused is worth
    /// knowing.
    pub(super) fn execute(&self, candidates: &[&CString]) -> Errno {
        if let [path] = candidates
            && self.arguments.first().is_some_and(|name| name.to_bytes().contains(&b'/'))
        {
            return self.try_one(path);
        }
        let mut refused = None;
        for candidate in candidates {
            match self.try_one(candidate) {
                Errno::ACCESS => refused = Some(Errno::ACCESS),
                Errno::NOENT | Errno::NOTDIR => {}
                other => return other,
            }
        }
        refused.unwrap_or(Errno::NOENT)
    }

    fn try_one(&self, path: &CString) -> Errno {
        match sys::execve(path, &self.arguments, &self.environment) {
            // A script without `#!` is run by the shell.
            Errno::NOEXEC => {
                let shell = [c"/bin/sh".to_owned(), path.clone()];
                let arguments: Vec<CString> =
                    shell.into_iter().chain(self.arguments.iter().skip(1).cloned()).collect();
                sys::execve(&arguments[0], &arguments, &self.environment)
            }
            errno => errno,
        }
    }
}

fn candidates(name: &OsStr, path: &OsStr) -> Result<Vec<CString>, CommandError> {
    let name = name.as_bytes();
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if name.contains(&b'/') {
        return Ok(vec![string(name)?]);
    }
    // An empty element means the current directory.
    let directories = path.as_bytes().split(|&byte| byte == b':');
    directories
        .map(|directory| if directory.is_empty() { &b"."[..] } else { directory })
        .map(|directory| string(&[directory, b"/", name].concat()))
        .collect()
}

fn string(bytes: &[u8]) -> Result<CString, CommandError> {
    CString::new(bytes).map_err(|_| CommandError::Nul(OsStr::from_bytes(bytes).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, path: &str) -> Vec<String> {
        let found = candidates(OsStr::new(name), OsStr::new(path)).expect("no NUL");
        found.into_iter().map(|path| path.into_string().expect("UTF-8")).collect()
    }

    #[test]
    fn only_names_without_a_slash_are_searched() {
        assert_eq!(found("ls", "/a:/b"), ["/a/ls", "/b/ls"]);
        assert_eq!(found("./ls", "/a:/b"), ["./ls"]);
        assert_eq!(found("ls", "/a::/b"), ["/a/ls", "./ls", "/b/ls"]);
        assert!(found("", "/a").is_empty());
    }

    #[test]
    fn a_program_is_tried_where_it_is_and_everywhere_if_it_is_nowhere() {
        let dir = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).expect("a link");
        let path = format!("/nowhere:{0}:{0}/link", dir.path().display());
        let present = |name: &str| {
            let environment = [("PATH".into(), path.clone().into())];
            let program = Program::new(&[name.into()], &environment).expect("a program");
            program.present().into_iter().cloned().collect::<Vec<_>>()
        };
        let inside = format!("{}/link", dir.path().display());
        assert_eq!(present("link"), [string(inside.as_bytes()).expect("no NUL")]);
        assert_eq!(present("other").len(), 3);
    }

    #[test]
    fn a_nul_byte_is_refused() {
        let command = [OsString::from("a\0b")];
        assert!(matches!(Program::new(&command, &[]), Err(CommandError::Nul(_))));
        assert!(matches!(Program::new(&[], &[]), Err(CommandError::Empty)));
    }
}
