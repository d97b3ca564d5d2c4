//! What is being run, on the last line of the terminal.

use crate::pairs::{engine::Standing, show::minutes};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write, stderr};

/// Steps of the bar.
const STEPS: u64 = 1000;

/// A bar that shows how an experiment stands and how long it will take at most, on standard error
/// if that is a terminal.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar for the experiment of this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let bar = ProgressBar::new(STEPS).with_prefix(name.to_owned());
        // The template is right: a wrong one would show the library's own.
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {wide_msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows it.
    pub fn show(&self, standing: Standing<'_>) {
        let share = standing.spent_s / (standing.spent_s + standing.left_s).max(1e-9);
        self.0.set_position((share * STEPS as f64) as u64);
        let width = standing.half_width.map_or_else(
            || "no interval yet".to_owned(),
            |width| format!("±{:.1} % of ±{:.1} %", width * 100.0, standing.aim * 100.0),
        );
        let left = minutes(standing.left_s);
        let Standing { rounds, subject, .. } = standing;
        self.0.set_message(format!("{rounds} rounds, {width}, at most {left} left: {subject}"));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
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
