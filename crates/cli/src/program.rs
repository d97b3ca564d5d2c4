//! Programs that belong to Dewar: they lie beside each other, wherever they are installed.
//!
//! They are found beside the program that runs, and never by `PATH`: whoever can put something on a
//! path could put another program in the place of Dewar's.

use anyhow::Context as _;
use std::{
    env,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// A program beside this one is not there.
#[derive(Debug, thiserror::Error)]
#[error(
    "the program `{name}` is missing beside `{}`: in Dewar's sources, `make install` installs all of its programs, \
     `cargo install --locked --path {}` this one, and `cargo build --release -p {name}` builds it",
    own.display(), sources(name)
)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// The program that looked for it.
    pub own: PathBuf,
}

/// Where the sources of a program are: of one that is built apart, not among the crates.
fn sources(name: &str) -> String {
    if name == "dewar-mcp" { "mcp".to_owned() } else { format!("crates/{name}") }
}

/// The program called `name` beside this one, links followed.
///
/// # Errors
///
/// [`Missing`], or `/proc` does not tell which program this is.
pub fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = env::current_exe().context("/proc does not tell which program this is")?;
    Ok(find(name, own)?)
}

fn find(name: &str, own: PathBuf) -> Result<PathBuf, Missing> {
    // It may have been replaced, but not found by a link: the kernel has followed those.
    let program = own.parent().unwrap_or(Path::new("/")).join(name);
    if program.is_file() { Ok(program) } else { Err(Missing { name: name.to_owned(), own }) }
}

/// Becomes the program called `name`, with the arguments of this one. What comes back is why not.
#[must_use]
pub fn become_helper(name: &str) -> anyhow::Error {
    match beside(name) {
        Ok(program) => {
            let error = Command::new(&program).args(env::args_os().skip(1)).exec();
            anyhow::Error::new(error).context(format!("cannot start `{}`", program.display()))
        }
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_the_directory_of_this_one_or_named_as_missing() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("dewar");
        let missing = find("dewar-bench", own.clone()).unwrap_err().to_string();
        assert!(missing.contains("`dewar-bench` is missing beside"), "{missing}");
        assert!(missing.contains(&own.display().to_string()), "{missing}");
        std::fs::write(directory.path().join("dewar-bench"), "").unwrap();
        assert_eq!(find("dewar-bench", own).unwrap(), directory.path().join("dewar-bench"));
    }
}
