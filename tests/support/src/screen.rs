//! Screens as people see them, at 80 and at 120 columns, with and without colours: kept as
//! snapshots, and reviewed when they change (`INSTA_UPDATE=always` writes them anew).

use std::{fmt::Write as _, path::Path};

/// Compares what `draw` draws at both widths with what `snapshots` keeps as `name`.
///
/// # Panics
///
/// It differs, or a line is wider than it may be.
pub fn screen(snapshots: &Path, name: &str, draw: impl Fn(usize) -> String) {
    let mut kept = String::new();
    for width in [80, 120] {
        let drawn = draw(width);
        let (plain, marked) = (plain(&drawn), marked(&drawn));
        for line in plain.lines() {
            assert!(line.chars().count() <= width, "{name} at {width} columns: {line}");
        }
        let _ =
            writeln!(kept, "━━ {width} columns\n{plain}\n━━ {width} columns, coloured\n{marked}");
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(snapshots);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, kept));
}

/// The parts of `text` between its colours: the first, then each with the code before it.
fn parts(text: &str) -> (&str, impl Iterator<Item = (&str, &str)>) {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default();
    (first, parts.map(|part| part.split_once('m').unwrap_or((part, ""))))
}

/// `text` without colours.
fn plain(text: &str) -> String {
    let (first, parts) = parts(text);
    parts.fold(first.to_owned(), |plain, (_, rest)| plain + rest)
}

/// `text` with its colours written out: `⟨1⟩` begins bold, `⟨0⟩` ends all.
fn marked(text: &str) -> String {
    let (first, parts) = parts(text);
    parts.fold(first.to_owned(), |marked, (code, rest)| {
        marked + &format!("⟨{}⟩{rest}", if code.is_empty() { "0" } else { code })
    })
}
