//! How what a profile says is written, a line each.

use cli::look;
use flask::visible_name;
use profile::Variables;
use std::{fmt::Write as _, path::Path};

/// Columns of the screen that lines are counted on.
const COLUMNS: usize = 80;
/// The most that is told of one thing: of a longer one, its beginning and its end.
const MOST: usize = 2 * COLUMNS;

/// A path as its reader writes it.
pub(super) fn shown(path: &Path, variables: &Variables) -> String {
    let below =
        path.strip_prefix(&variables.home).ok().filter(|_| variables.home != Path::new("/"));
    let text = match below {
        Some(rest) if rest.as_os_str().is_empty() => {
            "your whole home, but for what is hidden".into()
        }
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    };
    visible_name(&text)
}

/// A line for each of `things`, behind `verb`.
pub(super) fn list<'a>(
    text: &mut String,
    verb: &str,
    things: impl IntoIterator<Item = &'a (impl AsRef<str> + 'a)>,
) -> std::fmt::Result {
    let mut things = things.into_iter();
    things.try_for_each(|thing| writeln!(text, "  {verb} {}", shortened(thing.as_ref())))
}

/// How many lines of a screen a line takes.
pub(super) fn rows(line: &str) -> usize {
    look::folded(line, COLUMNS)
        .lines()
        .map(|line| line.chars().count().div_ceil(COLUMNS).max(1))
        .sum::<usize>()
        .max(1)
}

/// `thing` as a person sees it, without its middle if it is too long.
fn shortened(thing: &str) -> String {
    let shown: Vec<char> = visible_name(thing).chars().collect();
    if shown.len() <= MOST {
        return shown.into_iter().collect();
    }
    let (begin, end) = (&shown[..MOST / 2], &shown[shown.len() - MOST / 2..]);
    let left = shown.len() - begin.len() - end.len();
    let part = |part: &[char]| part.iter().collect::<String>();
    format!("{} [{left} characters more] {}", part(begin), part(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_told_by_its_beginning_and_its_end_in_few_lines() {
        let path = format!("read ~/.wget-hsts/{}, kept back otherwise", "b".repeat(3_800));
        let mut text = String::new();
        list(&mut text, "may also", [&path]).unwrap();
        assert!(text.starts_with("  may also read ~/.wget-hsts/b"), "{text}");
        assert!(text.contains(" characters more] b") && text.ends_with("kept back otherwise\n"));
        assert!(rows(text.trim_end()) <= 6, "{text}");
        assert_eq!((rows(""), rows("short"), rows(&"b".repeat(161))), (1, 1, 3));
    }
}
