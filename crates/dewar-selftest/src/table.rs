//! Verdicts as tables: for a terminal, and in Markdown.

use crate::tried::{Row, Tried};
use selftest::verdict::Verdict;
use std::{
    fmt::Write as _,
    io::{IsTerminal as _, stdout},
};

/// Columns of a terminal.
const WIDTH: usize = 80;

/// One line per case, the verdict first; then what got through, ranked.
pub(crate) fn terminal(tried: &Tried, profile: &str) -> String {
    let colour = stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut text = String::new();
    let several = tried.walls.len() > 2;
    if several {
        let _ = write!(text, "{:<24}", "");
        for wall in tried.walls.iter().skip(1) {
            let _ = write!(text, " {wall:<11}");
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for row in &tried.cases {
        text += &if several { side_by_side(row, colour) } else { line(row, colour) };
    }
    text.push('\n');
    text += &sums(tried);
    text += &ranked(tried, profile);
    text
}

fn painted(verdict: &Verdict, width: usize, colour: bool) -> String {
    let word = format!("{:<width$}", verdict.word());
    let code = match verdict {
        Verdict::GotThrough { .. } => "1;31",
        Verdict::Reported { .. } => "33",
        Verdict::Stopped { .. } => "32",
        Verdict::NotShown { .. } | Verdict::NotApplicable { .. } => "2",
    };
    if colour { format!("\x1b[{code}m{word}\x1b[0m") } else { word }
}

fn line(row: &Row, colour: bool) -> String {
    let verdict = row.behind(1);
    let word = painted(verdict, 11, colour);
    let start = format!("{:<8} {:<24} ", row.severity.name(), row.name);
    let note = cut(&verdict.note(), WIDTH - 12 - start.len());
    format!("{word} {start}{note}").trim_end().to_owned() + "\n"
}

fn side_by_side(row: &Row, colour: bool) -> String {
    let mut text = format!("{:<24}", row.name);
    for wall in 1..row.verdicts.len() {
        let _ = write!(text, " {}", painted(row.behind(wall), 11, colour));
    }
    text.trim_end().to_owned() + "\n"
}

fn cut(text: &str, width: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// How many of each, for every wall.
fn sums(tried: &Tried) -> String {
    let mut text = String::new();
    for (n, wall) in tried.walls.iter().enumerate().skip(1) {
        let count =
            |is: fn(&Verdict) -> bool| tried.cases.iter().filter(|row| is(row.behind(n))).count();
        let _ = writeln!(
            text,
            "{wall}: {} stopped, {} reported, {} got through, {} not shown here, {} n/a",
            count(|it| matches!(it, Verdict::Stopped { .. })),
            count(|it| matches!(it, Verdict::Reported { .. })),
            count(Verdict::is_bad),
            count(|it| matches!(it, Verdict::NotShown { .. })),
            count(|it| matches!(it, Verdict::NotApplicable { .. })),
        );
    }
    text
}

fn ranked(tried: &Tried, profile: &str) -> String {
    let rows = tried.ranked();
    if rows.is_empty() && tried.gives.is_empty() {
        return String::new();
    }
    let mut text = format!("\nWhat code under `{profile}` can still do, the worst first:\n");
    for gives in &tried.gives {
        let _ = writeln!(text, "  !. the profile gives {gives}");
    }
    for (n, row) in rows.iter().enumerate() {
        let told = if row.dewar().is_bad() { "" } else { " (the end of the run says so)" };
        let _ = writeln!(text, "{:>3}. {}: {}{told}", n + 1, row.severity.name(), row.claim);
    }
    text
}

/// A table for documents: a row per case, a column per wall.
pub(crate) fn markdown(tried: &Tried) -> String {
    let mut text = String::from("| case | severity |");
    for wall in &tried.walls {
        let _ = write!(text, " {wall} |");
    }
    text += "\n|---|---|";
    text += &"---|".repeat(tried.walls.len());
    text.push('\n');
    for row in &tried.cases {
        let _ = write!(text, "| `{}` {} | {} |", row.name, row.claim, row.severity.name());
        for wall in 0..tried.walls.len() {
            let cell = match (wall, &row.verdicts[wall]) {
                (0, verdict) if verdict.happened() => "happens",
                (0, _) => "not shown",
                _ => match row.behind(wall) {
                    Verdict::GotThrough { .. } => "**got through**",
                    verdict => verdict.word(),
                },
            };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
    }
    text
}
