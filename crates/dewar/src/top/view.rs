//! What `dewar top` shows on a terminal: a row for each run with its last half minute, and more of
//! the selected one.

use super::{RunSample, Sample, table};
use cli::look::{cut, fill};
use monitor::visible;
use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
};

/// Intervals that a sparkline shows.
const MOST: usize = 20;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Columns of a row before its command.
const USED: usize = 2 + 14 + 10 + 8 + 6 + 2 + MOST + 2;

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Char(u8),
}

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sort {
    #[default]
    Age,
    Decisions,
    Denials,
    Name,
}

/// What is on the screen.
#[derive(Default)]
pub(super) struct View {
    sample: Option<Sample>,
    /// Decisions a second, by run, the newest last.
    history: HashMap<String, VecDeque<f64>>,
    sort: Sort,
    selected: Option<String>,
    /// The run that everything is taken from, once that is confirmed.
    asked: Option<String>,
    message: String,
}

impl RunSample {
    fn rate(&self) -> f64 {
        self.rates.iter().map(|rate| rate.queries).sum()
    }

    fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

impl View {
    /// Another interval has passed.
    pub(super) fn take(&mut self, sample: Sample) {
        self.history.retain(|id, _| sample.runs.iter().any(|run| run.id == *id));
        for run in &sample.runs {
            let history = self.history.entry(run.id.clone()).or_default();
            history.push_back(run.rate());
            if history.len() > MOST {
                history.pop_front();
            }
        }
        let is_there = |id: &String| sample.runs.iter().any(|run| run.id == *id);
        self.selected = self.selected.take().filter(is_there);
        self.asked = self.asked.take().filter(is_there);
        self.sample = Some(sample);
        if self.selected.is_none() {
            self.selected = self.rows().first().map(|run| run.id.clone());
        }
    }

    /// Says something in the last line, until a key is pressed.
    pub(super) fn say(&mut self, message: String) {
        self.message = message;
    }

    /// What a key does; the run that everything is to be taken from, if that was confirmed.
    pub(super) fn key(&mut self, key: Key) -> Option<String> {
        self.message.clear();
        if let Some(asked) = self.asked.take() {
            let confirmed = key == Key::Char(b'y');
            if !confirmed {
                self.message = "nothing was revoked".into();
            }
            return confirmed.then_some(asked);
        }
        match key {
            Key::Up | Key::Char(b'k') => self.step(-1),
            Key::Down | Key::Char(b'j') => self.step(1),
            Key::Char(b's') => {
                self.sort = match self.sort {
                    Sort::Age => Sort::Decisions,
                    Sort::Decisions => Sort::Denials,
                    Sort::Denials => Sort::Name,
                    Sort::Name => Sort::Age,
                }
            }
            Key::Char(b'r') => self.asked.clone_from(&self.selected),
            Key::Char(_) => {}
        }
        None
    }

    /// Selects the next row, or the one before.
    fn step(&mut self, by: isize) {
        let ids: Vec<String> = self.rows().iter().map(|run| run.id.clone()).collect();
        let at = ids.iter().position(|id| Some(id) == self.selected.as_ref()).unwrap_or(0);
        let at = at.saturating_add_signed(by).min(ids.len().saturating_sub(1));
        self.selected = ids.get(at).cloned();
    }

    /// The runs in the order of their rows.
    fn rows(&self) -> Vec<&RunSample> {
        let mut rows: Vec<&RunSample> = self.sample.iter().flat_map(|it| &it.runs).collect();
        match self.sort {
            Sort::Age => {}
            Sort::Decisions => rows.sort_by(|a, b| b.rate().total_cmp(&a.rate())),
            Sort::Denials => rows.sort_by_key(|run| std::cmp::Reverse(run.denied)),
            Sort::Name => rows.sort_by(|a, b| a.label().cmp(b.label())),
        }
        rows
    }

    /// The lines of the screen.
    pub(super) fn text(&self, width: usize) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        if self.sample.is_none() {
            return Ok("looking at what runs decide …\n".into());
        }
        let unheard = self.sample.iter().flat_map(|it| &it.unheard);
        let unheard: Vec<String> =
            unheard.map(|run| fill(run.line().split(' '), 2, width)).collect();
        let rows = self.rows();
        if rows.is_empty() {
            let nothing = if unheard.is_empty() { "nothing runs\n" } else { "" };
            return Ok(nothing.to_owned() + &unheard.join("\n"));
        }
        let head = ("RUN", "DECIDED/s", "DENIED", "PROCS", "LAST INTERVALS", "COMMAND");
        let (run, decided, denied, procs, last, command) = head;
        writeln!(
            text,
            "\x1b[1m  {run:14}{decided:>10}{denied:>8}{procs:>6}  {last:MOST$}  {command}\x1b[0m"
        )?;
        for run in &rows {
            let is_selected = Some(&run.id) == self.selected.as_ref();
            let (on, mark) = if is_selected { ("\x1b[7m", '>') } else { ("", ' ') };
            writeln!(
                text,
                "{on}{mark} {:14}{:>10.0}{:>8}{:>6}  {:MOST$}  {}\x1b[0m",
                cut(&visible(run.label()), 13),
                run.rate(),
                run.denied,
                run.domains.values().sum::<usize>(),
                self.history.get(&run.id).map(spark).unwrap_or_default(),
                cut(&visible(&run.command.join(" ")), width.saturating_sub(USED).max(8)),
            )?;
        }
        if let Some(run) = rows.iter().find(|run| Some(&run.id) == self.selected.as_ref()) {
            details(&mut text, run, width)?;
        }
        for run in unheard {
            writeln!(text, "{run}")?;
        }
        Ok(text)
    }

    /// The last line: what was asked or said, or the keys.
    pub(super) fn footer(&self) -> String {
        let sorted = match self.sort {
            Sort::Age => "age",
            Sort::Decisions => "decisions",
            Sort::Denials => "denials",
            Sort::Name => "name",
        };
        match (&self.asked, self.message.as_str()) {
            (Some(run), _) => {
                format!("take everything from {run} and kill it? y does, any other key does not")
            }
            (None, "") => format!("q quits  ↑↓ select  s sorts (by {sorted})  r revokes"),
            (None, message) => visible(message),
        }
    }
}

fn details(text: &mut String, run: &RunSample, width: usize) -> std::fmt::Result {
    writeln!(text, "\n{} {}", visible(&run.id), visible(run.name.as_deref().unwrap_or_default()))?;
    super::about(text, run, width)?;
    writeln!(text, "{}", table(&run.rates))
}

/// A column for each interval, as high as it was beside the highest.
fn spark(history: &VecDeque<f64>) -> String {
    let most = history.iter().copied().fold(1.0, f64::max);
    let bar = |rate: &f64| BARS[((rate / most * 7.0).round() as usize).min(7)];
    history.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{Rate, UnheardSample};

    fn sample(runs: &[(&str, u64)]) -> Sample {
        let run = |(id, denied): &(&str, u64)| RunSample {
            id: (*id).to_owned(),
            name: None,
            command: vec!["true\u{1b}".into()],
            rates: Vec::new(),
            denied: *denied,
            most_denied: None,
            domains: [("main".to_owned(), 1)].into(),
        };
        let runs = runs.iter().map(run).collect();
        Sample { schema: "", at: String::new(), seconds: 1.0, runs, unheard: Vec::new() }
    }

    #[test]
    fn nothing_is_revoked_without_a_confirmation() {
        let mut view = View::default();
        view.take(sample(&[("one", 1), ("two", 2)]));
        assert_eq!(view.key(Key::Char(b'r')), None);
        assert!(view.footer().contains("take everything from one"), "{}", view.footer());
        assert_eq!(view.key(Key::Char(b'n')), None);
        view.key(Key::Down);
        view.key(Key::Char(b'r'));
        assert_eq!(view.key(Key::Char(b'y')).as_deref(), Some("two"));
        view.key(Key::Char(b'r'));
        view.take(sample(&[("one", 1)]));
        assert_eq!(view.key(Key::Char(b'y')), None, "it has ended meanwhile");
    }

    #[test]
    fn rows_are_sorted_on_demand_and_cannot_steer_the_terminal() {
        let mut view = View::default();
        view.take(sample(&[("one", 1), ("two", 2)]));
        let first = |view: &View| view.rows()[0].id.clone();
        assert_eq!(first(&view), "one");
        view.key(Key::Char(b's'));
        view.key(Key::Char(b's'));
        assert_eq!(first(&view), "two");
        let text = view.text(80).unwrap();
        assert!(text.contains("true\\u001b") && text.contains("> one"), "{text}");
    }

    #[test]
    fn a_run_that_does_not_answer_is_shown() {
        let mut view = View::default();
        for runs in [&[][..], &[("one", 1)]] {
            let mut sample = sample(runs);
            let (id, remedy) = ("two".to_owned(), "`kill -KILL 7` ends it".to_owned());
            sample.unheard = vec![UnheardSample { id, name: None, pid: 7, stopped: false, remedy }];
            view.take(sample);
            let text = view.text(80).unwrap();
            assert!(text.contains("two does not answer: `kill -KILL 7`"), "{text}");
        }
    }

    #[test]
    fn a_sparkline_is_as_high_as_the_highest() {
        assert_eq!(spark(&VecDeque::from([0.0, 50.0, 100.0])), "▁▅█");
        assert_eq!(spark(&VecDeque::from([0.0])), "▁");
    }

    #[test]
    fn the_screen_is_as_it_was_reviewed() {
        let mut view = View::default();
        for queries in [10.0, 400.0, 12_345.0] {
            let mut sample = sample(&[("4k7m2p9x", 30_001), ("81c0aa3e", 0)]);
            sample.runs[0].name = Some("nightly".into());
            sample.runs[0].command =
                "node agent.js --task make the tests pass and tell what you did"
                    .split(' ')
                    .map(str::to_owned)
                    .collect();
            let (manager, hint, cache, server) = ("file".into(), 900.0, 90.0, 9.0);
            sample.runs[0].rates = vec![Rate { manager, queries, hint, cache, server }];
            let most =
                "cat may not read or open /home/me/a/directory/that/lies/deep/in/the/home/file";
            sample.runs[0].most_denied = Some(most.into());
            view.take(sample);
        }
        crate::screens::screen("top", |width| {
            format!("{}{}\n", view.text(width).unwrap(), view.footer())
        });
    }
}
