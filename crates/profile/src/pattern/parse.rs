//! Reads a pattern: variables, braces, globs.

use super::{CharSet, Component, Pattern, Token};
use crate::error::Problem;
use crate::variables::Variables;

/// How many patterns one string may stand for.
const MAX_ALTERNATIVES: usize = 256;

/// How many `**` a pattern may hold.
const MAX_ANY_DEPTH: usize = 4;

#[derive(Clone, Debug)]
enum Piece {
    Char(char),
    Variable(String),
    Star,
    AnyDepth,
    Question,
    Set(CharSet),
    Open,
    Comma,
    Close,
}

/// The patterns that `text` stands for: one, or one for each of the alternatives in braces.
pub(crate) fn parse(text: &str, variables: &Variables) -> Result<Vec<Pattern>, Problem> {
    let bad = |(reason, help)| Problem::BadPattern { pattern: text.to_owned(), reason, help };
    let pieces = lex(text).map_err(bad)?;
    let alternatives = expand(pieces).map_err(bad)?;
    alternatives.iter().map(|pieces| to_pattern(text, pieces, variables)).collect()
}

/// What is wrong, and what to write instead.
type Bad = (&'static str, &'static str);

fn lex(text: &str) -> Result<Vec<Piece>, Bad> {
    let mut pieces = Vec::new();
    let mut depth = 0usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            '\\' => Piece::Char(chars.next().ok_or((
                "nothing follows the `\\`",
                "write `\\\\` for a backslash, `\\*` for a star",
            ))?),
            '$' if chars.next_if_eq(&'{').is_some() => Piece::Variable(variable(&mut chars)?),
            '*' if chars.next_if_eq(&'*').is_some() => Piece::AnyDepth,
            '*' => Piece::Star,
            '?' => Piece::Question,
            '[' => Piece::Set(set(&mut chars)?),
            '{' => {
                depth += 1;
                Piece::Open
            }
            ',' if depth > 0 => Piece::Comma,
            '}' if depth > 0 => {
                depth -= 1;
                Piece::Close
            }
            c => Piece::Char(c),
        });
    }
    if depth > 0 { Err(("a `{` is not closed", "write `{a,b}`")) } else { Ok(pieces) }
}

fn variable(chars: &mut impl Iterator<Item = char>) -> Result<String, Bad> {
    let mut name = String::new();
    loop {
        match chars.next() {
            Some('}') => return Ok(name),
            Some(c) => name.push(c),
            None => return Err(("a `${` is not closed", "write `${workspace}`")),
        }
    }
}

fn set(chars: &mut impl Iterator<Item = char>) -> Result<CharSet, Bad> {
    const OPEN: Bad = ("a `[` is not closed", "write `[a-z]`, or `\\[` for the character");
    let mut chars = chars.peekable();
    let negated = chars.next_if(|c| matches!(c, '!' | '^')).is_some();
    let mut ranges = Vec::new();
    loop {
        let low = chars.next().ok_or(OPEN)?;
        if low == ']' && !ranges.is_empty() {
            return Ok(CharSet { negated, ranges });
        }
        if low == '/' {
            return Err(("`[...]` cannot hold a `/`", "put the `/` outside of the brackets"));
        }
        let mut high = low;
        if chars.next_if_eq(&'-').is_some() {
            if chars.next_if_eq(&']').is_some() {
                ranges.extend([(low, low), ('-', '-')]);
                return Ok(CharSet { negated, ranges });
            }
            high = chars.next().ok_or(OPEN)?;
        }
        if high < low || (low < '/' && high >= '/' && !negated) {
            return Err(("the range is empty or holds `/`", "write `[a-z]`: lower end first"));
        }
        ranges.push((low, high));
    }
}

/// Resolves braces, the leftmost first, without recursion.
fn expand(pieces: Vec<Piece>) -> Result<Vec<Vec<Piece>>, Bad> {
    const MANY: Bad = ("the braces stand for too many patterns", "write at most 256 alternatives");
    let mut done = Vec::new();
    let mut open = vec![pieces];
    while let Some(pieces) = open.pop() {
        if done.len() + open.len() >= MAX_ALTERNATIVES {
            return Err(MANY);
        }
        let Some(start) = pieces.iter().position(|p| matches!(p, Piece::Open)) else {
            done.push(pieces);
            continue;
        };
        let (alternatives, end) = alternatives(&pieces, start);
        for alternative in alternatives.into_iter().rev() {
            open.push([&pieces[..start], alternative, &pieces[end..]].concat());
        }
    }
    Ok(done)
}

/// The alternatives of the brace at `start`, and the index behind its end. `lex` has made sure that it has one.
fn alternatives(pieces: &[Piece], start: usize) -> (Vec<&[Piece]>, usize) {
    let mut found = Vec::new();
    let mut from = start + 1;
    let mut depth = 0usize;
    for (index, piece) in pieces.iter().enumerate().skip(start) {
        match piece {
            Piece::Open => depth += 1,
            Piece::Comma if depth == 1 => {
                found.push(&pieces[from..index]);
                from = index + 1;
            }
            Piece::Close => {
                depth -= 1;
                if depth == 0 {
                    found.push(&pieces[from..index]);
                    return (found, index + 1);
                }
            }
            _ => {}
        }
    }
    (found, pieces.len())
}

fn to_pattern(text: &str, pieces: &[Piece], variables: &Variables) -> Result<Pattern, Problem> {
    let bad = |reason, help| Problem::BadPattern { pattern: text.to_owned(), reason, help };
    let (tokens, label) = substitute(pieces, variables)?;
    if !matches!(tokens.first(), Some(Some(Token::Char('/')))) {
        return Err(Problem::RelativePath { path: text.to_owned(), help: help_for_relative(text) });
    }
    let mut components = Vec::new();
    for part in tokens.split(|token| matches!(token, Some(Token::Char('/')))) {
        match component(part) {
            Ok(Some(Component::AnyDepth)) if components.last() == Some(&Component::AnyDepth) => {}
            Ok(Some(component)) => components.push(component),
            Ok(None) => {}
            Err((reason, help)) => return Err(bad(reason, help)),
        }
    }
    if components.iter().filter(|c| **c == Component::AnyDepth).count() > MAX_ANY_DEPTH {
        return Err(bad("more than four `**`", "name the directories in between"));
    }
    let mut below = components.iter().all(|c| matches!(c, Component::Literal(_)));
    if components.last() == Some(&Component::AnyDepth) {
        components.pop();
        components.push(Component::Glob(vec![Token::Star]));
        below = true;
    }
    Ok(Pattern::new(components, below, label))
}

/// The tokens with variables replaced (`None` stands for `**`), and a name for people.
fn substitute(
    pieces: &[Piece],
    variables: &Variables,
) -> Result<(Vec<Option<Token>>, String), Problem> {
    let mut tokens = Vec::new();
    let mut label = String::new();
    for piece in pieces {
        match piece {
            Piece::Char(c) => {
                tokens.push(Some(Token::Char(*c)));
                label.push(*c);
            }
            Piece::Variable(name) => {
                let unknown = || Problem::UnknownVariable { name: name.clone() };
                let value = variables.in_path(name).ok_or_else(unknown)?;
                tokens.extend(value.chars().map(|c| Some(Token::Char(c))));
                label.push_str(name);
            }
            Piece::Star => {
                tokens.push(Some(Token::Star));
                label.push_str("_any_");
            }
            Piece::AnyDepth => {
                tokens.push(None);
                label.push_str("_all_");
            }
            Piece::Question | Piece::Set(_) => {
                tokens.push(Some(match piece {
                    Piece::Set(set) => Token::Set(set.clone()),
                    _ => Token::Question,
                }));
                label.push_str("_one_");
            }
            Piece::Open | Piece::Comma | Piece::Close => {}
        }
    }
    Ok((tokens, label))
}

fn component(part: &[Option<Token>]) -> Result<Option<Component>, Bad> {
    const MIXED: Bad = ("`**` stands beside other characters", "write `*`, or `/**/`");
    const UNWRITABLE: Bad = (
        "it holds a control character or a double quote",
        "name the directory above it, or use `?` for that character",
    );
    if part.iter().any(Option::is_none) {
        return if part.len() == 1 { Ok(Some(Component::AnyDepth)) } else { Err(MIXED) };
    }
    let tokens = || part.iter().flatten();
    if !tokens().all(Token::is_writable) {
        return Err(UNWRITABLE);
    }
    let chars = tokens().map(|token| match token {
        Token::Char(c) => Some(*c),
        _ => None,
    });
    let Some(literal) = chars.collect::<Option<String>>() else {
        return Ok(Some(Component::Glob(tokens().cloned().collect())));
    };
    match literal.as_str() {
        "" | "." => Ok(None),
        ".." => Err(("it holds `..`", "write the path without `..`")),
        _ => Ok(Some(Component::Literal(literal))),
    }
}

impl Token {
    /// Whether a quoted string of CIL can hold it.
    fn is_writable(&self) -> bool {
        let writable = |c: char| !c.is_control() && c != '"';
        match self {
            Self::Char(c) => writable(*c),
            Self::Set(set) => {
                set.ranges.iter().all(|(low, high)| writable(*low) && writable(*high))
            }
            Self::Star | Self::Question => true,
        }
    }
}

fn help_for_relative(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("~/").or_else(|| text.strip_prefix("$HOME/")) {
        return format!("write `${{home}}/{rest}`");
    }
    match text {
        "~" | "$HOME" => "write `${home}`".to_owned(),
        "" | "." | "./" => "write `${workspace}`".to_owned(),
        _ => {
            let rest = text.strip_prefix("./").unwrap_or(text);
            format!("write `${{workspace}}/{rest}`, or start the path with `/`")
        }
    }
}
