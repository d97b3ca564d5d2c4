//! What came of an experiment: for every subject and setting, what it takes, against the first
//! setting and how surely.

use super::{
    Estimate, Experiment, Sample, Stop, Took, Verdict, estimate::LEAST_LIVES, store::Kept,
};
use crate::{config::Kind, statistics::Summary};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What came of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExperimentResult {
    /// What was compared.
    pub experiment: Experiment,
    /// Why it ended.
    pub stop: Stop,
    /// Seconds that it took.
    pub seconds: f64,
    /// By subject, then by setting.
    pub rows: Vec<Row>,
}

/// One subject under one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Row {
    /// Which subject.
    pub subject: usize,
    /// Which setting.
    pub setting: usize,
    /// Seconds of one operation; `None` if nothing was measured.
    pub wall_s: Option<Summary>,
    /// Seconds of processor time of one operation, where it is known.
    pub cpu_s: Option<Summary>,
    /// Seconds of one operation by the clock of whatever did the work, where it has one.
    #[serde(default)]
    pub inside_s: Option<Summary>,
    /// Against the first setting.
    pub wall: Option<Estimate>,
    /// Processor time against the first setting's, which other work on the machine disturbs less.
    pub cpu: Option<Estimate>,
    /// Against the setting without decisions, for one of Dewar's.
    pub base: Option<Estimate>,
    /// Why there is nothing more.
    pub failure: Option<String>,
}

impl Row {
    /// What may be said about its time.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.wall.as_ref().map_or(Verdict::TooFew, Estimate::verdict)
    }
}

impl ExperimentResult {
    /// The rows of one subject.
    pub fn of_subject(&self, subject: usize) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.subject == subject)
    }

    /// The name of a row's setting.
    #[must_use]
    pub fn setting(&self, row: &Row) -> &str {
        &self.experiment.settings[row.setting].name
    }

    /// The part that a row's setting plays.
    #[must_use]
    pub fn kind(&self, row: &Row) -> Kind {
        self.experiment.settings[row.setting].kind
    }

    /// The geometric mean over subjects of a setting's ratio, with that of its ends: an index as
    /// the classic suite has one, of time and not of speed. `None` if a subject lacks it.
    #[must_use]
    pub fn index(&self, setting: usize) -> Option<[f64; 3]> {
        let rows: Vec<&Estimate> = self
            .rows
            .iter()
            .filter(|row| row.setting == setting)
            .map(|row| row.wall.as_ref())
            .collect::<Option<_>>()?;
        if rows.is_empty() {
            return None;
        }
        let count = rows.len() as f64;
        let value = rows.iter().map(|e| e.ratio.ln()).sum::<f64>() / count;
        // Subjects are measured apart, so their errors add up as squares.
        let side = |of: fn(&Estimate) -> f64| {
            rows.iter().map(|e| (of(e) / e.ratio).ln().powi(2)).sum::<f64>().sqrt() / count
        };
        let (below, above) = (side(|e| e.low), side(|e| e.high));
        Some([value.exp(), (value - below).exp(), (value + above).exp()])
    }
}

/// Makes an outcome of what was kept.
#[must_use]
pub fn of(kept: &Kept) -> ExperimentResult {
    let mut rows = Vec::new();
    for subject in 0..kept.experiment.subjects.len() {
        for setting in 0..kept.experiment.settings.len() {
            rows.push(row(kept, subject, setting));
        }
    }
    let Kept { experiment, stop, seconds, .. } = kept.clone();
    ExperimentResult { experiment, stop, seconds, rows }
}

fn row(kept: &Kept, subject: usize, setting: usize) -> Row {
    let operations = kept.experiment.subjects[subject].operations;
    let mine = counting(&kept.samples, subject, setting);
    let summary = |of: &dyn Fn(&Took) -> Option<f64>| {
        let numbers: Option<Vec<f64>> = mine.values().map(|(_, took)| of(took)).collect();
        Summary::of(&numbers?.into_iter().map(|s| s / operations).collect::<Vec<f64>>())
    };
    let against = |other: usize, of: &dyn Fn(&Took) -> Option<f64>| {
        let lives = lives(kept, subject, setting, other, of)?;
        (setting != other).then(|| lives.estimate()).flatten()
    };
    let settings = &kept.experiment.settings;
    let base = settings.iter().position(|it| it.kind == Kind::Base);
    let base = base.filter(|_| settings[setting].kind == Kind::Dewar);
    let inside: Vec<f64> =
        mine.values().filter_map(|(_, took)| took.inside_s).map(|s| s / operations).collect();
    Row {
        subject,
        setting,
        wall_s: summary(&|took| Some(took.wall_s)),
        cpu_s: summary(&|took| took.cpu_s),
        inside_s: Summary::of(&inside),
        wall: against(0, &|took| Some(took.wall_s)),
        cpu: against(0, &|took| took.cpu_s),
        base: base.and_then(|base| against(base, &|took| Some(took.wall_s))),
        failure: kept.failure(subject, setting).map(str::to_owned),
    }
}

/// What counts of one subject under one setting, by round, and the life it was in.
fn counting(
    samples: &[Sample],
    subject: usize,
    setting: usize,
) -> BTreeMap<usize, (Option<usize>, Took)> {
    samples
        .iter()
        .filter(|s| s.subject == subject && s.setting == setting && !s.warm)
        .map(|s| (s.round, (s.life, s.took)))
        .collect()
}

/// Pairs of what rounds took under two settings.
pub(super) struct Lives {
    /// By life of the runners, if they have any; all in one, if not.
    pub(super) pairs: Vec<Vec<(f64, f64)>>,
    /// Whether they have any.
    pub(super) renewed: bool,
}

impl Lives {
    /// What they say.
    pub(super) fn estimate(&self) -> Option<Estimate> {
        if self.renewed {
            Estimate::of_lives(&self.pairs)
        } else {
            Estimate::of(&self.pairs.concat())
        }
    }
}

/// What each round took under a setting, and under another. `None` if one took what is not known.
fn lives(
    kept: &Kept,
    subject: usize,
    setting: usize,
    other: usize,
    of: &dyn Fn(&Took) -> Option<f64>,
) -> Option<Lives> {
    let reference = counting(&kept.samples, subject, other);
    let mine = counting(&kept.samples, subject, setting);
    let mut by_life: BTreeMap<Option<usize>, Vec<(f64, f64)>> = BTreeMap::new();
    for (round, (life, took)) in &mine {
        if let Some((_, compared)) = reference.get(round) {
            by_life.entry(*life).or_default().push((of(took)?, of(compared)?));
        }
    }
    let renewed = by_life.keys().any(Option::is_some);
    Some(Lives { pairs: by_life.into_values().collect(), renewed })
}

/// What each round took in wall time under a setting, and under the first.
pub(super) fn lives_of(kept: &Kept, subject: usize, setting: usize) -> Option<Lives> {
    lives(kept, subject, setting, 0, &|took| Some(took.wall_s))
}

/// Half of the width of the widest interval of a subject; `None` before there are all of them, or
/// too few lives.
pub(super) fn widest(kept: &Kept, experiment: &Experiment, subject: usize) -> Option<f64> {
    let mut widest = None;
    for setting in 1..experiment.settings.len() {
        if kept.failure(subject, setting).is_some() {
            continue;
        }
        let lives = lives_of(kept, subject, setting)?;
        if lives.renewed && lives.pairs.len() < LEAST_LIVES {
            return None;
        }
        let width = lives.estimate()?.half_width();
        widest = Some(f64::max(width, widest.unwrap_or_default()));
    }
    widest
}
