//! Standard output that may be a pipe whose reader has seen enough.

use monitor::visible;
use serde::Serialize;
use std::io::{self, Write as _};

/// `value` as JSON for people and programs: indented, and without a character that could steer a terminal.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(text.lines().map(|line| visible(line) + "\n").collect())
}

/// Writes `text` to standard output. A reader that has gone away is no error.
pub(crate) fn print(text: &[u8]) -> io::Result<()> {
    print_while_read(text).map(drop)
}

/// Writes `text` to standard output; whether somebody reads it.
pub(crate) fn print_while_read(text: &[u8]) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    is_read(out.write_all(text).and_then(|()| out.flush()))
}

/// What came of something that was written to standard output. A reader that has gone away is no error.
pub(crate) fn printed(written: io::Result<()>) -> anyhow::Result<()> {
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

/// Prints a line on standard error, as `eprintln!` does. Where that is closed, or its disk full, nobody is told: what the
/// program goes on to do, and its exit status, are worth more.
macro_rules! tell {
    ($($argument:tt)*) => { $crate::output::tell_line(format_args!($($argument)*)) };
}
pub(crate) use tell;

/// What `tell!` does.
pub(crate) fn tell_line(line: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    let _ = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}
