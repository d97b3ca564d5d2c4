//! How what a profile says is written, a line each.

use flask::visible_name;
use profile::Variables;
use std::{fmt::Write as _, path::Path};

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
    things.try_for_each(|thing| writeln!(text, "  {verb} {}", visible_name(thing.as_ref())))
}
