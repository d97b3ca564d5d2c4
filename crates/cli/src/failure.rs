//! How Dewar says that it did not do what it was asked to, and with which exit status.

use crate::{exhausted, output::tell};
use miette::{Diagnostic, SourceCode};
use profile::ProfileErrors;
use security_server::PolicyErrors;
use std::process::ExitCode;

/// Wrong use: of the command line, or of a profile.
pub const USAGE: u8 = 2;

/// Dewar itself failed; nothing was started.
pub const SETUP: u8 = 125;

/// What was run did not come out well.
pub const FAILED: u8 = 1;

/// Something was run as it should be, and did not come out well.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

/// A request that cannot be met as it was made, whatever the machine.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Prints `error` on standard error; the exit status that it stands for.
#[must_use]
pub fn report(error: anyhow::Error) -> ExitCode {
    let error = match error.downcast::<ProfileErrors>() {
        Ok(errors) => {
            return match errors.errors() {
                // A headline over one mistake would say nothing.
                [error] => diagnose(error.clone()),
                _ => diagnose(errors),
            };
        }
        Err(error) => error,
    };
    let error = match error.downcast::<PolicyErrors>() {
        Ok(errors) => {
            return match errors.errors() {
                [error] => diagnose(error.clone()),
                _ => diagnose(errors),
            };
        }
        Err(error) => error,
    };
    let status = if error.is::<Usage>() {
        USAGE
    } else if error.is::<Failed>() {
        FAILED
    } else {
        SETUP
    };
    tell!("dewar: {}", with_causes(&error));
    if let Some(told) = exhausted::of(&error) {
        tell!("dewar: {told}");
    }
    ExitCode::from(status)
}

/// An error with what caused it, unless it says so itself.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        // The name of a temporary file, which `tempfile` appends, tells nobody anything.
        let cause = cause.split(" at path \"").next().unwrap_or_default().to_owned();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Mistakes in a text that a person wrote: with their places and what to write instead.
#[must_use]
pub fn diagnose(errors: impl Diagnostic + Send + Sync + 'static) -> ExitCode {
    let text = shown(errors);
    // The renderer leaves blanks where it breaks a line.
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let text = lines.join("\n");
    // One prefix for all that Dewar says.
    tell!("dewar: {}", text.strip_prefix("  ").unwrap_or(&text));
    ExitCode::from(USAGE)
}

/// A command line that is none: said with the prefix of everything else.
#[must_use]
pub fn mistake(error: &clap::Error) -> ExitCode {
    let text = error.render().ansi().to_string().replacen("error:", "dewar:", 1);
    // What the standard library says of text that is no number names no remedy.
    let text = [
        ("invalid digit found in string", "write a whole number"),
        ("cannot parse integer from empty string", "write a whole number"),
        ("invalid float literal", "write a number, such as 1.5"),
        ("expected number at 0", "write a number and its unit, such as 90s"),
    ]
    .iter()
    .fold(text, |text, (said, meant)| text.replace(said, meant));
    let err = std::io::stderr();
    let colour = anstream::AutoStream::choice(&err) != anstream::ColorChoice::Never;
    let text = if colour { text } else { crate::look::plain(&text) };
    tell!("{}", text.trim_end());
    ExitCode::from(USAGE)
}

/// Lines longer than this are not shown: nobody reads them, and the renderer cannot indent them.
const LONGEST_LINE: usize = 2_000;

/// A diagnosis as it is printed: with colours on a terminal, unless the text that it quotes could
/// steer one.
#[must_use]
pub fn shown(diagnosis: impl Diagnostic + Send + Sync + 'static) -> String {
    if quotes_long_line(&diagnosis, None) {
        let help = diagnosis.help().map_or(String::new(), |help| format!("\n  help: {help}"));
        return visible_lines(&format!("{diagnosis}{help}\n  (in a line too long to be shown)"));
    }
    let plain = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::none());
    let mut text = String::new();
    if plain.render_report(&mut text, &diagnosis).is_err() {
        return visible_lines(&diagnosis.to_string());
    }
    let safe = visible_lines(&text);
    if safe == text { format!("{:?}", miette::Report::new(diagnosis)) } else { safe }
}

fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(flask::visible).collect();
    lines.join("\n")
}

/// Whether a line that the diagnosis, or one that belongs to it, would quote is too long.
fn quotes_long_line(diagnosis: &dyn Diagnostic, around: Option<&dyn SourceCode>) -> bool {
    let source = diagnosis.source_code().or(around);
    let is_long = |label: miette::LabeledSpan| {
        let read = source.and_then(|source| source.read_span(label.inner(), 1, 1).ok());
        read.is_some_and(|read| read.data().split(|b| *b == b'\n').any(|l| l.len() > LONGEST_LINE))
    };
    diagnosis.labels().into_iter().flatten().any(is_long)
        || diagnosis
            .related()
            .into_iter()
            .flatten()
            .any(|related| quotes_long_line(related, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_diagnosis_quotes_cannot_steer_a_terminal() {
        let errors = |text: String| {
            let (name, directory) = ("\u{1b}[2J.toml".into(), "/".into());
            let source = profile::Source::Text { name, text, directory };
            let variables = profile::Variables::default();
            let loaded = profile::load(&source, &variables, &mut profile::unresolved);
            shown(loaded.expect_err("a mistake"))
        };
        let text = errors("mode = 'x' # \u{9b}2J \u{202e}".into());
        assert!(text.contains("\\u009b2J \\u202e"), "{text}");
        assert!(text.lines().all(|line| flask::visible(line) == line), "{text:?}");
        let long = errors(format!("mode = '{}'", "x".repeat(100_000)));
        assert!(long.contains("too long to be shown"), "{}", long.len());
    }

    #[test]
    fn a_cause_is_told_once() {
        let cause = || std::io::Error::from_raw_os_error(2);
        let named = anyhow::Error::new(cause()).context("cannot start");
        assert_eq!(with_causes(&named), "cannot start: No such file or directory (os error 2)");
        let temporary = std::io::Error::other("No space left at path \"/x/.tmp4711\"");
        let named = anyhow::Error::new(temporary).context("cannot write `x`");
        assert_eq!(with_causes(&named), "cannot write `x`: No space left");
        let twice = anyhow::Error::new(cause()).context(format!("cannot start: {}", cause()));
        assert_eq!(with_causes(&twice), "cannot start: No such file or directory (os error 2)");
    }
}
