//! What is being run, on the last line of the terminal.

use crate::runner::Progress;
use std::io::{IsTerminal, Write, stderr};

/// A listener that shows progress on standard error if that is a terminal, and nothing otherwise.
pub fn on_terminal() -> impl FnMut(Progress<'_>) {
    let terminal = stderr().is_terminal();
    move |progress| {
        if terminal {
            let Progress { round, rounds, name } = progress;
            // Progress that cannot be shown is no reason to stop measuring.
            let _ = write!(stderr(), "\r\x1b[Kround {round} of {rounds}: {name}");
            let _ = stderr().flush();
        }
    }
}

/// Says what comes, on one line of standard error if that is a terminal.
pub fn note(what: &str) {
    if stderr().is_terminal() {
        let _ = write!(stderr(), "\r\x1b[K{what}");
        let _ = stderr().flush();
    }
}

/// Clears the line again.
pub fn clear() {
    if stderr().is_terminal() {
        let _ = write!(stderr(), "\r\x1b[K");
    }
}
