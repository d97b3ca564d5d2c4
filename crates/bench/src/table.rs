//! Tables for people: plain for a terminal, markdown for a document.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// How a table is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As text.
    #[default]
    Plain,
    /// The same for a terminal, with colours.
    Terminal,
    /// For a document.
    Markdown,
}

impl Style {
    /// Markdown, or for a terminal.
    #[must_use]
    pub fn of(markdown: bool) -> Self {
        if markdown { Self::Markdown } else { Self::Terminal }
    }

    /// Lines that matter most.
    pub(crate) fn strong(self, text: &str) -> String {
        self.paint(anstyle::Style::new().bold(), text)
    }

    /// Lines that are said beside.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(anstyle::Style::new().dimmed(), text)
    }

    fn paint(self, look: anstyle::Style, text: &str) -> String {
        if self != Self::Terminal {
            return text.to_owned();
        }
        let lines: Vec<String> = text.lines().map(|line| format!("{look}{line}{look:#}")).collect();
        lines.join("\n")
    }
}

/// A table of these headings and rows; all columns but the first are numbers.
#[must_use]
pub fn draw(style: Style, headings: &[String], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(match style {
        Style::Plain | Style::Terminal => presets::UTF8_BORDERS_ONLY,
        Style::Markdown => presets::ASCII_MARKDOWN,
    });
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// Nanoseconds in the unit that leaves few digits.
#[must_use]
pub fn nanoseconds(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 99.95 => format!("{ns:.1} ns"),
        ns => seconds(ns / 1e9),
    }
}

/// Seconds in the unit that leaves few digits.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 0.9995 => format!("{s:.3} s"),
        s if s >= 0.000_999_5 => format!("{:.2} ms", s * 1e3),
        s if s >= 0.000_000_999_5 => format!("{:.2} µs", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_shown_in_the_unit_that_fits() {
        for (value, shown) in [
            (2.5, "2.500 s"),
            (0.0085, "8.50 ms"),
            (7.5e-6, "7.50 µs"),
            (8e-7, "800 ns"),
            (0.0, "0 ns"),
        ] {
            assert_eq!(seconds(value), shown);
        }
    }

    #[test]
    fn a_markdown_table_has_a_line_of_dashes_under_its_headings() {
        let text =
            draw(Style::Markdown, &["a".into(), "b".into()], vec![vec!["x".into(), "1".into()]]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("|--") && lines[2].starts_with("| x "), "{text}");
    }
}
