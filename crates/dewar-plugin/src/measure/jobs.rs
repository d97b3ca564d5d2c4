//! Operations that are timed, by name.

use bench::interleaved::{Batch, Stopwatch};
use std::fmt::Display;

/// The names of operations, and how to do them.
pub(super) type Jobs<'a> = Vec<(String, Batch<'a>)>;

pub(super) fn text(error: impl Display) -> String {
    error.to_string()
}

/// Repeats `work`, timing all of it.
pub(super) fn batch<'a, E: Display>(mut work: impl FnMut() -> Result<(), E> + 'a) -> Batch<'a> {
    Box::new(move |times| {
        let start = Stopwatch::start();
        for _ in 0..times {
            work().map_err(text)?;
        }
        Ok(start.elapsed())
    })
}
