//! What is said of a plugin's file.

/// A text about a plugin, which may have words of its file in it: as a terminal shows them, and
/// does nothing by them.
#[must_use]
pub fn visible_lines(text: &str) -> String {
    text.split('\n').map(flask::visible).collect::<Vec<_>>().join("\n")
}
