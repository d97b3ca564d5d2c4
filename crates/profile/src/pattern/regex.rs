//! The regular expression of a pattern, as `file_contexts` understands it.

use super::{Component, Token};

/// What matches the whole of every path that the components match, and with `below` of all that
/// lies below them.
pub(super) fn of(components: &[Component], below: bool) -> String {
    if components.is_empty() {
        return if below { "/.*" } else { "/" }.to_owned();
    }
    let mut out = String::new();
    let mut slash = true;
    for component in components {
        if slash {
            out.push('/');
        }
        slash = true;
        match component {
            Component::Literal(text) => text.chars().for_each(|c| push_escaped(&mut out, c)),
            Component::Glob(tokens) => tokens.iter().for_each(|t| push_token(&mut out, t)),
            Component::AnyDepth => {
                out.push_str("(.*/)?");
                slash = false;
            }
        }
    }
    if below {
        out.push_str("(/.*)?");
    }
    out
}

/// The bytes of a character behind its first. Expressions are about bytes, as names are.
const REST: &str = r"[\x80-\xbf]*";

fn push_token(out: &mut String, token: &Token) {
    match token {
        Token::Char(c) => push_escaped(out, *c),
        Token::Star => out.push_str("[^/]*"),
        Token::Question => {
            out.push_str("[^/]");
            out.push_str(REST);
        }
        Token::Set(set) => {
            out.push_str(if set.negated { "[^/" } else { "[" });
            for (low, high) in &set.ranges {
                push_in_set(out, *low);
                if high > low {
                    out.push('-');
                    push_in_set(out, *high);
                }
            }
            out.push(']');
            if set.negated {
                out.push_str(REST);
            }
        }
    }
}

fn push_escaped(out: &mut String, c: char) {
    if matches!(
        c,
        '.' | '^' | '$' | '?' | '*' | '+' | '|' | '[' | ']' | '(' | ')' | '{' | '}' | '\\'
    ) {
        out.push('\\');
    }
    out.push(c);
}

fn push_in_set(out: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}
