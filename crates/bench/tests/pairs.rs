//! The engine as benchmarks use it: on noise that is made, on processes, interrupted, and
//! continued.

use bench::{
    config::Kind,
    interrupt::Interrupt,
    machine::Machine,
    pairs::{
        Aim, Experiment, ExperimentResult, Language, Launch, ProcessRunner, Processor, RawFile,
        Runner, RunnerError, Setting, Stop, Store, StoreError, Subject, Took, Unit, Verdict,
        engine, read,
    },
};
use rustix::process::{Signal, getpid, kill_process};
use std::{
    collections::BTreeSet,
    env,
    fs::File,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

/// Interrupts are for the whole process, and so tests that notice them come one after another.
static ALONE: Mutex<()> = Mutex::new(());

/// Takes a time that is made: noise that it shares with its neighbours, and noise of its own.
struct Made {
    state: u64,
    effect: f64,
    fails_after: usize,
    /// What chance laid down at its start, at most; 0 if it does not stay.
    chance: f64,
    born: f64,
}

impl Made {
    fn new(seed: u64, effect: f64) -> Self {
        Self { state: seed, effect, fails_after: usize::MAX, chance: 0.0, born: 0.0 }
    }

    fn runner(seed: u64, effect: f64) -> Box<dyn Runner> {
        Box::new(Self::new(seed, effect))
    }

    fn staying(seed: u64, effect: f64) -> Box<dyn Runner> {
        let mut made = Self { chance: 0.03, ..Self::new(seed, effect) };
        made.renew();
        Box::new(made)
    }

    fn draw(&mut self) -> f64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) as f64 / f64::from(1_u32 << 31)
    }
}

impl Runner for Made {
    fn perform(&mut self, unit: &Unit, _: Duration) -> Result<Took, RunnerError> {
        self.fails_after = self.fails_after.saturating_sub(1);
        if self.fails_after == 0 {
            return Err(RunnerError::Unit("no more".to_owned()));
        }
        let noise = 1.0 + 0.1 * (self.draw() + self.draw() - 1.0);
        let disturbed = if self.draw() < 0.1 { 1.0 + self.draw() } else { 1.0 };
        let wall_s = unit.count() * 1e-3 * self.effect * (1.0 + self.born) * noise * disturbed;
        Ok(Took { wall_s, cpu_s: None, inside_s: None })
    }

    fn stays(&self) -> bool {
        self.chance > 0.0
    }

    fn renew(&mut self) {
        self.born = self.chance * (self.draw() + self.draw() - 1.0);
    }
}

fn experiment(settings: &[(&str, Kind)], subjects: &[&str]) -> Experiment {
    let setting = |(name, kind): &(&str, Kind)| Setting {
        name: (*name).to_owned(),
        description: String::new(),
        kind: *kind,
    };
    let subject = |name: &&str| Subject {
        name: (*name).to_owned(),
        units: (1..4).map(|times| Unit::Operation { name: (*name).to_owned(), times }).collect(),
        operations: 1.0,
    };
    Experiment {
        name: "made".to_owned(),
        title: "made noise".to_owned(),
        unit: "a number".to_owned(),
        subjects: subjects.iter().map(subject).collect(),
        settings: settings.iter().map(setting).collect(),
        aim: Aim {
            half_width: 0.01,
            budget_s: 60.0,
            least: 30,
            most: None,
            timeout_s: 10.0,
            life_s: 0.0,
        },
        seed: 7,
        machine: Machine::here(),
        notes: Vec::new(),
    }
}

const TWO: [(&str, Kind); 2] = [("native", Kind::Native), ("other", Kind::Dewar)];

fn run(store: Store, mut runners: Vec<Box<dyn Runner>>) -> ExperimentResult {
    let interrupt = Interrupt::notice().expect("signals can be noticed");
    engine::run(store, &mut runners, &interrupt, &mut |_| {}).expect("samples are kept")
}

#[test]
fn equal_settings_are_not_ranked_and_an_effect_of_two_percent_is() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (mut held, mut found) = (0, 0);
    for seed in 0..20 {
        let plan = experiment(&TWO, &["one"]);
        let same = run(
            Store::nowhere(plan.clone()),
            vec![Made::runner(seed, 1.0), Made::runner(!seed, 1.0)],
        );
        held += usize::from(same.rows[1].wall.expect("pairs").holds(1.0));
        let more =
            run(Store::nowhere(plan), vec![Made::runner(seed, 1.0), Made::runner(!seed, 1.02)]);
        assert_eq!(more.stop, Stop::Narrow);
        let estimate = more.rows[1].wall.expect("pairs");
        assert!(estimate.half_width() <= 0.01, "{estimate:?}");
        found += usize::from(estimate.verdict() == Verdict::Slower);
    }
    assert!(held >= 19 && found >= 19, "held {held}, found {found} of 20");
}

#[test]
fn what_chance_lays_down_at_the_start_of_a_process_is_no_difference() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (mut held, mut ranked, mut found) = (0, 0, 0);
    for seed in 0..20 {
        let plan = experiment(&TWO, &["one"]);
        let runners = |effect| vec![Made::staying(seed, 1.0), Made::staying(!seed, effect)];
        let same = run(Store::nowhere(plan.clone()), runners(1.0));
        held += usize::from(same.rows[1].wall.expect("pairs").holds(1.0));
        let verdict = same.rows[1].verdict();
        ranked += usize::from(!matches!(verdict, Verdict::NoDifference { .. }));
        let more = run(Store::nowhere(plan), runners(1.03));
        found += usize::from(more.rows[1].verdict() == Verdict::Slower);
    }
    assert!(held >= 19 && ranked <= 1 && found >= 19, "{held}, {ranked}, {found} of 20");
}

#[test]
fn that_dewar_took_less_than_the_command_alone_is_not_to_be_believed() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let outcome = |kind, effect| {
        let plan = experiment(&[TWO[0], ("other", kind)], &["one"]);
        run(Store::nowhere(plan), vec![Made::runner(1, 1.0), Made::runner(2, effect)])
    };
    let told = outcome(Kind::Dewar, 0.6);
    assert_eq!(told.rows[1].verdict(), Verdict::Faster);
    let said = told.unbelievable().expect("a warning");
    assert!(said.contains("`other` took less time than the command alone"), "{said}");
    let sheets = format!("{:?}", told.sheets());
    assert!(sheets.contains("not to be believed") && !sheets.contains("faster"), "{sheets}");
    for (kind, effect) in [(Kind::Dewar, 1.4), (Kind::Peer, 0.6)] {
        assert_eq!(outcome(kind, effect).unbelievable(), None);
    }
}

/// Stays, and takes its time.
struct Slow(Made);

impl Runner for Slow {
    fn perform(&mut self, unit: &Unit, timeout: Duration) -> Result<Took, RunnerError> {
        std::thread::sleep(Duration::from_millis(4));
        self.0.perform(unit, timeout)
    }

    fn stays(&self) -> bool {
        true
    }

    fn renew(&mut self) {
        self.0.renew();
    }
}

/// Samples in the file `path`.
fn store(path: &Path, plan: Experiment) -> Result<Store, StoreError> {
    let open = |path: &Path| {
        File::options().read(true).write(true).create(true).truncate(false).open(path)
    };
    Store::open(Some(RawFile { path: path.to_owned(), open }), plan)
}

#[test]
fn little_time_is_shared_among_as_many_lives_as_a_figure_takes() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut plan = experiment(&TWO, &["one", "two"]);
    plan.aim = Aim { half_width: 1e-9, budget_s: 1.5, life_s: 1.0, ..plan.aim };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("made.jsonl");
    let slow = |seed| -> Box<dyn Runner> { Box::new(Slow(Made::new(seed, 1.0))) };
    let outcome = run(store(&path, plan).expect("a file"), vec![slow(1), slow(2)]);
    assert_eq!(outcome.stop, Stop::Budget);
    let samples = read(&path).expect("samples").samples;
    let lives: BTreeSet<_> = samples.iter().filter_map(|sample| sample.life).collect();
    assert!(lives.len() >= 8, "{lives:?}");
    assert!([1, 3].iter().all(|row| outcome.rows[*row].wall.is_some()));
}

#[test]
fn it_ends_when_the_budget_is_spent_and_says_so() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut plan = experiment(&TWO, &["one", "two"]);
    plan.aim = Aim { half_width: 1e-9, budget_s: 0.2, ..plan.aim };
    let outcome = run(Store::nowhere(plan), vec![Made::runner(1, 1.0), Made::runner(2, 1.5)]);
    assert_eq!(outcome.stop, Stop::Budget);
    assert!(outcome.seconds >= 0.2, "{}", outcome.seconds);
    let [one, two] = [1, 3].map(|row| outcome.rows[row].wall.expect("pairs").pairs);
    assert!(one.abs_diff(two) <= 3, "subjects take turns: {one}, {two}");
}

/// To make what is measured ready may take longer than what there is.
#[test]
fn however_little_time_there_is_something_is_measured() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut plan = experiment(&TWO, &["one", "two"]);
    plan.aim = Aim { half_width: 1e-9, budget_s: 0.0, ..plan.aim };
    let outcome = run(Store::nowhere(plan), vec![Made::runner(1, 1.0), Made::runner(2, 1.5)]);
    assert_eq!(outcome.stop, Stop::Budget);
    assert!([1, 3].iter().all(|row| outcome.rows[*row].wall.is_some()));
}

#[test]
fn a_setting_that_fails_is_a_row_that_says_why_and_the_others_go_on() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let three = [TWO[0], TWO[1], ("peer", Kind::Peer)];
    let failing: Box<dyn Runner> = Box::new(Made { fails_after: 10, ..Made::new(1, 1.0) });
    let runners = vec![Made::runner(1, 1.0), Made::runner(2, 1.2), failing];
    let outcome = run(Store::nowhere(experiment(&three, &["one"])), runners);
    assert_eq!(outcome.stop, Stop::Narrow);
    assert_eq!(outcome.rows[2].failure.as_deref(), Some("no more"));
    assert_eq!(outcome.rows[1].verdict(), Verdict::Slower);
}

#[test]
fn what_was_begun_is_continued_and_a_broken_last_line_is_forgotten() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("made.jsonl");
    let mut plan = experiment(&TWO, &["one"]);
    plan.aim = Aim { half_width: 1e-9, budget_s: 0.05, ..plan.aim };
    let runners = || vec![Made::runner(1, 1.0), Made::runner(2, 1.0)];
    run(store(&path, plan.clone()).expect("a file"), runners());
    let first = read(&path).expect("samples");
    let text = std::fs::read_to_string(&path).expect("a file");
    std::fs::write(&path, text + "{\"sample\":{\"rou").expect("a file");
    plan.aim.budget_s = 0.1;
    let outcome = run(store(&path, plan.clone()).expect("a file"), runners());
    let second = read(&path).expect("samples");
    assert!(second.samples.len() > first.samples.len());
    assert_eq!(second.samples[..first.samples.len()], first.samples);
    assert!(second.samples.is_sorted_by_key(|sample| sample.round));
    assert!(outcome.seconds >= 0.1);
    plan.settings[1].name = "another".to_owned();
    let error = store(&path, plan).expect_err("it is another experiment").to_string();
    assert!(error.contains("other settings"), "{error}");
}

#[test]
fn after_ctrl_c_every_whole_round_is_kept() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("made.jsonl");
    let mut plan = experiment(&TWO, &["one"]);
    plan.aim = Aim { half_width: 1e-9, budget_s: 600.0, ..plan.aim };
    let store = store(&path, plan).expect("a file");
    let interrupt = Interrupt::notice().expect("signals can be noticed");
    let mut runners = vec![Made::runner(1, 1.0), Made::runner(2, 1.0)];
    let outcome = engine::run(store, &mut runners, &interrupt, &mut |standing| {
        if standing.rounds == 40 {
            kill_process(getpid(), Signal::INT).expect("it is this process");
        }
    });
    assert_eq!(outcome.expect("samples are kept").stop, Stop::Interrupted);
    let kept = read(&path).expect("samples");
    assert!(
        kept.samples.len() >= 80 && kept.samples.len().is_multiple_of(2),
        "{}",
        kept.samples.len()
    );
}

fn process(argv: &[&str], directory: &std::path::Path) -> Box<dyn Runner> {
    let interrupt = Interrupt::notice().expect("signals can be noticed");
    let test = env::current_exe().expect("a path");
    let program: PathBuf = test.ancestors().nth(2).expect("two up").join("examples/measure");
    let words = argv.iter().map(Into::into);
    let launch = Launch {
        argv: words.chain([program.into(), "worker".into(), "runner".into()]).collect(),
        env: Vec::new(),
        directory: directory.to_owned(),
        language: Language::Json,
        processor: Processor::Own,
    };
    Box::new(ProcessRunner::new(vec![launch], &interrupt))
}

#[test]
fn stations_are_processes_that_stay_and_a_missing_one_is_named() {
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let patience = Duration::from_secs(20);
    let mut runner = process(&["env", "A=1"], directory.path());
    let unit = Unit::command(&["sh", "-c", "echo $PPID >> parents; test \"$A\" = 1"]);
    for _ in 0..3 {
        assert!(runner.perform(&unit, patience).expect("it runs").cpu_s.is_some());
    }
    let parents = std::fs::read_to_string(directory.path().join("parents")).expect("a file");
    assert!(parents.lines().all(|line| Some(line) == parents.lines().next()), "{parents}");
    let error = process(&["no-such-sandbox"], directory.path()).perform(&unit, patience);
    assert!(error.expect_err("not there").to_string().contains("cannot start `no-such-sandbox`"));
    let ends = ["sh", "-c", "echo no luck >&2; exit 1"];
    let error = process(&ends, directory.path()).perform(&unit, patience).expect_err("it ends");
    assert_eq!(error.to_string(), "the runner ended: no luck");
    let hangs = Unit::command(&["sleep", "20"]);
    let error = runner.perform(&hangs, Duration::from_millis(300)).expect_err("it hangs");
    assert!(matches!(error, RunnerError::Timeout(_)), "{error}");
}
