//! What people see: colour where it is wanted, lines as wide as the terminal, and long texts page
//! by page.
//!
//! Text is made with colours; [`show`] takes them out where nobody wants them, by the rules of
//! `anstream`: `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, and terminals only. What programs chose is
//! made visible before it becomes a part of the text, so that no colour is theirs.

use anstyle::{AnsiColor, Style};
use std::{
    env,
    fmt::Write as _,
    io::{self, IsTerminal as _, Write as _},
    process::{Command, Stdio},
};

/// Headings, and what matters most.
pub const STRONG: Style = Style::new().bold();
/// What is good.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What is bad, or was denied.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// What deserves a look.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What names something: runs, domains.
pub const NAME: Style = AnsiColor::Cyan.on_default();
/// What is said beside.
pub const FAINT: Style = Style::new().dimmed();

/// `text` in `style`.
#[must_use]
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// The columns of what standard output is: `COLUMNS`, or the terminal's; `None` if it is no
/// terminal.
#[must_use]
pub fn columns() -> Option<usize> {
    let named = env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal =
        || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into());
    named.or_else(terminal).filter(|columns| *columns >= 20)
}

/// The columns of the terminal that standard error is; `None` if it is none.
#[must_use]
pub fn columns_of_errors() -> Option<usize> {
    let terminal = terminal_size::terminal_size_of(io::stderr());
    terminal.map(|(width, _)| width.0.into()).filter(|columns| *columns >= 20)
}

/// The columns that help texts are broken for: also where they go through a pipe, as the options in
/// them are broken for the terminal of whoever asks, which any of the standard streams names.
#[must_use]
pub fn columns_of_help() -> Option<usize> {
    let any = || terminal_size::terminal_size().map(|(width, _)| width.0.into());
    columns().or_else(any).filter(|columns| *columns >= 20)
}

/// `line` in lines of at most `columns` columns, if it is longer; those behind the first indented.
#[must_use]
pub fn folded(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len();
    let pad = indent + 2;
    let filled = fill(line.trim_start_matches(' ').split(' '), pad, columns);
    // The first line begins where it did; the words were placed as if it were indented.
    format!("{:indent$}{filled}", "")
}

/// How wide text for people is made: the terminal's width, within what can be read.
#[must_use]
pub fn width() -> usize {
    columns().unwrap_or(100).clamp(40, 160)
}

/// `words`, coloured or not, in lines of at most `width` columns, each behind `pad` spaces; the
/// first line may be begun by the caller, and has `pad` columns already.
#[must_use]
pub fn fill<'a>(words: impl IntoIterator<Item = &'a str>, pad: usize, width: usize) -> String {
    let (mut text, mut column) = (String::new(), pad);
    for word in words {
        let length = plain(word).chars().count();
        if column > pad && column + 1 + length > width {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\n{:pad$}", "");
            column = pad;
        }
        if column > pad {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text
}

/// At most `width` characters of `text`; what is cut is shown by an ellipsis.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// `text` without colours.
#[must_use]
pub fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Prints `text` for people: without colours where they are not wanted, and page by page where it
/// is longer than the terminal.
///
/// # Errors
///
/// It cannot be written.
pub fn show(text: &str) -> io::Result<()> {
    let out = io::stdout();
    let colour = anstream::AutoStream::choice(&out) != anstream::ColorChoice::Never;
    let text = if colour { text.to_owned() } else { plain(text) };
    let rows = terminal_size::terminal_size_of(&out).map(|(_, height)| usize::from(height.0));
    let is_long = rows.is_some_and(|rows| rows > 0 && text.lines().count() >= rows);
    if is_long && out.is_terminal() && io::stdin().is_terminal() && page(&text) {
        return Ok(());
    }
    crate::output::print(text.as_bytes())
}

/// Has `$PAGER` show `text`; whether it did. Without a pager nothing is paged.
fn page(text: &str) -> bool {
    let pager = match env::var("PAGER") {
        Ok(pager) if pager.trim().is_empty() || pager.trim() == "cat" => return false,
        Ok(pager) => pager,
        Err(_) => "less".to_owned(),
    };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &pager]).stdin(Stdio::piped());
    // As Git does: colours pass, and the text stays on the screen.
    for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
        if env::var_os(name).is_none() {
            command.env(name, value);
        }
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut pipe) = child.stdin.take() {
        // Whoever has seen enough closes it.
        let _ = pipe.write_all(text.as_bytes());
    }
    // 127: a shell that has not found it.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

/// The candidate that `word` was most likely meant to be, if one is near enough.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = |candidate: &&str| {
        let distance = strsim::damerau_levenshtein(word, candidate);
        distance * 3 <= word.chars().count().max(candidate.chars().count())
    };
    let candidates = candidates.into_iter().filter(near);
    candidates.min_by_key(|candidate| strsim::damerau_levenshtein(word, candidate))
}

/// `; did you mean `X`?` for what [`closest`] finds, or nothing.
#[must_use]
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let found = closest(word, candidates);
    found.map_or_else(String::new, |found| format!("; did you mean `{}`?", flask::visible(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_it_may_be_unless_one_word_is() {
        let words = ["/usr", "/a/long/path/that/nothing/can/break", "/bin", "/sbin", "/lib"];
        let text = fill(words, 4, 20);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            ["/usr", "    /a/long/path/that/nothing/can/break", "    /bin /sbin /lib"]
        );
    }

    #[test]
    fn a_long_line_goes_on_indented_and_a_short_one_stays_as_it_is() {
        assert_eq!(folded("  a  b", 6), "  a  b");
        assert_eq!(folded("dewar: one two three", 12), "dewar: one\n  two three");
        assert_eq!(folded(" dewar: one two", 13), " dewar: one\n   two");
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!((cut("abcdef", 6).as_str(), cut("abcdef", 4).as_str()), ("abcdef", "abc…"));
    }

    #[test]
    fn a_slip_is_told_from_another_word() {
        let names = ["workspace", "build", "agent"];
        assert_eq!(closest("biuld", names), Some("build"));
        assert_eq!(closest("wrokspace", names), Some("workspace"));
        assert_eq!(closest("nothing", names), None);
        assert_eq!(did_you_mean("agnet", names), "; did you mean `agent`?");
    }
}
