//! `dewar man`: manual pages, made from the same text as `--help`.

use crate::{commands, failure::Usage};
use anyhow::{Context as _, bail};
use clap::{Args, Command};
use clap_mangen::Man;
use cli::{output, output_file};
use std::{
    fmt::Write as _,
    io,
    path::{Path, PathBuf},
};

const EXAMPLES: &str = "\
Examples:
  dewar man | man -l -
  dewar man ~/.local/share/man/man1

Exit status: 0; 2 for wrong use; 125 if a page cannot be written.";

/// Print the manual page, or write all of them to a directory.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write `dewar.1` and one page for each subcommand to DIR, which is made if it is not there
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Carries out `dewar man`.
pub(crate) fn run(args: &ManArgs) -> anyhow::Result<()> {
    let mut command = commands::command().disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        let (_, page) = page(command)?;
        return Ok(output::print(page.as_bytes())?);
    };
    if let Some(name) = dir.to_str().filter(|_| !dir.exists())
        && command.find_subcommand(name).is_some()
    {
        bail!(Usage(format!(
            "`{name}` is a command, and `dewar help {name}` tells of it; write `./{name}` for a directory"
        )));
    }
    let made = output_file::make_directory(dir, &[], 0o777).and_then(|()| write(command, dir));
    made.with_context(|| format!("cannot write manual pages to `{}`", dir.display()))
}

/// Writes the pages of a command and of all below it.
fn write(command: Command, directory: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write(inner.clone(), directory)?;
    }
    let (name, page) = page(command)?;
    output_file::replace(&directory.join(name), page.as_bytes())
}

/// The page of a command, and the name of its file. What stands below the options in the help has
/// sections of its own, whose lines fit every terminal.
fn page(command: Command) -> io::Result<(String, String)> {
    let below = command.get_after_long_help().or(command.get_after_help());
    let below = sections(&below.map(ToString::to_string).unwrap_or_default());
    let none = None::<&'static str>;
    let man = Man::new(command.after_help(none).after_long_help(none))
        .source(concat!("dewar ", env!("CARGO_PKG_VERSION")))
        .manual("User commands");
    let mut page = Vec::new();
    man.render(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    // Words that are stretched and broken are hard to copy.
    let head = page.find("\n.SH").unwrap_or(page.len());
    let end = page.find("\n.SH VERSION").unwrap_or(page.len());
    let (head, rest, end) = (&page[..head], &page[head..end], &page[end..]);
    Ok((man.get_filename(), format!("{head}\n.ad l\n.nh{rest}\n{below}{}", end.trim_start())))
}

/// A help text below its options, as sections: examples and lists as terms and what they mean,
/// paragraphs filled.
fn sections(help: &str) -> String {
    let mut roff = String::new();
    let (mut in_examples, mut is_term) = (false, false);
    for paragraph in help.split("\n\n").filter(|it| !it.trim().is_empty()) {
        roff.push_str(".PP\n");
        for line in paragraph.lines() {
            let text = line.trim_start();
            let indent = line.len() - text.len();
            let (first, rest) = match text.split_once("  ") {
                Some((first, rest)) if indent == 2 => (first, rest.trim_start()),
                _ => (text, ""),
            };
            if let Some(rest) = text.strip_prefix("Exit status:") {
                heading(&mut roff, "EXIT STATUS");
                (in_examples, is_term) = (false, false);
                line_of(&mut roff, rest.trim_start());
            } else if text == "Examples:" {
                heading(&mut roff, "EXAMPLES");
                in_examples = true;
            } else if indent == 2 && !rest.is_empty() {
                let _ = write!(roff, ".TP\n\\fB{}\\fR\n{}\n", plain(first), plain(rest));
                is_term = true;
            } else if indent == 2 && in_examples {
                let _ = writeln!(roff, ".PP\n\\fB{}\\fR", plain(text));
                is_term = false;
            } else {
                // What goes on below a term belongs to it; everything else ends the list.
                if is_term && indent <= 2 {
                    roff.push_str(".PP\n");
                    is_term = false;
                }
                line_of(&mut roff, text);
            }
        }
        (in_examples, is_term) = (in_examples && is_term, false);
    }
    roff
}

/// Begins a section, in the place of a paragraph.
fn heading(roff: &mut String, title: &str) {
    if let Some(before) = roff.strip_suffix(".PP\n").map(str::len) {
        roff.truncate(before);
    }
    // Writing to a `String` cannot fail.
    let _ = writeln!(roff, ".SH {}", title.replace(' ', "\\ "));
}

fn line_of(roff: &mut String, text: &str) {
    if !text.is_empty() {
        roff.push_str(&plain(text));
        roff.push('\n');
    }
}

/// A line in which nothing is a request or an escape.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let text = text.replace('`', "\\(ga").replace('^', "\\(ha").replace('~', "\\(ti");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_terms_and_what_they_mean_and_paragraphs_are_filled() {
        let help = "Examples:\n  dewar run -- make     build it\n                        here\n  dewar ps; \
                    dewar top\n\nA word\nof warning.\n\nExit status: 0;\n2 for wrong use.";
        let want = ".SH EXAMPLES\n.TP\n\\fBdewar run \\-\\- make\\fR\nbuild it\nhere\n.PP\n\
                    \\fBdewar ps; dewar top\\fR\n.PP\nA word\nof warning.\n.SH EXIT\\ STATUS\n0;\n\
                    2 for wrong use.\n";
        assert_eq!(sections(help), want);
    }

    #[test]
    fn every_page_tells_what_the_help_tells_and_has_no_section_of_the_rest() {
        fn check(command: &Command) {
            let (name, text) = page(command.clone()).unwrap();
            let foot = concat!("\"dewar ", env!("CARGO_PKG_VERSION"), "\"");
            assert!(text.contains(foot), "{name}: {text}");
            assert!(name.ends_with(".1") && text.contains("\n.ad l\n.nh\n"), "{name}");
            assert!(!text.contains(".SH EXTRA") && !text.contains("\n.SH EXAMPLES\n\n"), "{name}");
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert_eq!(help.contains("Exit status:"), text.contains(".SH EXIT"), "{name}");
            command.get_subcommands().filter(|it| !it.is_hide_set()).for_each(check);
        }
        let mut command = commands::command().disable_help_subcommand(true);
        command.build();
        check(&command);
    }
}
