//! The sample application: what the founding paper's macrobenchmark compiles and links, in size,
//! written anew.
//!
//! 20 `.c` and 4 `.h` files, 8,060 lines in all including comments and white space, about 190 KB,
//! and a `Makefile`. The program is the same on every machine; run, it prints [`OUTPUT`].

mod fragment;
mod project;
mod prose;

use std::{fs, io, path::Path};

/// The program that `make` builds, relative to the directory.
pub const PROGRAM: &str = "./sample";

/// What the program prints.
pub const OUTPUT: &str = "checksum fe6d1979\n";

/// A file of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name inside the directory.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// Every file of the application, the `Makefile` last.
#[must_use]
pub fn files() -> Vec<SourceFile> {
    project::files()
}

/// Writes the application into `directory`, which is made if it is missing.
///
/// # Errors
///
/// Whatever the file system says.
pub fn write(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for file in files() {
        fs::write(directory.join(file.name), file.text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn there_are_twenty_c_files_four_headers_and_8060_lines_of_190_kilobytes() {
        let files = files();
        let of_kind = |end: &str| files.iter().filter(|file| file.name.ends_with(end)).count();
        assert_eq!((of_kind(".c"), of_kind(".h"), files.len()), (20, 4, 25));
        let source = || files.iter().filter(|file| file.name != "Makefile").map(|file| &file.text);
        assert_eq!(source().map(|text| text.matches('\n').count()).sum::<usize>(), 8060);
        let bytes: usize = source().map(String::len).sum();
        assert!((187_000..193_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn no_place_is_left_unfilled_and_every_run_writes_the_same() {
        assert!(files().iter().all(|file| file.name == "Makefile" || !file.text.contains('@')));
        assert_eq!(files(), files());
    }

    #[test]
    fn it_compiles_without_a_warning_and_prints_what_is_promised() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        write(directory.path())?;
        let make = |argument: &[&str]| {
            Command::new("make").args(argument).current_dir(&directory).output()
        };
        let built = make(&["-j2", "CFLAGS=-O0 -Wall -Wextra -Werror"])?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        assert_eq!(String::from_utf8_lossy(&built.stderr), "");
        let run = Command::new(PROGRAM).current_dir(&directory).output()?;
        assert_eq!(String::from_utf8_lossy(&run.stdout), OUTPUT);
        assert!(make(&["clean"])?.status.success());
        assert_eq!(fs::read_dir(&directory)?.count(), files().len());
        Ok(())
    }
}
