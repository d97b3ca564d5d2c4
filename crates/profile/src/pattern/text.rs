//! A pattern as a profile writes it.

use super::{CharSet, Component, Pattern, Token};

impl Pattern {
    /// What stands for it in a profile.
    pub(crate) fn glob(&self) -> String {
        let mut text = String::new();
        for (at, component) in self.components.iter().enumerate() {
            text.push('/');
            let is_last = at + 1 == self.components.len();
            match component {
                Component::Glob(tokens) if is_last && self.below && tokens[..] == [Token::Star] => {
                    text.push_str("**");
                }
                Component::Literal(name) => name.chars().for_each(|c| push(&mut text, c)),
                Component::Glob(tokens) => tokens.iter().for_each(|it| push_token(&mut text, it)),
                Component::AnyDepth => text.push_str("**"),
            }
        }
        text
    }
}

fn push(text: &mut String, c: char) {
    if "*?[{}\\".contains(c) {
        text.push('\\');
    }
    text.push(c);
}

fn push_token(text: &mut String, token: &Token) {
    match token {
        Token::Char(c) => push(text, *c),
        Token::Star => text.push('*'),
        Token::Question => text.push('?'),
        Token::Set(CharSet { negated, ranges }) => {
            text.push_str(if *negated { "[!" } else { "[" });
            for &(first, last) in ranges {
                text.push(first);
                if first != last {
                    text.extend(['-', last]);
                }
            }
            text.push(']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variables::Variables;

    #[test]
    fn a_set_beyond_ascii_is_refused_with_a_reason() {
        for text in ["/a[é]", "/a[!é]", "/a[a-é]"] {
            let error = crate::pattern::parse(text, &Variables::default()).unwrap_err();
            assert!(format!("{error:?}").contains("beyond ASCII"), "{error:?}");
        }
    }

    #[test]
    fn a_pattern_is_written_as_it_was_read() {
        for text in ["/a", "/a/b*", "/a/**", "/a/*/x?", "/a/[a-cx]*/**/*.txt", "/a/[!b]", "/a/\\*b"]
        {
            let patterns = crate::pattern::parse(text, &Variables::default()).unwrap();
            let globs: Vec<String> = patterns.iter().map(Pattern::glob).collect();
            assert_eq!(globs, [text]);
        }
    }
}
