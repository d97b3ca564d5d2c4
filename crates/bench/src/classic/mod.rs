//! The classic suite of system benchmarks, as bytebench and UnixBench made it known: a C program,
//! compiled here, that is a runner by itself.

use crate::pairs::{Subject, Unit};
use std::{
    io,
    path::{Path, PathBuf},
    process::Command,
};

const SUITE: &str = include_str!("suite.c");
const SCRIPT: &str = include_str!("script");

/// What compilations of the suite's compiler test read.
const UNIT: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
    int count(const char *s) { int n = 0; while (*s) n += *s++ == 'e'; return n; }\n\
    int main(int argc, char **argv) { for (int i = 1; i < argc; i++) printf(\"%d\\n\", count(argv[i])); return 0; }\n";

/// A test of the suite: its name in the program, what tables call it, and whether its time is spent
/// in the compiled program itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name in the program.
    pub name: &'static str,
    /// What tables call it.
    pub title: &'static str,
    /// Whether how the suite is compiled can make a difference.
    pub own_code: bool,
}

const fn test(name: &'static str, title: &'static str, own_code: bool) -> Test {
    Test { name, title, own_code }
}

/// The suite.
pub const TESTS: [Test; 16] = [
    test("dhrystone", "integers and strings", true),
    test("whetstone", "floating point", true),
    test("arithmetic", "arithmetic", true),
    test("hanoi", "recursion (Hanoi)", true),
    test("syscall", "system call", true),
    test("pipe", "pipe, 512 bytes", true),
    test("context", "context switch by pipes", true),
    test("spawn", "process creation", true),
    test("execl", "execl", true),
    test("copy256", "copy, 256 bytes", true),
    test("copy1024", "copy, 1,024 bytes", true),
    test("copy4096", "copy, 4,096 bytes", true),
    test("files", "file system", true),
    test("shell1", "shell script", false),
    test("shell8", "8 shell scripts", false),
    test("compiler", "compiler", false),
];

/// The tests as subjects.
#[must_use]
pub fn subjects(tests: &[Test]) -> Vec<Subject> {
    let subject = |test: &Test| Subject {
        name: test.title.to_owned(),
        units: vec![Unit::Suite { name: test.name.to_owned(), times: 1 }],
        operations: 1.0,
    };
    tests.iter().map(subject).collect()
}

/// Writes what the suite works on into its directory.
///
/// # Errors
///
/// Whatever the file system says.
pub fn furnish(directory: &Path) -> io::Result<()> {
    std::fs::write(directory.join("script"), SCRIPT)?;
    std::fs::write(directory.join("unit.c"), UNIT)?;
    let words = (0..400_u32).map(|n| format!("{:x} the word {n}\n", n.wrapping_mul(2_654_435_761)));
    std::fs::write(directory.join("words"), words.collect::<String>())
}

/// Compiles the suite with these words of a compiler; where the program is.
///
/// # Errors
///
/// What the compiler says.
pub fn compile(compiler: &[&str], directory: &Path) -> io::Result<PathBuf> {
    compile_text(compiler, SUITE, &directory.join("suite"), &["-lm"])
}

/// Compiles a text into `program`.
pub(crate) fn compile_text(
    compiler: &[&str],
    text: &str,
    program: &Path,
    libraries: &[&str],
) -> io::Result<PathBuf> {
    let source = program.with_extension("c");
    std::fs::write(&source, text)?;
    let Some((name, flags)) = compiler.split_first() else {
        return Err(io::Error::other("no compiler was named"));
    };
    let mut command = Command::new(name);
    command.arg("-std=gnu11").args(flags).arg("-o").arg(program).arg(&source).args(libraries);
    let said = command
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run `{name}`: {error}")))?;
    if said.status.success() {
        return Ok(program.to_owned());
    }
    let words = String::from_utf8_lossy(&said.stderr);
    let error = words.lines().find(|line| line.contains("error")).or(words.lines().next());
    Err(io::Error::other(format!("{}: {}", compiler.join(" "), error.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn every_test_of_the_suite_is_performed_and_an_unknown_one_is_named() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        furnish(directory.path())?;
        let program = compile(&["gcc", "-O2", "-Wall", "-Wextra", "-Werror"], directory.path())?;
        let mut child = Command::new(program)
            .current_dir(&directory)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()?;
        let mut asked: String = TESTS.iter().map(|test| format!("{} 2\n", test.name)).collect();
        asked += "nothing 1\n";
        child.stdin.take().expect("a pipe").write_all(asked.as_bytes())?;
        let output = child.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), TESTS.len() + 1, "{text}");
        for (line, test) in lines.iter().zip(&TESTS) {
            let numbers: Vec<u64> = line.split(' ').filter_map(|it| it.parse().ok()).collect();
            assert!(numbers.len() == 2 && numbers[0] > 0, "{}: {line}", test.name);
        }
        assert_eq!(lines.last().copied(), Some("! there is no test `nothing`"));
        Ok(())
    }
}
