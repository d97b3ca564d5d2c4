//! Outcomes for people: tables, and one sentence.

use super::{Estimate, ExperimentResult, Row, Stop, Verdict};
use crate::{
    config::Kind,
    sheet::{Cell, Sheet},
    table::seconds,
};

impl ExperimentResult {
    /// The tables: one of settings for a single subject; for several, subjects down and settings
    /// across, as many across as fit.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let mut sheets = match self.experiment.subjects.len() {
            1 => vec![self.of_settings()],
            _ => self.of_subjects(),
        };
        if let Some(last) = sheets.last_mut() {
            last.notes.extend(self.notes());
        }
        sheets
    }

    fn of_settings(&self) -> Sheet {
        let mut sheet = Sheet::new(
            &self.experiment.title,
            &[
                ("setting", 0, false),
                ("median", 1, true),
                ("± MAD", 6, true),
                ("min", 9, true),
                ("max", 9, true),
                ("change", 0, true),
                ("95 % interval", 0, true),
                ("verdict", 2, false),
                ("pairs", 5, true),
                ("p", 8, true),
                ("cpu", 3, true),
                ("95 % of cpu", 4, true),
                ("vs base", 7, true),
            ],
        );
        for row in &self.rows {
            sheet.push(self.cells(row));
        }
        sheet
    }

    fn cells(&self, row: &Row) -> Vec<Cell> {
        let time = |of: fn(&crate::statistics::Summary) -> f64| {
            row.wall_s
                .as_ref()
                .map_or_else(Cell::empty, |summary| Cell::number(seconds(of(summary)), of(summary)))
        };
        let (wall, cpu) = (row.wall.as_ref(), row.cpu.as_ref());
        let verdict = match (&row.failure, row.setting, row.verdict()) {
            (Some(_), ..) => "failed".to_owned(),
            (None, 0, _) => "reference".to_owned(),
            (None, _, Verdict::NoDifference { less_than }) => {
                format!("no difference <{}", percent(less_than))
            }
            (None, _, Verdict::Faster) if self.is_unbelievable(row) => {
                "not to be believed".to_owned()
            }
            (None, _, found) => verdict(found),
        };
        vec![
            self.setting(row).into(),
            time(|it| it.median),
            time(|it| it.mad),
            time(|it| it.min),
            time(|it| it.max),
            change(wall),
            interval(wall),
            verdict.into(),
            wall.map_or_else(Cell::empty, |e| Cell::number(e.pairs.to_string(), e.pairs as f64)),
            wall.map_or_else(Cell::empty, |e| Cell::number(format!("{:.2}", e.p), e.p)),
            change(cpu),
            interval(cpu),
            change(row.base.as_ref()),
        ]
    }

    fn of_subjects(&self) -> Vec<Sheet> {
        const ACROSS: usize = 3;
        let others: Vec<usize> = (1..self.experiment.settings.len()).collect();
        let blocks = others.chunks(ACROSS).enumerate();
        blocks.map(|(number, settings)| self.block(number, settings)).collect()
    }

    /// One table of some settings.
    fn block(&self, number: usize, settings: &[usize]) -> Sheet {
        let name = |setting: usize| self.experiment.settings[setting].name.as_str();
        let mut columns = vec![("", 0, false), (name(0), 1, true)];
        columns.extend(settings.iter().map(|setting| (name(*setting), 0, true)));
        let title = if number == 0 { self.experiment.title.as_str() } else { "" };
        let mut sheet = Sheet::new(title, &columns);
        for (subject, named) in self.experiment.subjects.iter().enumerate() {
            let row = |setting: usize| {
                self.rows.iter().find(|row| row.subject == subject && row.setting == setting)
            };
            let native = row(0).and_then(|row| row.wall_s);
            let native =
                native.map_or_else(Cell::empty, |it| Cell::number(seconds(it.median), it.median));
            let mut cells = vec![named.name.as_str().into(), native];
            cells.extend(
                settings.iter().map(|setting| row(*setting).map_or_else(Cell::empty, short)),
            );
            sheet.push(cells);
        }
        if self.experiment.subjects.len() > 1 && settings.iter().any(|it| self.index(*it).is_some())
        {
            let mut cells = vec!["geometric mean".into(), Cell::empty()];
            cells.extend(settings.iter().map(|setting| {
                self.index(*setting).map_or_else(Cell::empty, |[ratio, low, high]| {
                    Cell::number(format!("{} ±{:.1}", slowdown(ratio), (high - low) * 50.0), ratio)
                })
            }));
            sheet.push(cells);
        }
        sheet
    }

    fn notes(&self) -> Vec<String> {
        let experiment = &self.experiment;
        let mut notes: Vec<String> = Vec::new();
        for (setting, named) in experiment.settings.iter().enumerate() {
            let failed =
                self.rows.iter().find(|row| row.setting == setting && row.failure.is_some());
            if let Some(why) = failed.and_then(|row| row.failure.as_ref()) {
                notes.push(format!("{}: {why}", named.name));
            }
        }
        notes.extend(self.unbelievable());
        notes.extend(experiment.notes.iter().cloned());
        notes.push(format!(
            "Unit: {}. Ratios of the units of one round, their median; {}",
            experiment.unit,
            self.ended()
        ));
        notes.push(experiment.machine.to_string());
        notes
    }

    /// Whether Dewar took less than the command alone, which nothing that it does explains.
    #[must_use]
    pub fn is_unbelievable(&self, row: &Row) -> bool {
        let is_native = self.experiment.settings[0].kind == Kind::Native && row.setting > 0;
        let is_ours = matches!(self.kind(row), Kind::Base | Kind::Dewar);
        is_native && is_ours && row.failure.is_none() && row.verdict() == Verdict::Faster
    }

    /// What is to be thought of figures of which some cannot be.
    #[must_use]
    pub fn unbelievable(&self) -> Option<String> {
        let row = self.rows.iter().find(|row| self.is_unbelievable(row))?;
        let machine = &self.experiment.machine;
        let load = machine.load.as_deref().unwrap_or("unknown");
        Some(format!(
            "DO NOT BELIEVE THIS: `{}` took less time than the command alone, which nothing of Dewar's explains. Something \
             else took processor time from one of them (load {load} before, {} CPUs): measure on an idle machine.",
            self.setting(row),
            machine.cpus
        ))
    }

    /// Why it ended, in a sentence.
    #[must_use]
    pub fn ended(&self) -> String {
        let aim = self.experiment.aim;
        let within = percent(aim.half_width);
        let after = minutes(self.seconds);
        match self.stop {
            Stop::Narrow => format!("ended after {after}: every interval is within ±{within}."),
            Stop::Budget => {
                format!(
                    "ended after {after}: the time or the rounds were over before every interval was within ±{within}."
                )
            }
            Stop::Interrupted => format!("interrupted after {after}: what there was until then."),
            Stop::Failed => "nothing is left that could be compared.".to_owned(),
        }
    }

    /// What came of it, in one sentence a setting, Dewar's own first.
    #[must_use]
    pub fn headline(&self) -> String {
        let several = self.experiment.subjects.len() > 1;
        let ours = |row: &&Row| matches!(self.kind(row), Kind::Dewar | Kind::Native);
        let mut rows: Vec<&Row> =
            self.rows.iter().filter(|row| row.setting > 0 && row.subject == 0).collect();
        if rows.iter().any(&ours) {
            rows.retain(|row| ours(row));
        }
        let said = |row: &&Row| {
            let name = self.setting(row);
            if several {
                return match self.index(row.setting) {
                    Some([ratio, low, high]) if low <= 1.0 && high >= 1.0 => {
                        format!(
                            "`{name}`: no difference on the whole; less than {}",
                            percent((ratio - low).max(high - ratio))
                        )
                    }
                    Some([ratio, low, high]) => {
                        format!(
                            "`{name}` {} ({} … {}) on the whole",
                            slowdown(ratio),
                            slowdown(low),
                            slowdown(high)
                        )
                    }
                    None => format!("`{name}`: not measured on the whole"),
                };
            }
            match (&row.failure, &row.wall) {
                (Some(why), _) => format!("`{name}` failed: {why}"),
                (None, Some(wall)) => match wall.verdict() {
                    Verdict::NoDifference { .. } | Verdict::TooFew => {
                        format!("`{name}`: {}", verdict(wall.verdict()))
                    }
                    _ => {
                        format!("`{name}` {} ({})", slowdown(wall.ratio), interval(Some(wall)).text)
                    }
                },
                (None, None) => format!("`{name}`: too few pairs"),
            }
        };
        let said: Vec<String> = rows.iter().map(said).collect();
        format!("Against {}: {}.", self.experiment.settings[0].name, said.join("; "))
    }
}

/// A verdict in words.
#[must_use]
pub fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Slower => "slower".to_owned(),
        Verdict::Faster => "faster".to_owned(),
        Verdict::NoDifference { less_than } => {
            format!("no difference found; less than {}", percent(less_than))
        }
        Verdict::TooFew => "too few pairs".to_owned(),
    }
}

/// A cell of a table with several settings across.
fn short(row: &Row) -> Cell {
    match (&row.failure, &row.wall) {
        (Some(_), _) => "failed".into(),
        (None, None) => "–".into(),
        (None, Some(wall)) => {
            let width = wall.half_width() * 100.0;
            let text = match wall.verdict() {
                Verdict::NoDifference { less_than } => format!("none <{}", percent(less_than)),
                _ if wall.ratio >= 2.0 => format!("{:.2} × ±{:.1} %", wall.ratio, width),
                _ => format!("{} ±{width:.1}", slowdown(wall.ratio)),
            };
            Cell::number(text, wall.ratio)
        }
    }
}

fn change(estimate: Option<&Estimate>) -> Cell {
    estimate.map_or_else(Cell::empty, |e| Cell::number(slowdown(e.ratio), e.ratio))
}

fn interval(estimate: Option<&Estimate>) -> Cell {
    estimate.map_or_else(Cell::empty, |e| {
        let text = if e.high >= 2.0 {
            format!("{:.2} … {:.2} ×", e.low, e.high)
        } else {
            format!("{:+.1} … {:+.1}", (e.low - 1.0) * 100.0, (e.high - 1.0) * 100.0)
        };
        Cell::number(text, e.half_width())
    })
}

/// A slowdown in percent, or as a factor where percent would mislead.
#[must_use]
pub fn slowdown(ratio: f64) -> String {
    if ratio >= 2.0 { format!("{ratio:.2} ×") } else { format!("{:+.1} %", (ratio - 1.0) * 100.0) }
}

/// A share in percent, rounded away from 0.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 {
        format!("{:.1} %", (percent * 10.0).ceil() / 10.0)
    } else {
        format!("{:.0} %", percent.ceil())
    }
}

/// Seconds, or minutes and seconds.
#[must_use]
pub fn minutes(seconds: f64) -> String {
    if seconds < 100.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min {:02.0} s", (seconds / 60.0).floor(), seconds % 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_what_was_not_found_and_how_much_it_could_be() {
        for (given, want) in [
            (Verdict::NoDifference { less_than: 0.0151 }, "no difference found; less than 1.6 %"),
            (Verdict::Slower, "slower"),
            (Verdict::TooFew, "too few pairs"),
        ] {
            assert_eq!(verdict(given), want);
        }
    }

    #[test]
    fn ratios_and_times_are_shown_in_the_unit_that_fits() {
        assert_eq!(
            [slowdown(1.034), slowdown(0.98), slowdown(9.3)],
            ["+3.4 %", "-2.0 %", "9.30 ×"]
        );
        assert_eq!([minutes(59.0), minutes(605.0)], ["59 s", "10 min 05 s"]);
    }
}
