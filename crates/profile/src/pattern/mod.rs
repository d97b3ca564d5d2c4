//! Path patterns: `/usr`, `${home}/.ssh`, `${workspace}/**/*.key`.
//!
//! A pattern is a list of components. One without globs takes the path and everything below it; one
//! with globs takes what it matches, and what lies below only when it ends in `/**`.

mod common;
mod parse;
mod regex;
mod text;

pub(crate) use common::{Entangled, Steps};
pub(crate) use parse::parse;

use std::{ops::Deref, path::Path, sync::Arc};

/// A set of absolute paths. Two patterns are equal when their regular expressions are. Cloning one
/// shares its parts.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Arc<Parts>);

/// What a pattern consists of.
#[derive(Debug)]
pub(crate) struct Parts {
    components: Vec<Component>,
    below: bool,
    regex: String,
    /// What every path of it starts with: the text before the first glob.
    stem: String,
    /// Its length in characters.
    stem_chars: usize,
    label: String,
}

/// What stands between two slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Component {
    Literal(String),
    Glob(Vec<Token>),
    /// `**`: any number of components, also none. Never the last.
    AnyDepth,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Char(char),
    Star,
    Question,
    Set(CharSet),
}

/// `[a-z]`, `[!a-z]`. A slash is never in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CharSet {
    pub(super) negated: bool,
    pub(super) ranges: Vec<(char, char)>,
}

impl Deref for Pattern {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex == other.regex
    }
}

impl std::fmt::Display for Pattern {
    /// The path, or the pattern as a profile writes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.literal().unwrap_or_else(|| self.glob()))
    }
}

impl Pattern {
    fn new(components: Vec<Component>, below: bool, label: String) -> Self {
        let stem = stem(&components);
        let stem_chars = stem.chars().count();
        let regex = regex::of(&components, below);
        Self(Arc::new(Parts { components, below, regex, stem, stem_chars, label }))
    }

    /// The same pattern, which also takes everything below what it matches.
    pub(crate) fn with_everything_below(self) -> Self {
        if self.below { self } else { self.with_below(true) }
    }

    /// The same pattern, without what lies below what it matches.
    pub(crate) fn with_nothing_below(self) -> Self {
        if self.below { self.with_below(false) } else { self }
    }

    fn with_below(&self, below: bool) -> Self {
        Self::new(self.components.clone(), below, self.label.clone())
    }

    /// The path itself, and nothing below it.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let names = path.to_str()?.split('/').filter(|name| !name.is_empty());
        let components = names.map(|name| Component::Literal(name.to_owned())).collect();
        Some(Self::new(components, false, path.to_str()?.trim_start_matches('/').to_owned()))
    }

    /// What matches below `to` what this one matches at or below `from`: both are paths.
    pub(crate) fn moved(&self, from: &Self, to: &Self) -> Result<Vec<Self>, Entangled> {
        let common = self.common(&from.clone().with_everything_below())?;
        let moved = common.iter().map(|pattern| {
            let rest = &pattern.components[from.components.len()..];
            let labels = to.components.iter().chain(rest).map(Component::label);
            let label = labels.collect::<Vec<_>>().join("/");
            Self::new([&*to.components, rest].concat(), pattern.below, label)
        });
        Ok(moved.collect())
    }

    /// Every directory that all of its paths lie below, with nothing below it, outermost first.
    pub(crate) fn above(&self) -> impl Iterator<Item = Self> {
        let count = self.literal_components().min(self.components.len().saturating_sub(1));
        (1..=count).map(|count| {
            let components = self.components[..count].to_vec();
            let label: Vec<String> = components.iter().map(Component::label).collect();
            Self::new(components, false, label.join("/"))
        })
    }

    /// Whether it may cover a directory that all paths of `other` lie below. Says yes when in
    /// doubt.
    pub(crate) fn may_lie_around(&self, other: &Self) -> bool {
        other.stem.starts_with(&self.stem)
    }

    /// A regular expression over whole paths.
    pub(crate) fn regex(&self) -> &str {
        &self.regex
    }

    /// How many characters stand before the first special one: the longer, the more specific.
    pub(crate) fn stem(&self) -> usize {
        self.stem_chars
    }

    /// A name for people, not unique.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The path, if there is no glob in it.
    pub(crate) fn literal(&self) -> Option<String> {
        let parts = self.components.iter().map(|c| match c {
            Component::Literal(text) => Some(text.as_str()),
            _ => None,
        });
        let parts = parts.collect::<Option<Vec<&str>>>()?;
        Some(format!("/{}", parts.join("/")))
    }

    /// The path before the first glob in it.
    pub(crate) fn literal_start(&self) -> String {
        let texts = self.components.iter().map_while(|component| match component {
            Component::Literal(text) => Some(text.as_str()),
            _ => None,
        });
        format!("/{}", texts.collect::<Vec<_>>().join("/"))
    }

    /// The part of it that is a path without globs, with nothing below it.
    pub(crate) fn top(&self) -> Self {
        let components = self.components[..self.literal_components()].to_vec();
        Self::new(components, false, self.label.clone())
    }

    /// Whether a glob stands in it.
    pub(crate) fn is_glob(&self) -> bool {
        self.literal_components() < self.components.len()
    }

    /// Whether some paths of `self`, but not all of `other`'s, may have labels by `other`: it is as
    /// specific, or more so. A path without globs has all below it, or shares nothing with what is
    /// more specific, nor with another path.
    pub(crate) fn may_lose(&self, other: &Self) -> bool {
        let is_tie = self.stem_chars == other.stem_chars;
        let can = if self.is_glob() { self.stem_chars <= other.stem_chars } else { is_tie };
        can && (!is_tie || self.is_glob() || other.is_glob())
            && other.stem.starts_with(&self.stem)
            && !self.covers(other)
    }

    /// Whether every path of `other` is one of `self`. Says no when in doubt.
    #[inline]
    pub(crate) fn covers(&self, other: &Self) -> bool {
        // Most stems already differ in the byte that ends the shorter one, which is looked at
        // sooner than all are compared.
        let last = self.stem.len() - 1;
        other.stem.as_bytes().get(last) == Some(&self.stem.as_bytes()[last])
            && other.stem.starts_with(&self.stem)
            && self.covers_components(other)
    }

    fn covers_components(&self, other: &Self) -> bool {
        let (a, b) = (&self.components, &other.components);
        let at_end = |i: usize, j: usize| match (i == a.len(), j == b.len()) {
            (true, true) => self.below || !other.below,
            (true, false) => self.below,
            _ => false,
        };
        // reach[j]: whether a[i..] covers b[j..], for the i at hand; rows from the last i upwards.
        let mut reach: Vec<bool> = (0..=b.len()).map(|j| at_end(a.len(), j)).collect();
        for component in a.iter().rev() {
            let mut row = vec![false; b.len() + 1];
            row[b.len()] = *component == Component::AnyDepth && reach[b.len()];
            for j in (0..b.len()).rev() {
                row[j] = match component {
                    Component::AnyDepth => reach[j] || row[j + 1],
                    one => one.covers(&b[j]) && reach[j + 1],
                };
            }
            reach = row;
        }
        reach[0]
    }

    /// What `self`, a glob, still matches of what `other` does: patterns as specific as `other`,
    /// for which `self` would lose against `other` otherwise.
    ///
    /// # Errors
    ///
    /// That cannot be said within what is left of `steps`.
    pub(crate) fn residuals(
        &self,
        other: &Self,
        steps: &mut Steps,
    ) -> Result<Vec<Self>, Entangled> {
        if other.is_glob() { self.common_in(other, steps) } else { Ok(self.below(other)) }
    }

    /// What `self` still matches below the path `other`.
    fn below(&self, other: &Self) -> Vec<Self> {
        let prefix = &other.components[..other.literal_components()];
        let mut positions = vec![0usize];
        for component in prefix {
            positions = self.step(&positions, component);
        }
        let rests = positions.into_iter().filter(|at| *at < self.components.len());
        rests.map(|at| self.residual(other, prefix, at)).collect()
    }

    /// The positions in `self.components` after one more component, from any of `positions`.
    fn step(&self, positions: &[usize], component: &Component) -> Vec<usize> {
        let mut next: Vec<usize> = Vec::new();
        let mut add = |at: usize| {
            if !next.contains(&at) {
                next.push(at);
            }
        };
        for &at in positions {
            match self.components.get(at) {
                Some(Component::AnyDepth) => {
                    add(at);
                    if self.components.get(at + 1).is_some_and(|c| c.covers(component)) {
                        add(at + 2);
                    }
                }
                Some(one) if one.covers(component) => add(at + 1),
                _ => {}
            }
        }
        next
    }

    fn residual(&self, other: &Self, prefix: &[Component], at: usize) -> Self {
        let rest = &self.components[at..];
        let rest_label: Vec<String> = rest.iter().map(Component::label).collect();
        let label = format!("{}/{}", other.label, rest_label.join("/"));
        Self::new([prefix, rest].concat(), self.below, label)
    }

    fn literal_components(&self) -> usize {
        self.components.iter().take_while(|c| matches!(c, Component::Literal(_))).count()
    }
}

impl Component {
    /// Whether every name that `other` matches is one of `self`. `**` is covered by nothing here.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Literal(a), Self::Literal(b)) => a == b,
            (Self::Glob(a), Self::Literal(b)) => {
                glob_covers(a, &b.chars().map(Token::Char).collect::<Vec<_>>())
            }
            (Self::Glob(a), Self::Glob(b)) => glob_covers(a, b),
            _ => false,
        }
    }

    fn label(&self) -> String {
        let glob = |token: &Token| match token {
            Token::Char(c) => c.to_string(),
            Token::Star => "_any_".to_owned(),
            Token::Question | Token::Set(_) => "_one_".to_owned(),
        };
        match self {
            Self::Literal(text) => text.clone(),
            Self::Glob(tokens) => tokens.iter().map(glob).collect(),
            Self::AnyDepth => "all".to_owned(),
        }
    }
}

/// Matches the tokens of one glob as if those of the other were characters: the usual two-pointer
/// match, which falls back to the last star.
fn glob_covers(a: &[Token], b: &[Token]) -> bool {
    let (mut i, mut j) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while j < b.len() {
        if a.get(i) == Some(&Token::Star) {
            star = Some((i, j));
            i += 1;
        } else if a.get(i).is_some_and(|token| token.covers(&b[j])) {
            i += 1;
            j += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (i, j) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    a[i..].iter().all(|token| *token == Token::Star)
}

impl Token {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Question, other) => *other != Self::Star,
            (Self::Set(set), Self::Char(c)) => set.contains(*c),
            (a, b) => a == b,
        }
    }
}

impl CharSet {
    fn contains(&self, c: char) -> bool {
        c != '/'
            && self.negated != self.ranges.iter().any(|(low, high)| (*low..=*high).contains(&c))
    }
}

fn stem(components: &[Component]) -> String {
    let mut stem = String::new();
    for component in components {
        stem.push('/');
        match component {
            Component::Literal(text) => stem.push_str(text),
            Component::Glob(tokens) => {
                let literal = tokens.iter().map_while(|token| match token {
                    Token::Char(c) => Some(*c),
                    _ => None,
                });
                stem.extend(literal);
                return stem;
            }
            Component::AnyDepth => return stem,
        }
    }
    if stem.is_empty() { "/".to_owned() } else { stem }
}
