//! Help texts fit a terminal of 100 columns, where clap wraps: what we break into lines ourselves
//! leaves it no reason to break once more.

use assert_cmd::Command;

/// The longest line that is broken by hand.
const LONGEST: usize = 96;

/// What `dewar COMMANDS --help` prints on a terminal of so many columns.
pub(crate) fn help(commands: &[String], columns: &str) -> String {
    let output = Command::new(test_support::dewar())
        .args(commands)
        .arg("--help")
        .env("COLUMNS", columns)
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{commands:?}");
    String::from_utf8(output.stdout).expect("Unicode")
}

/// The names below `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let entries = below.take_while(|line| line.starts_with(' '));
    let names = entries.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// What stands behind the options: examples and tables, whose lines are ours.
fn by_hand(help: &str) -> impl Iterator<Item = &str> {
    let options = help.lines().skip_while(|line| *line != "Options:").skip(1);
    options.skip_while(|line| line.is_empty() || line.starts_with(' '))
}

/// The words of every command, `dewar` itself first.
pub(crate) fn commands() -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let mut next = 0;
    while let Some(command) = found.get(next).cloned() {
        let below = subcommands(&help(&command, "10000"));
        found.extend(below.into_iter().map(|name| [command.clone(), vec![name]].concat()));
        next += 1;
    }
    found
}

#[test]
fn no_help_text_is_broken_into_lines_that_clap_breaks_again() {
    let mut seen = 0;
    for command in commands() {
        // So wide that nothing but our own breaks is left.
        let wide = help(&command, "10000");
        for line in by_hand(&wide) {
            let width = line.chars().count();
            assert!(width <= LONGEST, "dewar {}: {width} columns: {line}", command.join(" "));
            seen += 1;
        }
        for line in help(&command, "100").lines() {
            // clap makes that line, and leaves it whole.
            let fits = line.starts_with("Usage: ") || line.chars().count() <= 100;
            assert!(fits, "dewar {}: {line}", command.join(" "));
        }
    }
    assert!(seen > 100, "only {seen} lines found");
}

#[test]
fn what_a_term_means_stays_beside_it_on_a_terminal_of_80_columns() {
    for command in commands() {
        let text = help(&command, "80");
        for line in by_hand(&text) {
            let width = line.chars().count();
            // A word that is longer is left whole.
            let fits = width <= 80 || !line.trim_start().contains(' ');
            assert!(fits, "dewar {}: {width} columns: {line}", command.join(" "));
        }
        let usage = text.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
        assert!(usage.chars().count() <= 80, "{usage}");
    }
    let policy = help(&["run".into()], "80");
    let examples = policy.lines().skip_while(|line| *line != "Examples:").skip(1);
    for line in examples.take_while(|line| !line.is_empty()) {
        // A term, or what goes on below a meaning.
        let is_placed = line.starts_with("  dewar ") || line.starts_with("                ");
        assert!(is_placed, "{line}");
    }
}

#[test]
fn help_that_cannot_be_printed_is_an_error() {
    for option in ["--help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("it opens");
        let output = std::process::Command::new(test_support::dewar())
            .arg(option)
            .stdout(full)
            .output()
            .expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("cannot write to standard output: No space left"), "{said}");
    }
}
