//! The literal beginnings of the expressions of labelling rules.

use crate::names::NameRule;
use std::path::PathBuf;

/// One literal path of a labelling rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The path itself.
    pub path: PathBuf,
    /// The rule covers everything below, too.
    pub deep: bool,
}

/// The literal path that a rule's regular expression stands for: `/a/b` or `/a/b(/.*)?`, with `\`
/// before special characters.
pub fn literal(regex: &str) -> Option<Tree> {
    let (stem, deep) = match regex.strip_suffix("(/.*)?") {
        Some(stem) => (stem, true),
        None if regex == "/.*" => ("/", true),
        None => (regex, false),
    };
    let mut path = String::new();
    let mut chars = stem.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => path.push(chars.next().filter(|c| !c.is_alphanumeric())?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => {
                return None;
            }
            c => path.push(c),
        }
    }
    let path = if path.is_empty() { "/".into() } else { path };
    Some(Tree { path: path.into(), deep })
}

/// The part of a regular expression before its first special character, without the `\` of escaped
/// ones; and where in the expression each `/` of it ends, beside where it ends in that part.
fn stem_and_slashes(regex: &str) -> (String, Vec<(usize, usize)>) {
    let (mut stem, mut slashes) = (String::new(), Vec::new());
    let mut chars = regex.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, escaped)) if !escaped.is_alphanumeric() => stem.push(escaped),
                _ => break,
            },
            '*' | '?' | '{' => {
                // What they repeat is not sure to be there.
                stem.pop();
                slashes.retain(|(_, end)| *end <= stem.len());
                break;
            }
            c if ".+()[]}|^$".contains(c) => break,
            c => stem.push(c),
        }
        if c == '/' {
            slashes.push((at + 1, stem.len()));
        }
    }
    (stem, slashes)
}

/// The literal part alone: of two rules that match, the one with the longer counts.
pub(crate) fn stem(regex: &str) -> String {
    stem_and_slashes(regex).0
}

/// The directory that everything which a rule can match lies in or below.
pub fn stem_dir(regex: &str) -> PathBuf {
    split_at_stem_dir(regex).0
}

/// The same, and what the expression says behind it; all of it for a [`NameRule`].
pub(crate) fn split_at_stem_dir(regex: &str) -> (PathBuf, &str) {
    if let Some(base) = NameRule::base(regex) {
        return (top(base), regex);
    }
    let (stem, slashes) = stem_and_slashes(regex);
    match slashes.last() {
        Some((at, end)) => (PathBuf::from(&stem[..*end]), &regex[*at..]),
        None => (PathBuf::from("/"), regex),
    }
}

/// The path that a rule names as far as it names one: names in it are the rule's own.
pub(crate) fn top(regex: &str) -> PathBuf {
    literal(regex).map_or_else(|| stem_dir(regex), |tree| tree.path)
}
