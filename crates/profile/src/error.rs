//! What can be wrong with a profile, each with its place and with what to write instead.

use crate::source::{Sources, TextSpan};
use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode, SourceSpan};
use std::fmt;
use std::sync::Arc;

/// One thing that is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot read profile `{path}`: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// No shipped profile has that name.
    #[error("{}", unknown_profile(name))]
    UnknownProfile {
        /// The name asked for.
        name: String,
    },
    /// The text is not TOML.
    #[error("not valid TOML: {message}")]
    Syntax {
        /// What the parser said.
        message: String,
    },
    /// A key that no profile has at that place.
    #[error("unknown key `{key}`")]
    UnknownKey {
        /// The key with the tables that it stands in.
        key: String,
        /// The keys that it may have been meant to be.
        meant: Option<String>,
        /// The keys that this table takes.
        known: String,
    },
    /// A key with its tables, below a table that has none of these.
    #[error("`{key}` does not belong below `[{table}]`")]
    Misplaced {
        /// The key, with the tables that it names.
        key: String,
        /// The table that it stands in.
        table: String,
    },
    /// A value of another type than the key takes.
    #[error("`{key}` must be {expected}, not {found}")]
    WrongType {
        /// The key.
        key: String,
        /// What it takes.
        expected: &'static str,
        /// What stands there.
        found: &'static str,
    },
    /// A value out of its range or grammar.
    #[error("`{value}` is not {expected}")]
    BadValue {
        /// What stands there.
        value: String,
        /// What should.
        expected: &'static str,
        /// What to write instead.
        help: String,
    },
    /// A profile extends itself, by way of others or directly.
    #[error("`extends` goes in a circle: {chain}")]
    Cycle {
        /// The files, in the order of reading.
        chain: String,
    },
    /// `${NAME}` that is not defined.
    #[error("unknown variable `${{{name}}}`")]
    UnknownVariable {
        /// The name.
        name: String,
    },
    /// A path that does not start at the root.
    #[error("`{path}` is not an absolute path")]
    RelativePath {
        /// The path.
        path: String,
        /// What to write instead.
        help: String,
    },
    /// A pattern that is not well formed.
    #[error("bad pattern `{pattern}`: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong.
        reason: &'static str,
        /// What to write instead.
        help: &'static str,
    },
    /// A network rule that is not well formed.
    #[error("bad network rule `{rule}`: {reason}")]
    BadEndpoint {
        /// The rule.
        rule: String,
        /// What is wrong.
        reason: &'static str,
        /// What to write instead.
        help: String,
    },
    /// A program that enters two domains from one.
    #[error("`{program}` enters both `{first}` and `{second}` from `{from}`")]
    AmbiguousDomain {
        /// The pattern.
        program: String,
        /// One domain.
        first: String,
        /// The other.
        second: String,
        /// The domain that executes it.
        from: String,
    },
    /// More patterns of files than are compared with each other.
    #[error("more than {most} patterns of files, those included that globs have below other paths")]
    TooManyPatterns {
        /// How many there may be.
        most: usize,
    },
    /// More domains than are compared with each other.
    #[error("more than {most} domains, those of the profiles that it extends included")]
    TooManyDomains {
        /// How many there may be.
        most: usize,
    },
    /// A domain that should keep other capabilities than the base domain.
    #[error(
        "`{domain}` and the base domain keep different capabilities: only one of them has `{capability}`"
    )]
    UnequalCapabilities {
        /// The domain.
        domain: String,
        /// A capability that only one of them names.
        capability: String,
    },
}

impl Problem {
    /// A value that is none of what is `expected`.
    pub(crate) fn bad(value: &str, expected: &'static str, help: impl Into<String>) -> Self {
        Self::BadValue { value: value.to_owned(), expected, help: help.into() }
    }

    /// What to write instead, if there is something to say.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => Some(
                "name a file that can be read, or a profile of `dewar policy list`; `dewar init` writes one"
                    .to_owned(),
            ),
            Self::Syntax { .. } => None,
            Self::UnknownProfile { name } => Some(help_for_profile(name)),
            Self::UnknownKey { meant: Some(meant), .. } => Some(format!("did you mean `{meant}`?")),
            Self::UnknownKey { known, .. } => Some(format!("known here: {known}")),
            Self::Misplaced { key, table } => Some(help_for_misplaced(key, table)),
            Self::WrongType { expected, .. } => Some(format!("write {expected}")),
            Self::BadValue { help, .. }
            | Self::RelativePath { help, .. }
            | Self::BadEndpoint { help, .. } => Some(help.clone()),
            Self::Cycle { .. } => Some("take one `extends` out of the circle".to_owned()),
            Self::UnknownVariable { name } => Some(help_for_variable(name)),
            Self::BadPattern { help, .. } => Some((*help).to_owned()),
            Self::TooManyPatterns { .. } => {
                Some("name directories in the place of what lies in them, or globs with fewer `**`".to_owned())
            }
            Self::TooManyDomains { .. } => Some(
                "let programs that need the same rights enter one domain: list them in its `exec`"
                    .to_owned(),
            ),
            Self::AmbiguousDomain { .. } => {
                Some("narrow one of the two with `from = [\"DOMAIN\"]`".to_owned())
            }
            Self::UnequalCapabilities { .. } => Some(
                "a process keeps its capabilities through every exec: name the same ones at the top level and in every domain"
                    .to_owned(),
            ),
        }
    }
}

fn unknown_profile(name: &str) -> String {
    match name {
        "" => "the name of the profile is empty".to_owned(),
        name => format!("no profile is called `{name}`"),
    }
}

fn help_for_profile(name: &str) -> String {
    let names: Vec<&str> = crate::shipped().iter().map(|(name, _)| *name).collect();
    let meant = closest(name, names.iter().copied());
    let meant = meant.map_or(String::new(), |m| format!("did you mean `{m}`? "));
    let names = names.join(", ");
    let file = match name {
        "" => String::new(),
        name if name.contains(',') => {
            format!("; several are joined by `+`: `{}`", name.replace(',', "+"))
        }
        name if name.ends_with(".toml") => format!("; a file stands last: `npm+{name}`"),
        name if std::path::Path::new(name).is_file() => {
            format!("; the file here is `./{name}`")
        }
        name => format!("; for a file, write its path: `{name}.toml`"),
    };
    format!("{meant}shipped profiles are {names}{file}")
}

fn help_for_misplaced(key: &str, table: &str) -> String {
    let (own, last) = key.rsplit_once('.').unwrap_or(("", key));
    match own == table {
        true => format!("below `[{table}]` write `{last} = …`"),
        false => {
            format!("write it above the first `[…]`, or `{last} = …` in a table `[{own}]`")
        }
    }
}

fn help_for_variable(name: &str) -> String {
    let known = crate::variables::NAMES;
    match closest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `${{{meant}}}`?"),
        None => format!("variables are {}", known.map(|n| format!("${{{n}}}")).join(" ")),
    }
}

/// The candidate that `word` is most likely a misspelling of.
pub(crate) fn closest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let scored = candidates.map(|c| (strsim::damerau_levenshtein(word, c), c));
    let (distance, best) = scored.min_by_key(|(distance, _)| *distance)?;
    let is_near = distance <= 1 + best.len() / 4 && distance * 2 < word.chars().count();
    is_near.then_some(best)
}

/// A [`Problem`] and the text it lies in.
#[derive(Clone, Debug)]
pub struct ProfileError {
    /// What is wrong.
    pub problem: Problem,
    at: Option<(NamedSource<Arc<str>>, SourceSpan)>,
    line: Option<(String, usize, usize)>,
}

impl ProfileError {
    /// `problem`, found at `place` of `sources`.
    pub(crate) fn new(problem: Problem, place: Option<TextSpan>, sources: &Sources) -> Self {
        let file = place.and_then(|place| sources.get(place).map(|file| (place, file)));
        let at = file.map(|(place, file)| {
            (NamedSource::new(&file.name, Arc::clone(&file.text)), place.bytes().into())
        });
        let origin = place.and_then(|place| sources.origin(place));
        Self { problem, at, line: origin.map(|o| (o.file, o.line, o.column)) }
    }

    /// File, line and column (both from 1) of what is wrong, where it lies in a text.
    #[must_use]
    pub fn position(&self) -> Option<(&str, usize, usize)> {
        self.line.as_ref().map(|(file, line, column)| (file.as_str(), *line, *column))
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for ProfileError {}

impl Diagnostic for ProfileError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.at.as_ref().map(|(source, _)| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, span) = self.at.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(None, *span))))
    }
}

/// Everything that is wrong with a profile. Nothing of it was used.
#[derive(Debug)]
pub struct ProfileErrors {
    name: String,
    errors: Vec<ProfileError>,
}

impl ProfileErrors {
    /// The errors, at least one: those of a file in the order of its lines.
    #[must_use]
    pub fn errors(&self) -> &[ProfileError] {
        &self.errors
    }
}

impl fmt::Display for ProfileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.errors.len() == 1 { "" } else { "s" };
        write!(f, "{} has {} error{plural}", self.name, self.errors.len())
    }
}

impl std::error::Error for ProfileErrors {}

impl Diagnostic for ProfileErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.errors.iter().map(|error| error as &dyn Diagnostic)))
    }
}

/// Collects errors so that one run reports all of them.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    pub(crate) sources: Sources,
    errors: Vec<ProfileError>,
}

impl Reporter {
    /// Records a problem; loading goes on to find more, and fails in the end.
    pub(crate) fn report(&mut self, problem: Problem, place: Option<TextSpan>) {
        self.errors.push(ProfileError::new(problem, place, &self.sources));
    }

    /// The value, or `None` with its problem recorded.
    pub(crate) fn take<T>(&mut self, result: Result<T, Problem>, place: TextSpan) -> Option<T> {
        result.map_err(|problem| self.report(problem, Some(place))).ok()
    }

    /// How much was reported.
    pub(crate) fn count(&self) -> usize {
        self.errors.len()
    }

    /// Takes back what was reported behind the first `count`; whether there was any.
    pub(crate) fn retract(&mut self, count: usize) -> bool {
        let any = self.errors.len() > count;
        self.errors.truncate(count);
        any
    }

    /// Whether something was reported.
    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// What was reported, about the profile `name`.
    pub(crate) fn into_errors(self, name: String) -> ProfileErrors {
        let mut errors = self.errors;
        let file = |error: &ProfileError| error.position().map(|(file, ..)| file.to_owned());
        let files: Vec<Option<String>> = errors.iter().map(file).collect();
        errors.sort_by_key(|error| {
            let place = error.position().map(|(_, line, column)| (line, column));
            (files.iter().position(|it| *it == file(error)), place)
        });
        ProfileErrors { name, errors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_word_is_no_slip() {
        for (word, want) in
            [("npn", Some("npm")), ("worksapce", Some("workspace")), ("no", None), ("a", None)]
        {
            let known = ["go", "npm", "uv", "workspace"];
            assert_eq!(closest(word, known.into_iter()), want, "{word}");
        }
    }
}
