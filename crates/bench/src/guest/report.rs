//! What guests took, for people: tables, bars, and what they can and cannot say.

use super::{Guest, GuestReport, TESTS};
use crate::{
    classic,
    figure::{Bar, Drawing, Figure},
    report::Section,
    sheet::{Cell, Sheet},
};

/// Settings side by side in a table.
const ACROSS: usize = 3;

impl GuestReport {
    /// Whether no guest came to its end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.guests.iter().all(|guest| guest.instructions.is_empty())
    }

    /// Median, least and greatest of a test against the first guest's median.
    fn ratio(&self, guest: &Guest, test: usize) -> Option<[f64; 3]> {
        let first = self.guests.first()?.instructions.get(test)?[1];
        let [least, median, greatest] = *guest.instructions.get(test)?;
        (first > 0.0).then_some([least / first, median / first, greatest / first])
    }

    /// The geometric mean of the ratios.
    fn index(&self, guest: &Guest) -> Option<f64> {
        let ratios: Option<Vec<f64>> =
            (0..TESTS.len()).map(|test| Some(self.ratio(guest, test)?[1].ln())).collect();
        let ratios = ratios?;
        Some((ratios.iter().sum::<f64>() / ratios.len() as f64).exp())
    }

    /// The tables.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let others: Vec<&Guest> = self.guests.iter().skip(1).collect();
        let mut sheets: Vec<Sheet> = others
            .chunks(ACROSS)
            .enumerate()
            .map(|(number, block)| self.block(number, block))
            .collect();
        if sheets.is_empty() {
            sheets.push(self.block(0, &[]));
        }
        if let Some(last) = sheets.last_mut() {
            last.notes = self.notes();
        }
        sheets
    }

    fn block(&self, number: usize, guests: &[&Guest]) -> Sheet {
        let first = self.guests.first().map_or("", |guest| guest.name.as_str());
        let mut columns = vec![("instructions", 0, false), (first, 1, true)];
        columns.extend(guests.iter().map(|guest| (guest.name.as_str(), 0, true)));
        let title = if number == 0 { TITLE } else { "" };
        let mut sheet = Sheet::new(title, &columns);
        for (test, (name, _)) in TESTS.iter().enumerate() {
            let title =
                classic::TESTS.iter().find(|it| it.name == *name).map_or(*name, |it| it.title);
            let own = self.guests.first().and_then(|guest| guest.instructions.get(test));
            let mut cells = vec![title.into()];
            cells.push(
                own.map_or_else(Cell::empty, |[_, it, _]| Cell::number(format!("{it:.0}"), *it)),
            );
            cells.extend(guests.iter().map(|guest| cell(self.ratio(guest, test))));
            sheet.push(cells);
        }
        let mut cells = vec!["geometric mean".into(), Cell::empty()];
        cells.extend(guests.iter().map(|guest| {
            self.index(guest).map_or_else(Cell::empty, |it| Cell::number(format!("{it:.3}"), it))
        }));
        sheet.push(cells);
        sheet
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self
            .guests
            .iter()
            .map(|guest| match &guest.failure {
                Some(why) => format!("{}: {} failed: {why}", guest.name, guest.description),
                None => format!("{}: {}", guest.name, guest.description),
            })
            .collect();
        notes.push(LIMITS.to_owned());
        notes
    }

    /// The index of each guest in a sentence.
    #[must_use]
    pub fn headline(&self) -> String {
        let said = |guest: &Guest| Some(format!("`{}` {:.3}", guest.name, self.index(guest)?));
        let said: Vec<String> = self.guests.iter().skip(1).filter_map(said).collect();
        let first = self.guests.first().map_or("", |guest| guest.name.as_str());
        format!("Instructions of the suite against `{first}`: {}.", said.join(", "))
    }

    /// Bars of the geometric means.
    #[must_use]
    pub fn figure(&self) -> Figure {
        let bar = |guest: &Guest| {
            let value = self.index(guest)?;
            let (group, name) = (String::new(), guest.name.clone());
            Some(Bar { group, name, value, low: value, high: value })
        };
        Figure {
            title: "Instructions of the classic suite, by kernel and configuration".to_owned(),
            description: format!("Geometric means against the first kernel. {LIMITS}"),
            drawing: Drawing::Bars(self.guests.iter().skip(1).filter_map(bar).collect()),
        }
    }

    /// What goes into a report.
    #[must_use]
    pub fn section(&self) -> Section {
        let title = "Kernels of several releases and configurations";
        let mut section = Section::new("kernel", title, self.headline(), self.sheets());
        section.trust = LIMITS.to_owned();
        section.figures.extend(Some(self.figure()).filter(|figure| !figure.is_empty()));
        section
    }
}

/// A ratio, and how far its rounds lie apart.
fn cell(ratio: Option<[f64; 3]>) -> Cell {
    ratio.map_or_else(Cell::empty, |[least, median, greatest]| {
        let text = format!("{median:.3} ({least:.2} … {greatest:.2})");
        Cell::number(text, median)
    })
}

const TITLE: &str =
    "classic suite in guests: instructions of one operation, and their ratio to the first kernel's";

const LIMITS: &str = "Instructions that an emulator executes, in program and kernel: how much more code a kernel runs, the \
    same on every machine. No time: an emulator knows nothing of caches and branch prediction, of what changing page tables \
    costs, or of what a mitigation makes a real processor do within an instruction, which is most of its price. In brackets \
    the least and the greatest of the rounds: interrupts and what the kernel does meanwhile fall into some. Every Debian kernel \
    is compiled with stack protection, so there is no row without.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_compared_with_the_first_and_one_that_failed_says_why() {
        let guest = |name: &str, factor: f64| Guest {
            name: name.to_owned(),
            description: String::new(),
            instructions: vec![[factor; 3]; TESTS.len()],
            failure: None,
        };
        let failed = Guest {
            instructions: Vec::new(),
            failure: Some("no init".to_owned()),
            ..guest("broken", 1.0)
        };
        let report =
            GuestReport { guests: vec![guest("first", 100.0), guest("off", 80.0), failed] };
        assert!(report.headline().contains("`off` 0.800"), "{}", report.headline());
        let text = report.sheets()[0].draw(crate::table::Style::Plain, crate::sheet::Width::Narrow);
        assert!(text.contains("0.800") && text.contains("failed: no init"), "{text}");
    }
}
