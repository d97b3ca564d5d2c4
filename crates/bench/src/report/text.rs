//! The report for a terminal, and as Markdown.

use super::Section;
use crate::{
    sheet::{WIDTH, Width},
    table::Style,
};

/// All sections as text.
#[must_use]
pub fn draw(sections: &[Section], style: Style, width: Width) -> String {
    let mut text = match style {
        Style::Markdown => "# What protection costs here\n\n".to_owned(),
        Style::Plain | Style::Terminal => String::new(),
    };
    for section in sections {
        text += &match style {
            Style::Markdown => format!("## {}\n\n{}\n\n", section.title, section.headline),
            Style::Plain | Style::Terminal => {
                let line = "═".repeat(section.title.chars().count().min(WIDTH));
                format!(
                    "{}\n{line}\n{}\n\n",
                    style.strong(&section.title),
                    crate::sheet::wrapped(&section.headline, width.columns())
                )
            }
        };
        for sheet in &section.sheets {
            text += &sheet.draw(style, width);
            text.push('\n');
        }
    }
    text
}
