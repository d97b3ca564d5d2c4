//! The report as one HTML file that needs nothing else: no network, no fonts, no other files.

use super::Section;
use crate::sheet::Sheet;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
#[must_use]
pub fn html(sections: &[Section]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                title { "What protection costs here" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the results" }
                header {
                    h1 { "What protection costs here" }
                    @if let Some(machine) = sections.iter().find_map(|it| it.machine.as_ref()) {
                        p { (machine) }
                    }
                }
                nav aria-label="Experiments" { (summary(sections)) }
                main id="main" {
                    @for section in sections { (chapter(section)) }
                    (methods())
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// A headline for each experiment.
fn summary(sections: &[Section]) -> Markup {
    html! {
        h2 { "In short" }
        ul {
            @for section in sections {
                li { a href={ "#" (section.name) } { (section.title) } " " span { (said(&section.headline)) } }
            }
            li { a href="#methods" { "Methods" } " " span { "How it was measured, and how to read it." } }
        }
    }
}

fn chapter(section: &Section) -> Markup {
    html! {
        section id=(section.name) aria-labelledby={ (section.name) "-heading" } {
            h2 id={ (section.name) "-heading" } { (section.title) }
            p.headline { (said(&section.headline)) }
            @if !section.trust.is_empty() { p.trust { (said(&section.trust)) } }
            @for (number, figure) in section.figures.iter().enumerate() {
                @let id = format!("{}-figure-{number}", section.name);
                @match figure.svg(&id) {
                    Ok(svg) => figure { (PreEscaped(svg)) figcaption { (figure.title) } },
                    Err(_) => p { (figure.title) ": nothing was measured that could be drawn." },
                }
            }
            @for sheet in &section.sheets { (table(sheet)) }
            @if !section.raw.is_empty() {
                details {
                    summary { "Raw data" }
                    p { button type="button" data-save=(format!("{}.csv", section.name)) { "Save as CSV" } }
                    pre tabindex="0" aria-label={ "Raw data of " (section.title) } { (section.raw) }
                }
            }
            @if let Some(machine) = &section.machine { p.machine { (machine) } }
        }
    }
}

fn table(sheet: &Sheet) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(if sheet.title.is_empty() { "Continued" } else { &sheet.title }) {
            table {
                @if !sheet.title.is_empty() { caption { (sheet.title) } }
                thead {
                    tr {
                        @for column in &sheet.columns {
                            th scope="col" class=[column.number.then_some("number")] {
                                button type="button" data-sort { (if column.heading.is_empty() { "name" } else { &column.heading }) }
                            }
                        }
                    }
                }
                tbody {
                    @for row in &sheet.rows {
                        tr {
                            @for (place, cell) in row.iter().enumerate() {
                                @let number = sheet.columns.get(place).is_some_and(|it| it.number);
                                @if place == 0 {
                                    th scope="row" { (cell.text) }
                                } @else {
                                    td class=[number.then_some("number")] data-value=[cell.value] { (cell.text) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @for note in &sheet.notes { p.note { (said(note)) } }
    }
}

/// A text, in which what stands between back quotes is code.
fn said(text: &str) -> Markup {
    html! {
        @for (number, part) in text.split('`').enumerate() {
            @if number % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn methods() -> Markup {
    html! {
        section id="methods" aria-labelledby="methods-heading" {
            h2 id="methods-heading" { "Methods" }
            p {
                "Every setting (the program alone, or under some protection) runs a runner that stays. Small units of work \
                 (one compilation, 200 files of a walk, two milliseconds of a call) go round: each setting performs the same \
                 unit once, in an order drawn anew for each round. What else happens on the machine meets neighbours \
                 alike, so the ratio within a round says more than two averages do."
            }
            p {
                "The figure is the median of these ratios. Its interval is the bootstrap of the median, and holds the true \
                 ratio in at least 95 of 100 experiments, early stopping included: this is tested with made noise, and \
                 shown on the machine by comparing a program with itself (" code { "dewar bench self" } "). A difference is \
                 reported only if 1 lies outside of the interval and Wilcoxon's signed-rank test agrees. Otherwise the table \
                 says that none was found, and how large one could be at most."
            }
            p {
                "Measuring ends when every interval is narrow enough or the time is over; each experiment says which. \
                 The first time of each unit under each setting does not count. “cpu” is processor time of all \
                 processes that took part, the monitor included; it is left out where part of it is not known."
            }
            p {
                "How to read it: a bar begins at 1, the reference, and ends at the ratio; the thin line across its end is the \
                 interval. If that line crosses 1, nothing was shown. Intervals of different rows must not be compared by \
                 eye to rank them: the rows share their reference."
            }
        }
    }
}
