//! Which parts of a file's name are another each time.

use crate::literal;
use std::path::Path;

/// A component with `*` for numbers, dates, versions and random letters; `None` without any.
pub(crate) fn varied(name: &str) -> Option<String> {
    if name.bytes().all(|b| b.is_ascii_digit()) {
        return Some("*".into());
    }
    if let Some(glob) = temporary(name) {
        return Some(glob);
    }
    let words: Vec<&str> = split(name);
    let mut out = String::new();
    let mut has_glob = false;
    let mut at = 0;
    while at < words.len() {
        let run = numbers(&words[at..]);
        // `*-*` is `*`: what lies between two that vary, varies.
        let end = out.trim_end_matches(is_separator).len();
        let follows = end < out.len() && out[..end].ends_with('*');
        let is_last = at > 0 && at + 1 == words.len();
        let is_random = is_random(words[at])
            || follows && goes_on(words[at])
            || is_last && words[0] == "tmp" && is_six_letters(words[at]);
        if run > 1 || is_random || is_long_number(words[at]) {
            at += run.max(1);
            has_glob = true;
            if follows {
                out.truncate(end);
            } else {
                out.push('*');
            }
        } else {
            out.push_str(&literal(words[at]));
            at += 1;
        }
    }
    has_glob.then_some(out)
}

fn is_separator(c: char) -> bool {
    ".-_@+,=~:#".contains(c)
}

/// Words and single separators, in their order.
fn split(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = match is_separator(first) {
            true => first.len_utf8(),
            false => rest.find(is_separator).unwrap_or(rest.len()),
        };
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words
}

/// How many words from here make up a version or a date: numbers with separators between them.
fn numbers(words: &[&str]) -> usize {
    let is_number = |word: &str| {
        let digits = word.strip_prefix('v').unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    if !words.first().is_some_and(|word| is_number(word)) {
        return 0;
    }
    let mut end = 1;
    while words.len() > end + 1 && words[end].len() == 1 && is_number(words[end + 1]) {
        end += 2;
    }
    end
}

fn is_long_number(word: &str) -> bool {
    word.len() >= 4 && word.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a word, behind one that varies, is a further part of a date or a UUID.
fn goes_on(word: &str) -> bool {
    let is_hex = word.bytes().all(|b| b.is_ascii_hexdigit());
    word.starts_with(|c: char| c.is_ascii_digit()) || (word.len() == 4 && is_hex)
}

/// Whether nobody would choose such a word: a hash, a part of a UUID, letters of `mktemp`.
fn is_random(word: &str) -> bool {
    let is_plain = word.bytes().all(|b| b.is_ascii_alphanumeric());
    let has = |wanted: fn(&u8) -> bool| word.bytes().filter(wanted).count();
    let (digits, upper) = (has(u8::is_ascii_digit), has(u8::is_ascii_uppercase));
    let lower = has(u8::is_ascii_lowercase);
    let hex = word.bytes().all(|b| b.is_ascii_hexdigit());
    let mixed = digits > 0 && upper > 0 && lower > 0;
    is_plain
        && ((word.len() >= 8 && hex && digits > 0 && digits < word.len())
            || (word.len() >= 12 && digits > 1 && digits < word.len())
            || (word.len() >= 5 && mixed)
            || (word.len() >= 6 && upper > 1 && lower > 1 && !is_camel(word)))
}

/// Whether a word behind `tmp` is what `mkstemp` and `mkdtemp` end a name in.
fn is_six_letters(word: &str) -> bool {
    word.len() == 6
        && word.bytes().all(|it| it.is_ascii_alphanumeric())
        && word.bytes().any(|it| !it.is_ascii_lowercase())
}

/// Whether a program has just made up a name, as far as it looks so: `mkstemp` and `mkdtemp` end
/// it in six letters and digits.
#[must_use]
pub fn is_made_up(name: &str) -> bool {
    let last = name.rsplit(is_separator).next().unwrap_or_default();
    let has = |wanted: fn(&u8) -> bool| last.bytes().any(|it| wanted(&it));
    let is_six = last.len() == 6 && last.bytes().all(|it| it.is_ascii_alphanumeric());
    let is_mixed =
        has(u8::is_ascii_lowercase) && last.bytes().skip(1).any(|it| !it.is_ascii_lowercase());
    varied(name).is_some() || last.len() < name.len() && is_six && is_mixed
}

/// `name` with `*` for its numbers, if it has some: of what a program makes for itself, they are
/// its PID or a count.
pub(crate) fn numbered(name: &str) -> Option<String> {
    let words = split(name).into_iter();
    let is_number = |word: &str| word.bytes().all(|it| it.is_ascii_digit());
    let globs: Vec<String> =
        words.map(|word| if is_number(word) { "*".into() } else { literal(word) }).collect();
    globs.iter().any(|word| word == "*").then(|| globs.concat())
}

/// Whether a path is that of an object of Git: content by its hash, or a pack of that.
pub(crate) fn is_git_object(path: &Path) -> bool {
    let mut names = path.iter().rev().map(|it| it.to_string_lossy());
    let names = [(); 3].map(|()| names.next().unwrap_or_default());
    let [file, directory, objects] = &names;
    let is_loose = is_git_directory(directory) && [38, 62].contains(&file.len()) && is_hex(file);
    objects == "objects" && (is_loose || directory == "pack" && file.starts_with("pack-"))
}

/// Whether Git calls a directory in its `objects` so, by two digits of hashes.
pub(crate) fn is_git_directory(name: &str) -> bool {
    name.len() == 2 && is_hex(name)
}

fn is_hex(name: &str) -> bool {
    name.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

/// The glob of names such as `name`, where that is what sed(1) writes beside a file that it changes
/// (`sedYIyYIy`), or a temporary file of Python (`tmpk3_9x0ab`).
#[must_use]
pub fn temporary(name: &str) -> Option<String> {
    let is_python = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
    let (start, end) = name.split_at_checked(3)?;
    let is_one = match start {
        "sed" => {
            end.len() == 6
                && end.bytes().all(|it| it.is_ascii_alphanumeric())
                && end.bytes().any(|it| !it.is_ascii_lowercase())
        }
        "tmp" => end.len() == 8 && end.bytes().all(is_python),
        _ => false,
    };
    is_one.then(|| start.to_owned() + &"?".repeat(end.len()))
}

/// `CamelCase`, as people name files.
fn is_camel(word: &str) -> bool {
    let changes = word.as_bytes().windows(2);
    let ups = changes.filter(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase());
    ups.count() * 4 <= word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_another_in_each_run_is_a_glob_and_names_are_not() {
        for (name, want) in [
            ("4711", Some("*")),
            ("2026-11-22", Some("*")),
            ("2026-11-22T16_41_52_635Z-debug-0.log", Some("*-debug-0.log")),
            ("build-1.2.3.tar", Some("build-*.tar")),
            ("node-v18.2.0", Some("node-*")),
            (".claude.json.tmp.4711.aB3d9", Some(".claude.json.tmp.*")),
            ("4ba70571-f6ee-48f0-ac9e-db5b038c858f", Some("*")),
            ("tmp.Zq7xWp", Some("tmp.*")),
            ("x86_64-unknown-linux-gnu", None),
            ("python3.11", None),
            ("README.md", None),
            ("MyDocumentList.txt", None),
            ("a*b", None),
        ] {
            let found = varied(name);
            assert_eq!(found.as_deref(), want, "{name}");
        }
    }

    #[test]
    fn temporary_files_of_sed_and_python_are_known() {
        for (name, want) in [
            ("sedYIyYIy", Some("sed??????")),
            ("tmpk3_9x0ab", Some("tmp????????")),
            ("sedations", None),
            ("sediment", None),
            ("sed", None),
            ("tmp.Zq7xWp99", None),
            ("s\u{e9}dYIyYIy", None),
        ] {
            assert_eq!(temporary(name).as_deref(), want, "{name}");
        }
    }

    #[test]
    fn numbers_of_what_a_program_makes_for_itself_are_globs() {
        for (name, want) in [
            ("next-index-7.lock", Some("next-index-*.lock")),
            ("1_2", Some("*_*")),
            ("a*7-3", Some(r"a\*7-*")),
            ("HEAD.lock", None),
            ("v2.lock", None),
        ] {
            assert_eq!(numbered(name).as_deref(), want, "{name}");
        }
    }

    #[test]
    fn objects_of_git_are_known_by_their_hashes() {
        let hash = "3620e60bd519776fb1b1f61b1521ebea7181ab";
        for (path, want) in [
            (format!("/r/.git/objects/83/{hash}"), true),
            (format!("/r/.git/objects/pack/pack-83{hash}.idx"), true),
            (format!("/r/.git/objects/8x/{hash}"), false),
            (format!("/r/.git/objects/83/{hash}0"), false),
            (format!("/r/83/{hash}"), false),
            ("/r/.git/objects/info/packs".into(), false),
        ] {
            assert_eq!(is_git_object(Path::new(&path)), want, "{path}");
        }
    }

    #[test]
    fn a_name_that_a_program_has_made_up_is_known_by_its_six_letters() {
        for (name, want) in [
            ("tmp_objdir-incoming-vrQgnn", true),
            ("tmp_objdir-incoming-QoaNjS", true),
            ("tmp_objdir-incoming-CX72EC", true),
            ("tmp_objdir-incoming-123456", true),
            ("tmp.a1b2c3", true),
            ("tmp_config", false),
            ("master.lock", false),
            ("objects-Target", false),
            ("vrQgnn", false),
        ] {
            assert_eq!(is_made_up(name), want, "{name}");
        }
    }
}
