//! A newer libsepol than Debian 12's, from Debian's archive: nothing that is installed writes
//! versions 34 and 35.

use crate::Oracle;
use crate::tools::run;
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The suite that the package is taken from. Nothing of it is installed.
const SUITE: &str = "sid";

/// Functions that newer C libraries give another name.
const RENAMED: [&str; 3] = ["strtol", "strtoul", "strtoull"];

/// Programs made with the newer library.
#[derive(Clone, Debug)]
pub struct Newer {
    directory: PathBuf,
    /// The same oracle, that answers by the newer library.
    pub oracle: Oracle,
}

impl Newer {
    /// Fetches the package with apt into `directory`, unless it is there, and builds the programs.
    ///
    /// # Errors
    ///
    /// When the archive cannot be reached, or the programs cannot be built.
    pub fn obtain(directory: &Path) -> Result<Self> {
        fs::create_dir_all(directory)?;
        if !directory.join("usr/include/sepol").exists() {
            fetch(directory)?;
        }
        let archive = directory.join("libsepol.a");
        let renames = RENAMED.map(|name| format!("--redefine-sym=__isoc23_{name}={name}"));
        let packed = directory.join("usr/lib/x86_64-linux-gnu/libsepol.a");
        run(Command::new("objcopy").args(renames).arg(packed).arg(&archive))?;
        for name in ["oracle", "compile"] {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("oracle/{name}.c"));
            let mut command = Command::new("cc");
            command.args(["-O2", "-I"]).arg(directory.join("usr/include"));
            run(command.arg("-o").arg(directory.join(name)).arg(source).arg(&archive))?;
        }
        let oracle = Oracle::at(directory.join("oracle"));
        Ok(Self { directory: directory.to_owned(), oracle })
    }

    /// Compiles CIL text to a binary policy of that version.
    ///
    /// # Errors
    ///
    /// When the library refuses it.
    pub fn compile(&self, name: &str, text: &str, version: u32) -> Result<PathBuf> {
        let source = self.directory.join(format!("{name}.cil"));
        let policy = self.directory.join(format!("{name}.{version}"));
        fs::write(&source, text)?;
        let program = self.directory.join("compile");
        run(Command::new(program).arg(version.to_string()).arg(source).arg(&policy))?;
        Ok(policy)
    }
}

/// Downloads and unpacks the package, by apt's own means and with Debian's keys, beside the
/// system's configuration.
fn fetch(directory: &Path) -> Result<()> {
    let state = directory.join("apt");
    for part in ["lists/partial", "cache/archives/partial"] {
        fs::create_dir_all(state.join(part))?;
    }
    let key = "/usr/share/keyrings/debian-archive-keyring.gpg";
    let source = format!("deb [signed-by={key}] http://deb.debian.org/debian {SUITE} main\n");
    fs::write(state.join("sources.list"), source)?;
    let place = |option: &str, path: &str| format!("-o{option}={}", state.join(path).display());
    let options = [
        place("Dir::Etc::sourcelist", "sources.list"),
        place("Dir::State::lists", "lists"),
        place("Dir::Cache", "cache"),
        "-oDir::Etc::sourceparts=/dev/null".to_owned(),
        "-oDir::State::status=/dev/null".to_owned(),
        "-oAPT::Sandbox::User=root".to_owned(),
        "-oAcquire::Retries=1".to_owned(),
        "-oAcquire::http::Timeout=30".to_owned(),
    ];
    let apt = |action: &[&str]| {
        run(Command::new("apt-get").current_dir(&state).args(&options).arg("-q").args(action))
    };
    apt(&["update"]).context("Debian's archive cannot be read")?;
    apt(&["download", "libsepol-dev"]).context("the package cannot be fetched")?;
    let entries = fs::read_dir(&state)?.flatten().map(|entry| entry.path());
    let package = entries.into_iter().find(|path| path.extension().is_some_and(|e| e == "deb"));
    let package = package.context("apt has fetched no package")?;
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(directory)).map(drop)
}
