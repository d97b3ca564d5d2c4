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
    Text(String),
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
        let piece = match c {
            '\\' => {
                let escaped = chars.next().ok_or((
                    "nothing follows the `\\`",
                    "write `\\\\` for a backslash, `\\*` for a star",
                ))?;
                push_char(&mut pieces, escaped);
                continue;
            }
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
            c => {
                push_char(&mut pieces, c);
                continue;
            }
        };
        pieces.push(piece);
    }
    if depth > 0 { Err(("a `{` is not closed", "write `{a,b}`")) } else { Ok(pieces) }
}

fn push_char(pieces: &mut Vec<Piece>, c: char) {
    match pieces.last_mut() {
        Some(Piece::Text(text)) => text.push(c),
        _ => pieces.push(Piece::Text(c.into())),
    }
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
        if !low.is_ascii() || !high.is_ascii() {
            // Expressions are about bytes, of which it has several.
            return Err((
                "`[...]` holds a character beyond ASCII",
                "write `{a,é}`, or `?` for any character",
            ));
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

/// The alternatives of the brace at `start`, and the index behind its end. `lex` has made sure that
/// it has one.
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
    let bad = |(reason, help)| Problem::BadPattern { pattern: text.to_owned(), reason, help };
    let (spans, label) = substitute(pieces, variables)?;
    if !matches!(spans.first(), Some(Span::Text(text)) if text.starts_with('/')) {
        return Err(Problem::RelativePath { path: text.to_owned(), help: help_for_relative(text) });
    }
    let mut components = components(&spans).map_err(bad)?;
    if components.iter().filter(|c| **c == Component::AnyDepth).count() > MAX_ANY_DEPTH {
        return Err(bad(("more than four `**`", "name the directories in between")));
    }
    let mut below = components.iter().all(|c| matches!(c, Component::Literal(_)));
    if components.last() == Some(&Component::AnyDepth) {
        components.pop();
        components.push(Component::Glob(vec![Token::Star]));
        below = true;
    }
    Ok(Pattern::new(components, below, label))
}

/// What a piece stands for when its variable is replaced.
enum Span<'a> {
    /// Not empty.
    Text(&'a str),
    Token(Token),
    AnyDepth,
}

/// The pieces with variables replaced, and a name for people.
fn substitute<'a>(
    pieces: &'a [Piece],
    variables: &'a Variables,
) -> Result<(Vec<Span<'a>>, String), Problem> {
    let mut spans = Vec::with_capacity(pieces.len());
    let mut label = String::new();
    for piece in pieces {
        let (span, shown) = match piece {
            Piece::Text(text) => (Span::Text(text), text.as_str()),
            Piece::Variable(name) => {
                let unknown = || Problem::UnknownVariable { name: name.clone() };
                match variables.in_path(name).ok_or_else(unknown)? {
                    "" => continue,
                    value => (Span::Text(value), name.as_str()),
                }
            }
            Piece::Star => (Span::Token(Token::Star), "_any_"),
            Piece::AnyDepth => (Span::AnyDepth, "_all_"),
            Piece::Question => (Span::Token(Token::Question), "_one_"),
            Piece::Set(set) => (Span::Token(Token::Set(set.clone())), "_one_"),
            Piece::Open | Piece::Comma | Piece::Close => continue,
        };
        spans.push(span);
        label.push_str(shown);
    }
    Ok((spans, label))
}

/// What stands between the slashes of a path.
fn components(spans: &[Span<'_>]) -> Result<Vec<Component>, Bad> {
    let mut components = Vec::new();
    let mut name = Name::default();
    for span in spans {
        match span {
            Span::Text(text) => {
                let mut texts = text.split('/');
                name.push_text(texts.next().unwrap_or_default());
                for text in texts {
                    std::mem::take(&mut name).end(&mut components)?;
                    name.push_text(text);
                }
            }
            Span::Token(token) => name.push(token.clone()),
            Span::AnyDepth => name.any_depth += 1,
        }
    }
    name.end(&mut components)?;
    Ok(components)
}

/// A component that is being read: a text, or tokens from the first glob on.
#[derive(Default)]
struct Name {
    text: String,
    tokens: Vec<Token>,
    any_depth: usize,
}

impl Name {
    fn push_text(&mut self, text: &str) {
        if self.tokens.is_empty() {
            self.text.push_str(text);
        } else {
            self.tokens.extend(text.chars().map(Token::Char));
        }
    }

    fn push(&mut self, token: Token) {
        let text = std::mem::take(&mut self.text);
        self.tokens.extend(text.chars().map(Token::Char));
        self.tokens.push(token);
    }

    fn end(self, components: &mut Vec<Component>) -> Result<(), Bad> {
        const MIXED: Bad = ("`**` stands beside other characters", "write `*`, or `/**/`");
        const UNWRITABLE: Bad = (
            "it holds a control character or a double quote",
            "name the directory above it, or use `?` for that character",
        );
        let Self { text, tokens, any_depth } = self;
        if any_depth > 0 {
            if any_depth > 1 || !text.is_empty() || !tokens.is_empty() {
                return Err(MIXED);
            }
            if components.last() != Some(&Component::AnyDepth) {
                components.push(Component::AnyDepth);
            }
        } else if !text.chars().all(flask::is_quotable) || !tokens.iter().all(Token::is_quotable) {
            return Err(UNWRITABLE);
        } else if !tokens.is_empty() {
            components.push(Component::Glob(tokens));
        } else {
            match text.as_str() {
                "" | "." => {}
                ".." => return Err(("it holds `..`", "write the path without `..`")),
                _ => components.push(Component::Literal(text)),
            }
        }
        Ok(())
    }
}

impl Token {
    /// Whether a quoted string of CIL can hold it.
    fn is_quotable(&self) -> bool {
        match self {
            Self::Char(c) => flask::is_quotable(*c),
            Self::Set(set) => set
                .ranges
                .iter()
                .all(|(low, high)| flask::is_quotable(*low) && flask::is_quotable(*high)),
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
