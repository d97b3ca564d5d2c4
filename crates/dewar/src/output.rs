//! Standard output that may be a pipe whose reader has seen enough.

use std::io::{self, Write as _};

/// Writes `text` to standard output. A reader that has gone away is no error.
pub(crate) fn print(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
