//! Help texts: what stands behind the options, for every command and for narrow terminals.
//!
//! All of it is put together only for who reads it: starting a command costs nothing of it.

use crate::look::{columns_of_help, fill, folded};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, error::ErrorKind};

/// How wide help texts are written.
const WIDEST: usize = 96;

/// How the line begins that every help text ends with.
const STATUS: &str = "Exit status:";

/// The arguments of this process, as a program beside `dewar` takes them.
///
/// # Errors
///
/// They are wrong, or ask for help.
pub fn parse<T: CommandFactory + FromArgMatches>() -> Result<T, clap::Error> {
    T::from_arg_matches(&matches(T::command)?)
}

/// The same, of the command that is made.
///
/// # Errors
///
/// They are wrong, or ask for help.
pub fn matches(command: impl Fn() -> Command) -> Result<ArgMatches, clap::Error> {
    let is_help = |kind| {
        matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
    };
    match command().try_get_matches() {
        Err(help) if is_help(help.kind()) => {
            let told = with_statuses(command());
            let told = match columns_of_help().filter(|columns| *columns < WIDEST) {
                Some(columns) => narrow(told, columns),
                None => told,
            };
            told.try_get_matches()
        }
        parsed => parsed,
    }
}

/// `command`, of whose subcommands each says with which status it ends: if not by itself, then as
/// the group that it belongs to.
#[must_use]
pub fn with_statuses(command: Command) -> Command {
    // What `dewar` itself says is of the commands that it runs.
    command.mut_subcommands(|inner| with_status(inner, None))
}

fn with_status(command: Command, of_group: Option<&str>) -> Command {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let own = help.find(STATUS).and_then(|at| help.get(at..));
    let command = match of_group.filter(|_| own.is_none()) {
        Some(status) if help.is_empty() => command.after_help(status.to_owned()),
        Some(status) => command.after_help(format!("{help}\n\n{status}")),
        None => command,
    };
    let status = own.or(of_group);
    command.mut_subcommands(|inner| with_status(inner, status))
}

/// The command, and all below it, with what stands behind the options broken anew.
fn narrow(command: Command, columns: usize) -> Command {
    let help = command.get_after_help().map(|help| refolded(&help.to_string(), columns));
    let command = match help {
        Some(help) => command.after_help(help),
        None => command,
    };
    command.mut_subcommands(|inner| narrow(inner, columns))
}

/// A help text that was broken into lines by hand, for a terminal that is narrower: a paragraph is
/// filled anew, and what a term means stays beside it.
fn refolded(text: &str, columns: usize) -> String {
    /// Where what follows the term begins: behind two spaces that are not its indent.
    fn pad_of(line: &str) -> usize {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let term = line.get(indent..).unwrap_or_default();
        let gap = term.find("  ").and_then(|at| term.get(at..).map(|gap| (at, gap)));
        let meaning = gap.map(|(at, gap)| at + gap.len() - gap.trim_start_matches(' ').len());
        indent + meaning.unwrap_or_default()
    }
    let mut items: Vec<(usize, String)> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let goes_on = |(pad, before): &&mut (usize, String)| {
            !line.is_empty() && !before.is_empty() && !before.ends_with(':') && *pad == indent
        };
        // An example without a meaning is followed by the next example.
        match items.last_mut().filter(goes_on).filter(|_| indent != 2) {
            Some((_, before)) => {
                before.push(' ');
                before.push_str(line.trim_start_matches(' '));
            }
            None => items.push((pad_of(line), line.to_owned())),
        }
    }
    let folded = items.into_iter().map(|(pad, line)| match line.split_at_checked(pad) {
        Some((term, rest)) if line.chars().count() > columns && pad + 20 < columns => {
            format!("{term}{}", fill(rest.split(' '), pad, columns))
        }
        _ => folded(&line, columns),
    });
    folded.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_text_is_broken_anew_for_a_narrow_terminal() {
        let text = "Examples:\n  dewar ps     lists runs,\n               all of them\n  dewar top\n  \
                    dewar run -- make\n\nA paragraph of\ntwo lines.\n\n    long f(void);";
        let want = "Examples:\n  dewar ps     lists runs, all of\n               them\n  dewar top\n  \
                    dewar run -- make\n\nA paragraph of two lines.\n\n    long f(void);";
        assert_eq!(refolded(text, 36), want);
    }
}
