//! Tables as data: drawn for a terminal in as many columns as fit, as Markdown, as part of a
//! report, kept as JSON.

use crate::table::Style;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Columns of a terminal unless it is asked for more.
pub const WIDTH: usize = 80;

/// Names are never cut to less.
const SHORTEST: usize = 12;

/// How wide a table may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    /// At most [`WIDTH`] columns of characters: the less important columns of the table are left
    /// out.
    #[default]
    Narrow,
    /// The same for a terminal of so many columns.
    Columns(usize),
    /// As wide as it takes.
    Wide,
}

impl Width {
    /// All of it if it is `wide`; else what fits into the terminal, if there is one.
    #[must_use]
    pub fn of(wide: bool, columns: Option<usize>) -> Self {
        match (wide, columns) {
            (true, _) => Self::Wide,
            (false, Some(columns)) => Self::Columns(columns),
            (false, None) => Self::Narrow,
        }
    }

    /// Columns that there are.
    pub(crate) const fn columns(self) -> usize {
        match self {
            Self::Columns(columns) => columns,
            Self::Narrow | Self::Wide => WIDTH,
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Column {
    /// What stands above it.
    pub heading: String,
    /// 0 for what is never left out; the greatest goes first.
    pub rank: u8,
    /// Whether its cells are numbers, and sort as such.
    pub number: bool,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sheet {
    /// What it shows.
    pub title: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows, as many cells in each as there are columns.
    pub rows: Vec<Vec<Cell>>,
    /// What stands below it.
    pub notes: Vec<String>,
    /// Columns that are left out of what is drawn, although each of them matters.
    #[serde(skip)]
    pub left_out: usize,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    /// What is shown.
    pub text: String,
    /// What it sorts by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), value: None }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, value: None }
    }
}

impl Cell {
    /// A cell that shows `text` and sorts by `value`.
    #[must_use]
    pub fn number(text: String, value: f64) -> Self {
        Self { text, value: Some(value) }
    }

    /// A cell without anything.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }
}

impl Sheet {
    /// A table without rows: of each column the heading, the rank, and whether it holds numbers.
    #[must_use]
    pub fn new(title: &str, columns: &[(&str, u8, bool)]) -> Self {
        let column = |(heading, rank, number): &(&str, u8, bool)| Column {
            heading: (*heading).to_owned(),
            rank: *rank,
            number: *number,
        };
        Self {
            title: title.to_owned(),
            columns: columns.iter().map(column).collect(),
            ..Self::default()
        }
    }

    /// Adds a row.
    pub fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table as text, with its title and its notes.
    #[must_use]
    pub fn draw(&self, style: Style, width: Width) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            text += &match style {
                Style::Plain | Style::Terminal => {
                    style.strong(&wrapped(&self.title, width.columns())) + "\n"
                }
                Style::Markdown => format!("**{}**\n\n", self.title),
            };
        }
        let fitting = self.fitting(style, width);
        text += &fitting.drawn(style);
        text.push('\n');
        if fitting.left_out > 0 {
            let note = format!("Columns that do not fit: {} (--wide).", fitting.left_out);
            text += &(style.faint(&note) + "\n");
        }
        if style == Style::Markdown {
            text.push('\n');
        }
        for note in &self.notes {
            text += &match style {
                Style::Plain | Style::Terminal => {
                    style.faint(&wrapped(note, width.columns())) + "\n"
                }
                Style::Markdown => format!("{note}\n\n"),
            };
        }
        text
    }

    /// Without what does not fit.
    fn fitting(&self, style: Style, width: Width) -> Cow<'_, Self> {
        let mut sheet = Cow::Borrowed(self);
        if width == Width::Wide || style == Style::Markdown {
            return sheet;
        }
        let most = width.columns();
        while sheet.drawn(style).lines().any(|line| line.chars().count() > most) {
            let ranks = sheet.columns.iter().enumerate().map(|(place, it)| (it.rank, place));
            match ranks.max() {
                Some((rank, place)) if rank > 0 => {
                    let sheet = sheet.to_mut();
                    sheet.columns.remove(place);
                    sheet.rows.iter_mut().for_each(|row| drop(row.remove(place)));
                }
                _ => {
                    let sheet = sheet.to_mut();
                    sheet.shorten_names(style, most);
                    sheet.leave_out(style, most);
                    break;
                }
            }
        }
        sheet
    }

    /// Leaves out the last columns, and says so, where not even short names are enough.
    fn leave_out(&mut self, style: Style, most: usize) {
        let all = self.columns.len();
        let fits =
            |sheet: &Self| sheet.drawn(style).lines().all(|line| line.chars().count() <= most);
        while !fits(self) && self.columns.len() > 2 {
            self.columns.pop();
            self.rows.iter_mut().for_each(|row| drop(row.pop()));
        }
        if self.columns.len() < all {
            self.left_out = all - self.columns.len();
        }
    }

    /// Cuts names, where nothing else can give way any more.
    fn shorten_names(&mut self, style: Style, most: usize) {
        let length = |text: &str| text.chars().count();
        let widest = self.drawn(style).lines().map(length).max().unwrap_or_default();
        let names = || self.rows.iter().filter_map(|row| row.first());
        let longest = names().map(|cell| length(&cell.text)).max().unwrap_or_default();
        let keep = (longest + most).saturating_sub(widest).max(SHORTEST);
        for cell in self.rows.iter_mut().filter_map(|row| row.first_mut()) {
            if length(&cell.text) > keep {
                cell.text = cell.text.chars().take(keep - 1).chain(['…']).collect();
            }
        }
    }

    fn drawn(&self, style: Style) -> String {
        let mut table = Table::new();
        table.load_style(match style {
            Style::Plain | Style::Terminal => presets::UTF8_BORDERS_ONLY,
            Style::Markdown => presets::ASCII_MARKDOWN,
        });
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.columns.iter().map(|column| column.heading.as_str()));
        table.add_rows(self.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str())));
        for (place, column) in self.columns.iter().enumerate() {
            if let Some(drawn) = table.column_mut(place).filter(|_| column.number) {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }
}

/// Lines of at most `columns` characters.
pub(crate) fn wrapped(text: &str, columns: usize) -> Cow<'_, str> {
    if text.chars().count() <= columns {
        return Cow::Borrowed(text);
    }
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let more = word.chars().count() + 1;
        if length > 0 && length + more > columns {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
        }
        lines += word;
        length += more;
    }
    Cow::Owned(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut sheet = Sheet::new(
            "A title that says at length what the table below it shows, and then a little more of it",
            &[("name", 0, false), ("first", 1, true), ("second", 3, true), ("third", 2, true)],
        );
        sheet.push(
            ["x".repeat(30), "1".repeat(20), "2".repeat(20), "3".repeat(20)]
                .map(Cell::from)
                .to_vec(),
        );
        sheet.notes.push("A note.".to_owned());
        sheet
    }

    #[test]
    fn a_narrow_table_fits_into_80_columns_and_keeps_what_matters_most() {
        let text = sheet().draw(Style::Plain, Width::Narrow);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(
            text.contains("first") && text.contains("third") && !text.contains("second"),
            "{text}"
        );
        assert!(text.ends_with("A note.\n"), "{text}");
    }

    #[test]
    fn a_wider_terminal_shows_more_and_never_more_than_fits() {
        for (columns, shown) in [(60, 1), (80, 2), (100, 2), (110, 3)] {
            let text = sheet().draw(Style::Plain, Width::Columns(columns));
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}: {text}");
            let headings = ["first", "second", "third"].iter().filter(|it| text.contains(*it));
            assert_eq!(headings.count(), shown, "{columns}: {text}");
        }
    }

    #[test]
    fn a_wide_table_and_a_document_s_have_every_column() {
        for (style, width) in [(Style::Plain, Width::Wide), (Style::Markdown, Width::Narrow)] {
            let text = sheet().draw(style, width);
            assert!(["first", "second", "third"].iter().all(|it| text.contains(it)), "{text}");
        }
    }
}
