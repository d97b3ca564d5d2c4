//! Standard output that may be a pipe whose reader has seen enough.

use crate::args::show::ShowArgs;
use crate::output_file;
use anyhow::Context as _;
use flask::visible_json;
use serde::Serialize;
use std::{
    io::{self, Write as _},
    path::Path,
};

/// `value` as JSON for people and programs: indented, and without a character that could steer a
/// terminal.
///
/// # Errors
///
/// `value` has no form in JSON.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(text.lines().map(|line| visible_json(line) + "\n").collect())
}

/// Prints and keeps the report of a measurement as the arguments say. `table` makes it text, in
/// Markdown or not.
///
/// # Errors
///
/// It cannot be written.
pub fn report(
    args: &ShowArgs,
    report: &impl Serialize,
    table: impl FnOnce(bool) -> String,
) -> anyhow::Result<()> {
    document(args, report)?;
    if args.json {
        return Ok(());
    }
    let text = table(args.markdown) + "\n";
    let shown = if args.markdown { print(text.as_bytes()) } else { crate::look::show(&text) };
    Ok(shown?)
}

/// Prints and keeps the results themselves, where the arguments ask for them.
///
/// # Errors
///
/// They cannot be written.
pub fn document(args: &ShowArgs, results: &impl Serialize) -> anyhow::Result<()> {
    let json = || Ok::<_, anyhow::Error>(serde_json::to_string_pretty(results)? + "\n");
    if let Some(path) = &args.raw {
        output_file::replace(path, json()?.as_bytes())
            .with_context(|| format!("cannot write `{}`", path.display()))?;
    }
    if args.json {
        print(json()?.as_bytes())?;
    }
    Ok(())
}

/// Writes `text` to the file `name` of `directory`, which is made if it is not there.
///
/// # Errors
///
/// It cannot be written.
pub fn keep(directory: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let file = directory.join(name);
    output_file::make_directory(directory, &[], 0o777)
        .and_then(|()| output_file::replace(&file, text.as_bytes()))
        .with_context(|| format!("cannot write `{}`", file.display()))
}

/// Writes `text` to standard output. A reader that has gone away is no error.
///
/// # Errors
///
/// It cannot be written.
pub fn print(text: &[u8]) -> io::Result<()> {
    print_while_read(text).map(drop)
}

/// Writes `text` to standard output; whether somebody reads it.
///
/// # Errors
///
/// It cannot be written.
pub fn print_while_read(text: &[u8]) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    is_read(out.write_all(text).and_then(|()| out.flush()))
}

/// What came of something that was written to standard output. A reader that has gone away is no
/// error.
///
/// # Errors
///
/// It could not be written.
pub fn printed(written: io::Result<()>) -> anyhow::Result<()> {
    let flushed = written.and_then(|()| io::stdout().flush());
    Ok(is_read(flushed).map(drop)?)
}

fn is_read(written: io::Result<()>) -> io::Result<bool> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => {
            let what = format!("cannot write to standard output: {error}");
            Err(io::Error::new(error.kind(), what))
        }
        Ok(()) => Ok(true),
    }
}

/// Prints a line on standard error, as `eprintln!` does. Where that is closed, or its disk full,
/// nobody is told: what the program goes on to do, and its exit status, are worth more.
#[macro_export]
macro_rules! tell {
    ($($argument:tt)*) => { $crate::output::tell_line(format_args!($($argument)*)) };
}
pub use crate::tell;

/// What `tell!` does.
pub fn tell_line(line: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    let mut text = format!("{line}\n");
    if let Some(columns) = crate::look::columns_of_errors() {
        text = text.lines().map(|line| crate::look::folded(line, columns) + "\n").collect();
    }
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
