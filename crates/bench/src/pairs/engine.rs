//! Rounds until it is enough.

use super::{
    Experiment, ExperimentResult, Failure, Kept, Runner, RunnerError, Sample, Stop, Store,
    StoreError, Unit,
    estimate::LEAST_LIVES,
    outcome::{self, widest},
};
use crate::{interrupt::Interrupt, random::Random};
use std::time::{Duration, Instant};

/// Rounds of each subject in one life of the runners, and passes through its units: the first of
/// each unit does not count.
const LIFE_ROUNDS: usize = 20;
const LIFE_PASSES: usize = 4;

/// How it stands, after each round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing<'a> {
    /// Rounds so far.
    pub rounds: usize,
    /// What was just measured.
    pub subject: &'a str,
    /// Half of the width of the widest interval, as soon as there is one.
    pub half_width: Option<f64>,
    /// What it shall be.
    pub aim: f64,
    /// Seconds so far.
    pub spent_s: f64,
    /// Seconds that are left at most.
    pub left_s: f64,
}

/// Performs rounds until every interval is narrow enough, the budget is spent, or somebody
/// interrupts; tells `progress` after each. `runners` are those of the experiment's settings, in
/// their order. What `store` already holds counts.
///
/// # Errors
///
/// [`StoreError`], when samples cannot be kept. A setting that fails is a row that says why, not an
/// error.
pub fn run(
    mut store: Store,
    runners: &mut [Box<dyn Runner + '_>],
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(Standing<'_>),
) -> Result<ExperimentResult, StoreError> {
    let experiment = store.kept().experiment.clone();
    let stay = runners.iter().any(|runner| runner.stays());
    let mut rounds = Rounds::of(&experiment, &store, stay);
    let begin = Instant::now();
    let before = store.kept().seconds;
    let stop = loop {
        let spent = before + begin.elapsed().as_secs_f64();
        if let Some(stop) = rounds.enough(&experiment, &store, spent) {
            break stop;
        }
        if rounds.has_lived(&experiment, &store) {
            runners.iter_mut().for_each(|runner| runner.renew());
            rounds.begin_life();
        }
        let subject = rounds.next_subject(&experiment, &store);
        match round(&experiment, subject, &mut rounds, &mut store, runners, interrupt) {
            Err(RunnerError::Interrupted) => break Stop::Interrupted,
            _ if interrupt.happened() => break Stop::Interrupted,
            _ => {}
        }
        store.flush()?;
        rounds.look(&experiment, &store, subject);
        let spent_s = before + begin.elapsed().as_secs_f64();
        progress(rounds.standing(&experiment, subject, spent_s));
    };
    store.end(stop, before + begin.elapsed().as_secs_f64())?;
    Ok(outcome::of(&store.into_kept()))
}

/// Where the rounds are.
struct Rounds {
    random: Random,
    done: usize,
    /// How often the runners were started anew; `None` if none stays.
    life: Option<usize>,
    life_began: Instant,
    /// For each subject: how many rounds, when it is looked at next, and what was seen.
    subjects: Vec<Looked>,
}

#[derive(Default)]
struct Looked {
    rounds: usize,
    /// Of them, those in this life of the runners.
    of_life: usize,
    next_look: usize,
    half_width: Option<f64>,
    /// Units of this pass that are still to come.
    units: Vec<usize>,
    /// Settings that have performed each unit in this life.
    warm: std::collections::HashSet<(usize, usize)>,
}

impl Rounds {
    fn of(experiment: &Experiment, store: &Store, stay: bool) -> Self {
        let samples = &store.kept().samples;
        let last = samples.iter().filter_map(|sample| sample.life).max();
        let life = stay.then(|| last.map_or(0, |last| last + 1));
        let done = samples.last().map_or(0, |sample| sample.round + 1);
        // What was begun is continued, and not repeated.
        let random = Random::new(experiment.seed ^ (done as u64) << 20);
        let mut subjects: Vec<Looked> = experiment
            .subjects
            .iter()
            .map(|_| Looked { next_look: 1, ..Looked::default() })
            .collect();
        for sample in samples.iter().filter(|sample| sample.setting == 0 && !sample.warm) {
            subjects[sample.subject].rounds += 1;
        }
        let mut rounds = Self { random, done, life, life_began: Instant::now(), subjects };
        for subject in 0..rounds.subjects.len() {
            rounds.look(experiment, store, subject);
        }
        rounds
    }

    /// Whether the runners have lived long enough: so long as the aim says, and so many rounds of
    /// each subject that is still open. Where rounds are counted, they are shared among lives; so
    /// is the time, where there is little.
    fn has_lived(&self, experiment: &Experiment, store: &Store) -> bool {
        let shared = experiment.aim.most.map(|most| most.div_ceil(LEAST_LIVES));
        let age = self.life_began.elapsed().as_secs_f64();
        let late = age >= experiment.aim.budget_s / (LEAST_LIVES + 1) as f64;
        let lived = |it: usize| {
            let passes = LIFE_PASSES * experiment.subjects[it].units.len();
            let enough = if late { 1 } else { passes.max(LIFE_ROUNDS) };
            self.subjects[it].of_life >= shared.unwrap_or(enough)
        };
        let old = late || age >= experiment.aim.life_s;
        self.life.is_some() && (old || shared.is_some()) && self.open(experiment, store).all(lived)
    }

    fn begin_life(&mut self) {
        self.life = self.life.map(|life| life + 1);
        self.life_began = Instant::now();
        for looked in &mut self.subjects {
            looked.of_life = 0;
            looked.warm.clear();
        }
    }

    /// Subjects that need more.
    fn open(&self, experiment: &Experiment, store: &Store) -> impl Iterator<Item = usize> {
        (0..self.subjects.len())
            .filter(|subject| is_left(experiment, store.kept(), *subject))
            .filter(|subject| !self.is_narrow(experiment, *subject))
    }

    /// Why no more is needed, if so.
    fn enough(&self, experiment: &Experiment, store: &Store, spent: f64) -> Option<Stop> {
        let left = |subject: &usize| is_left(experiment, store.kept(), *subject);
        if !(0..self.subjects.len()).any(|subject| left(&subject)) {
            return Some(Stop::Failed);
        }
        if (0..self.subjects.len()).filter(left).all(|it| self.is_narrow(experiment, it)) {
            return Some(Stop::Narrow);
        }
        let many = |subject: usize| {
            experiment.aim.most.is_some_and(|most| self.subjects[subject].rounds >= most)
        };
        let all = (0..self.subjects.len()).filter(left).all(many);
        // To prepare may take all of the time, and fewer rounds are no figure.
        let figure = |subject: usize| self.subjects[subject].rounds >= LEAST_LIVES;
        let is_spent =
            spent >= experiment.aim.budget_s && (0..self.subjects.len()).filter(left).all(figure);
        (all || is_spent).then_some(Stop::Budget)
    }

    fn is_narrow(&self, experiment: &Experiment, subject: usize) -> bool {
        let looked = &self.subjects[subject];
        let narrow = looked.half_width.is_some_and(|width| width <= experiment.aim.half_width);
        narrow && looked.rounds >= experiment.aim.least
    }

    /// In turn, of those that need more.
    fn next_subject(&self, experiment: &Experiment, store: &Store) -> usize {
        let open = self.open(experiment, store);
        open.min_by_key(|subject| self.subjects[*subject].rounds).unwrap_or_default()
    }

    fn next_unit(&mut self, experiment: &Experiment, subject: usize) -> usize {
        let looked = &mut self.subjects[subject];
        if looked.units.is_empty() {
            looked.units = (0..experiment.subjects[subject].units.len()).collect();
            self.random.shuffle(&mut looked.units);
        }
        looked.units.pop().unwrap_or_default()
    }

    /// Looks at a subject's intervals, ever more seldom: looking costs, and looking often misleads.
    fn look(&mut self, experiment: &Experiment, store: &Store, subject: usize) {
        let looked = &mut self.subjects[subject];
        if looked.rounds >= looked.next_look {
            looked.half_width = widest(store.kept(), experiment, subject);
            looked.next_look = looked.rounds + (looked.rounds / 10).max(5);
        }
    }

    fn standing<'a>(
        &self,
        experiment: &'a Experiment,
        subject: usize,
        spent_s: f64,
    ) -> Standing<'a> {
        let widths = self.subjects.iter().map(|looked| looked.half_width);
        let half_width =
            widths.collect::<Option<Vec<f64>>>().map(|it| it.into_iter().fold(0.0, f64::max));
        let aim = experiment.aim.half_width;
        let rest: f64 = self.subjects.iter().map(|looked| looked.needed(experiment)).sum();
        let each = spent_s / self.done.max(1) as f64;
        let left_s = (rest * each).min(experiment.aim.budget_s - spent_s).max(0.0);
        let subject = experiment.subjects[subject].name.as_str();
        Standing { rounds: self.done, subject, half_width, aim, spent_s, left_s }
    }
}

impl Looked {
    /// Rounds that are still to come: an interval shrinks by the root of their number.
    fn needed(&self, experiment: &Experiment) -> f64 {
        let least = experiment.aim.least.saturating_sub(self.rounds) as f64;
        let Some(width) = self.half_width else { return least.max(1e6) };
        let ratio = (width / experiment.aim.half_width).powi(2);
        ((ratio - 1.0) * self.rounds as f64).max(least).max(0.0)
    }
}

/// Whether a subject still has the first setting and one that can be compared with it.
fn is_left(experiment: &Experiment, kept: &Kept, subject: usize) -> bool {
    let works = |setting: usize| kept.failure(subject, setting).is_none();
    works(0) && (experiment.settings.len() == 1 || (1..experiment.settings.len()).any(works))
}

/// One unit under every setting.
fn round(
    experiment: &Experiment,
    subject: usize,
    rounds: &mut Rounds,
    store: &mut Store,
    runners: &mut [Box<dyn Runner + '_>],
    interrupt: &Interrupt,
) -> Result<(), RunnerError> {
    let unit = rounds.next_unit(experiment, subject);
    let mut order: Vec<usize> = (0..runners.len()).collect();
    rounds.random.shuffle(&mut order);
    let asked = &experiment.subjects[subject].units[unit];
    let timeout = Duration::from_secs_f64(experiment.aim.timeout_s);
    let mut samples = Vec::new();
    for (turn, setting) in order.into_iter().enumerate() {
        if store.kept().failure(subject, setting).is_some() {
            continue;
        }
        if interrupt.happened() {
            return Err(RunnerError::Interrupted);
        }
        match runners[setting].perform(asked, timeout) {
            Ok(took) => {
                // Files that a monitor sees for the first time are another matter; compilations all
                // begin alike.
                let first = if matches!(asked, Unit::Walk { .. }) { unit } else { 0 };
                let warm = rounds.subjects[subject].warm.insert((setting, first));
                samples.push(Sample {
                    round: rounds.done,
                    subject,
                    unit,
                    setting,
                    turn,
                    life: rounds.life,
                    warm,
                    took,
                });
            }
            Err(RunnerError::Interrupted) => return Err(RunnerError::Interrupted),
            Err(error) => {
                // What refuses one unit may perform others; what has ended does not.
                let subject = matches!(error, RunnerError::Unit(_)).then_some(subject);
                store.failure(Failure { setting, subject, why: error.to_string() });
            }
        }
    }
    // Only whole rounds are kept.
    let counts = usize::from(samples.iter().any(|s| s.setting == 0 && !s.warm));
    rounds.subjects[subject].rounds += counts;
    rounds.subjects[subject].of_life += counts;
    rounds.done += 1;
    samples.into_iter().for_each(|sample| store.sample(sample));
    Ok(())
}

/// The unit, so many times as often that `runner` takes about as long as `target` for it.
///
/// # Errors
///
/// [`RunnerError`].
pub fn calibrate(
    runner: &mut dyn Runner,
    unit: &Unit,
    target: Duration,
    timeout: Duration,
) -> Result<Unit, RunnerError> {
    let mut unit = unit.clone();
    let target = target.as_secs_f64();
    for _ in 0..40 {
        let took = runner.perform(&unit, timeout)?.wall_s;
        if took >= target / 2.0 || matches!(unit, Unit::Command { .. } | Unit::Walk { .. }) {
            return Ok(unit.times(target / took));
        }
        unit = unit.times((target / took.max(1e-9)).clamp(2.0, 10.0));
    }
    Ok(unit)
}
