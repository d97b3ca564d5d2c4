//! Comments for the sample application.

use crate::random::Random;

const DOES: [&str; 8] =
    ["Keeps", "Walks over", "Orders", "Reads", "Collects", "Compares", "Looks up", "Adds up"];
const WHAT: [&str; 8] = [
    "the entries",
    "the rows of a table",
    "numbers",
    "short words",
    "all values",
    "its members",
    "the nodes",
    "what was read",
];
const HOW: [&str; 8] = [
    "one after the other",
    "from the first to the last",
    "until none is left",
    "by their keys",
    "before they are used",
    "without copies",
    "in place",
    "twice at most",
];
const WORDS: [&str; 24] = [
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi",
    "psi", "omega",
];

/// A block comment of exactly `lines` lines, about `width` characters wide; fewer than three are
/// blank lines.
pub(super) fn comment(random: &mut Random, lines: usize, width: usize) -> String {
    if lines < 3 {
        return "\n".repeat(lines);
    }
    let text: String =
        (0..lines - 2).map(|_| format!(" * {}\n", sentence(random, width))).collect();
    format!("/*\n{text} */\n")
}

/// As many whole sentences as fill about `width` characters, cut off there.
fn sentence(random: &mut Random, width: usize) -> String {
    let mut line = String::new();
    while line.len() + 3 < width {
        let separator = if line.is_empty() { "" } else { " " };
        let (does, what, how) = (random.pick(&DOES), random.pick(&WHAT), random.pick(&HOW));
        line += &format!("{separator}{does} {what} {how}.");
    }
    match line[..width.min(line.len())].rfind(' ') {
        Some(end) if line.len() > width => line[..end].to_owned(),
        _ => line,
    }
}

/// A line of words for string literals, at most `width` characters.
pub(super) fn words(random: &mut Random, width: usize, between: &str) -> String {
    let mut line = random.pick(&WORDS).to_owned();
    loop {
        let word = random.pick(&WORDS);
        if line.len() + between.len() + word.len() > width {
            return line;
        }
        line.push_str(between);
        line.push_str(word);
    }
}
