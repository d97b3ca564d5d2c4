//! Raw runs, kept for whoever wants to look again.

use serde::Serialize;
use std::{fs, io, path::Path};

/// Writes a report, with its machine and every run, as JSON.
///
/// # Errors
///
/// Whatever the file system says.
pub fn write_json(path: &Path, report: &impl Serialize) -> io::Result<()> {
    fs::write(path, serde_json::to_string_pretty(report)? + "\n")
}
