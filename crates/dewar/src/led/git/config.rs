//! The text of Git's configuration, read sign by sign as Git reads it (`config.c`): a backslash at
//! the end of a line goes on in a value, and not in a comment.
//!
//! Where Git gives a file up as broken, this reads on: another version of it may have more to say.

use std::{iter::Peekable, str::Chars};

/// A variable of a configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// In small letters, without what stands in quotes behind it.
    pub(super) section: String,
    /// In small letters.
    pub(super) key: String,
    pub(super) value: String,
}

/// The variables of a configuration.
pub(super) fn entries(text: &str) -> Vec<Entry> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let (mut entries, mut section, mut chars) =
        (Vec::new(), String::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            _ if is_space(c) => {}
            '#' | ';' => skip_line(&mut chars),
            '[' => section = header(&mut chars),
            _ => {
                let mut key = c.to_ascii_lowercase().to_string();
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                    key.push(c.to_ascii_lowercase());
                }
                while chars.next_if(|c| [' ', '\t'].contains(c)).is_some() {}
                match chars.next_if_eq(&'=') {
                    Some(_) => {
                        let value = value(&mut chars);
                        entries.push(Entry { section: section.clone(), key, value });
                    }
                    None => skip_line(&mut chars),
                }
            }
        }
    }
    entries
}

/// What is white to Git.
fn is_space(c: char) -> bool {
    [' ', '\t', '\n', '\r'].contains(&c)
}

fn skip_line(chars: &mut Peekable<Chars<'_>>) {
    chars.find(|c| *c == '\n');
}

/// The name of a section behind `[`, up to what stands in quotes. A bracket in quotes ends nothing.
fn header(chars: &mut Peekable<Chars<'_>>) -> String {
    let (mut name, mut quoted) = (String::new(), false);
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            ']' if !quoted => break,
            '\\' if quoted => drop(chars.next_if(|c| *c != '\n')),
            '"' => quoted = !quoted,
            _ if !quoted => name.push(c.to_ascii_lowercase()),
            _ => {}
        }
    }
    name.split([' ', '\t', '.']).next().unwrap_or_default().to_owned()
}

/// What stands behind `=`, without its quotes and comments, up to the end of the line.
fn value(chars: &mut Peekable<Chars<'_>>) -> String {
    let (mut value, mut quoted) = (String::new(), false);
    // White signs are part of it only if something follows.
    let mut end = 0;
    while let Some(c) = chars.next() {
        match c {
            '\n' => break,
            ' ' | '\t' | '\r' if !quoted => {
                if !value.is_empty() {
                    value.push(c);
                }
                continue;
            }
            '#' | ';' if !quoted => {
                skip_line(chars);
                break;
            }
            '"' => quoted = !quoted,
            '\\' => match chars.next() {
                Some('\n') | None => continue,
                Some('t') => value.push('\t'),
                Some('n') => value.push('\n'),
                Some('b') => value.push('\u{8}'),
                Some(c) => value.push(c),
            },
            c => value.push(c),
        }
        end = value.len();
    }
    value.truncate(end);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(section: &str, key: &str, value: &str) -> Entry {
        Entry { section: section.into(), key: key.into(), value: value.into() }
    }

    #[test]
    fn a_configuration_is_read_as_git_does() {
        let text = "[core]\n\tHooksPath = \"my hooks\" ; mine\n[include] path=../a\n\
            [includeIf \"gitdir:~/w]/\"]\n  path = b\\\n/c # x\n[hook \"lint\"]\nevent = pre-commit\n\
            command = ./lint --fast\n[hook.old]\ncommand = x\n# path = y\n";
        let want = [
            entry("core", "hookspath", "my hooks"),
            entry("include", "path", "../a"),
            entry("includeif", "path", "b/c"),
            entry("hook", "event", "pre-commit"),
            entry("hook", "command", "./lint --fast"),
            entry("hook", "command", "x"),
        ];
        assert_eq!(entries(text), want);
    }

    #[test]
    fn a_comment_hides_nothing_of_the_next_line() {
        for comment in ["# x \\", "; in C:\\tools\\", "bare = a ; b \\", "bare # \\", "[core] # \\"]
        {
            for end in ["\n", "\r\n"] {
                let text = format!("[core]{end}\t{comment}{end}\thooksPath = tools{end}");
                let want = entry("core", "hookspath", "tools");
                assert_eq!(entries(&text).last(), Some(&want), "{comment}");
            }
        }
    }

    #[test]
    fn values_are_those_of_git() {
        for (text, want) in [
            ("a\\\n  b", "a  b"),
            ("  a  b  ; c", "a  b"),
            ("\"a ; b\"\" \" # c", "a ; b "),
            ("a\\\\b\\\"c\\n", "a\\b\"c\n"),
            ("\"a\\\n b\" ", "a b"),
            ("a\\", "a"),
            ("", ""),
        ] {
            let found = entries(&format!("[core]\nhooksPath={text}\n"));
            assert_eq!(found, [entry("core", "hookspath", want)], "{text}");
        }
        // What Git takes for broken hides nothing either.
        let text = "[core\n= x\nkey\n\u{e9} = y\n[core]\nhooksPath = tools";
        assert_eq!(entries(text).last(), Some(&entry("core", "hookspath", "tools")));
    }
}
