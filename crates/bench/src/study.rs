//! The experiments of `dewar bench`: which units, in which workspaces, by which runners.

mod compiled;

use crate::{
    config::{Config, Kind},
    interrupt::Interrupt,
    machine::Machine,
    medium::{Medium, WorkspaceError},
    operation,
    pairs::{
        Aim, Experiment, ExperimentResult, Language, Launch, ProcessRunner, Processor, RawFile,
        Runner, RunnerError, Setting, Store, StoreError, Subject, Unit, WholeCommand,
        engine::{self, Standing},
    },
    sample, walk,
    worker::{self, Worker},
};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;

/// Files of the walk that are one unit.
const FILES: usize = 200;

/// How long a unit of single operations shall last natively.
const BATCH: Duration = Duration::from_millis(2);

/// The same of the classic suite.
const SUITE_BATCH: Duration = Duration::from_millis(5);

/// An experiment with what performs it.
pub struct Study {
    /// What is compared.
    pub experiment: Experiment,
    hands: Vec<Hand>,
    /// Removed when it is over.
    _workspaces: Vec<TempDir>,
}

/// How the units of one setting are performed.
enum Hand {
    /// In several places in turn, a place in each life.
    Stays(Vec<Launch>),
    Anew {
        prefix: Vec<OsString>,
        env: Vec<(String, String)>,
        directory: PathBuf,
        cpu_known: bool,
    },
}

/// Why a study did not take place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A workspace could not be made or filled.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Samples could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The first setting does not even perform its units.
    #[error("`{setting}` cannot be measured: {source}")]
    Reference {
        /// The setting with which all others are compared.
        setting: String,
        /// Why.
        source: RunnerError,
    },
    /// Signals cannot be noticed.
    #[error("cannot run the benchmark: {0}")]
    Run(#[from] std::io::Error),
}

/// What every study needs to know.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The settings; the first is what all others are compared with.
    pub configs: Vec<Config>,
    /// The program of runners.
    pub worker: Worker,
    /// Where workspaces lie.
    pub medium: Medium,
    /// When it is enough.
    pub aim: Aim,
}

impl Conditions {
    /// The build of the sample application: one unit is `make` of one object file, or of the
    /// program from all of them.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`].
    pub fn build(&self) -> Result<Study, StudyError> {
        let files = sample::files();
        let objects = files.iter().filter_map(|file| file.name.strip_suffix(".c"));
        let program = sample::PROGRAM.trim_start_matches("./");
        let made = objects.map(|name| format!("{name}.o")).chain([program.to_owned()]);
        let unit = |made: String| Unit::Command {
            argv: ["make", "-s", &made].map(str::to_owned).to_vec(),
            remove: vec![made],
            before: Vec::new(),
        };
        let subject =
            Subject { name: "build".to_owned(), units: made.map(unit).collect(), operations: 1.0 };
        let what =
            ("build", "build of the sample application", "make of one object file, or the link");
        self.staying(what, vec![subject], &|workspace| {
            sample::write(workspace)?;
            // Whatever unit comes first finds the others' results.
            let made =
                std::process::Command::new("make").arg("-s").current_dir(workspace).status()?;
            if made.success() {
                Ok(())
            } else {
                Err(std::io::Error::other("the sample cannot be built"))
            }
        })
    }

    /// The walk: one unit is 200 files, opened and looked at.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`].
    pub fn walk(&self) -> Result<Study, StudyError> {
        let places = (0..walk::FILES).step_by(FILES);
        let units = places.map(|from| Unit::Walk { from, count: FILES }).collect();
        let subject = Subject { name: "walk".to_owned(), units, operations: FILES as f64 };
        let what = ("walk", "open, fstat, read, close, access, stat of a file", "200 files");
        self.staying(what, vec![subject], &|workspace| walk::write_tree(workspace))
    }

    /// Single operations: one unit is about two milliseconds of one of them.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`].
    pub fn syscalls(&self) -> Result<Study, StudyError> {
        let subject = |name: &str| Subject {
            name: name.to_owned(),
            units: vec![Unit::Operation { name: name.to_owned(), times: 1 }],
            operations: 1.0,
        };
        let subjects = operation::NAMES.into_iter().map(subject).collect();
        let what = ("syscalls", "single system calls", "2 ms of one operation, natively");
        self.staying(what, subjects, &|_| Ok(()))
    }

    /// The start and end of `true`, each time with the whole setting around it.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`].
    pub fn start(&self) -> Result<Study, StudyError> {
        let what = ("start", "start and end of `true`", "one start");
        self.anew(what, &["true".to_owned()], &[])
    }

    /// Any command, each time with the whole setting around it, in the working directory.
    ///
    /// # Errors
    ///
    /// [`StudyError`].
    pub fn command(&self, command: &[String], undo: &[String]) -> Result<Study, StudyError> {
        let title = command.join(" ");
        let here = std::env::current_dir()?;
        let mut study = self.anew(("command", &title, "the whole command"), command, undo)?;
        study.work_in(&here, self);
        Ok(study)
    }

    /// Any command in the working directory, again and again in settings that stay.
    ///
    /// # Errors
    ///
    /// [`StudyError`].
    pub fn layers(&self, command: &[String], undo: &[String]) -> Result<Study, StudyError> {
        let here = std::env::current_dir()?;
        let argv = command.to_vec();
        let unit = Unit::Command { argv, remove: Vec::new(), before: undo.to_vec() };
        let subject = Subject { name: "run".to_owned(), units: vec![unit], operations: 1.0 };
        let title = format!("`{}`, layer by layer", command.join(" "));
        let experiment = self.experiment("run", &title, "the whole command", vec![subject]);
        let mut study = Study { experiment, hands: Vec::new(), _workspaces: Vec::new() };
        // A sandbox may hide where this program lies, but not the workspace: where other runs, and
        // who owns it, may exchange what lies there.
        let itself = self.worker.itself()?;
        let copied = if self.worker.is_everywhere() {
            None
        } else {
            worker::insist_on_own(&here)?;
            let inside = tempfile::Builder::new().prefix(".dewar-bench-").tempdir_in(&here)?;
            self.worker.install(inside.path())?;
            Some(inside)
        };
        for config in &self.configs {
            let copy = copied.as_ref().filter(|_| config.kind != Kind::Native);
            let runner = copy.map_or(itself.clone(), |it| self.worker.runner(it.path()));
            study.hands.push(Hand::Stays(vec![Launch {
                argv: config.command_line(&here, &runner),
                env: config.env.clone(),
                directory: here.clone(),
                language: Language::Json,
                processor: processor(config.kind),
            }]));
        }
        study._workspaces.extend(copied);
        Ok(study)
    }

    /// Native against native: whether the engine finds differences that are none. With `planted`,
    /// the second works so much longer: whether it finds one that is there.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`].
    pub fn against_itself(&self) -> Result<Study, StudyError> {
        let again = Config::new("native again", Kind::Native, &[], "the same once more");
        let configs = vec![Config::native(), again];
        let mut study = Self { configs, ..self.clone() }.walk()?;
        study.experiment.name = study.experiment.name.replace("walk", "self");
        study.experiment.title =
            "native against native: a difference found here would be a fault".to_owned();
        Ok(study)
    }

    /// Runners that stay, each in a workspace of its own. They change places at each start: where
    /// files lie makes a difference of its own, of some percent of a walk, that is no setting's.
    fn staying(
        &self,
        (name, title, unit): (&str, &str, &str),
        subjects: Vec<Subject>,
        fill: &dyn Fn(&Path) -> std::io::Result<()>,
    ) -> Result<Study, StudyError> {
        let workspace = |_: &Config| {
            self.medium.workspace(&|place| {
                self.worker.install(place)?;
                fill(place)
            })
        };
        let workspaces = self.configs.iter().map(workspace).collect::<Result<Vec<_>, _>>()?;
        let command = self.worker.runner(Path::new("."));
        let launch = |config: &Config, workspace: &TempDir| Launch {
            argv: config.command_line(workspace.path(), &command),
            env: config.env.clone(),
            directory: workspace.path().to_owned(),
            language: Language::Json,
            processor: processor(config.kind),
        };
        let hand = |(first, config): (usize, &Config)| {
            let places = workspaces.iter().cycle().skip(first).take(workspaces.len());
            Hand::Stays(places.map(|workspace| launch(config, workspace)).collect())
        };
        let hands = self.configs.iter().enumerate().map(hand).collect();
        let title = format!("{title} ({})", self.medium.name);
        let mut experiment = self.experiment(name, &title, unit, subjects);
        if self.medium == Medium::memory() {
            experiment.name += "-memory";
        }
        Ok(Study { experiment, hands, _workspaces: workspaces })
    }

    /// The whole setting anew for each unit.
    fn anew(
        &self,
        (name, title, unit): (&str, &str, &str),
        command: &[String],
        before: &[String],
    ) -> Result<Study, StudyError> {
        let workspace = self.medium.workspace(&|_| Ok(()))?;
        let argv = command.to_vec();
        let unit_of = Unit::Command { argv, remove: Vec::new(), before: before.to_vec() };
        let subject = Subject { name: name.to_owned(), units: vec![unit_of], operations: 1.0 };
        let mut study = Study {
            experiment: self.experiment(name, title, unit, vec![subject]),
            hands: Vec::new(),
            _workspaces: Vec::new(),
        };
        study.work_in(workspace.path(), self);
        study._workspaces.push(workspace);
        Ok(study)
    }

    fn experiment(
        &self,
        name: &str,
        title: &str,
        unit: &str,
        subjects: Vec<Subject>,
    ) -> Experiment {
        let setting = |config: &Config| Setting {
            name: config.name.clone(),
            description: config.description.clone(),
            kind: config.kind,
        };
        Experiment {
            name: name.to_owned(),
            title: title.to_owned(),
            unit: unit.to_owned(),
            subjects,
            settings: self.configs.iter().map(setting).collect(),
            aim: self.aim,
            seed: 1999,
            machine: Machine::here(),
            notes: Vec::new(),
        }
    }
}

/// Peers leave some of their processes to the kernel, which tells nobody what those took.
const fn processor(kind: Kind) -> Processor {
    match kind {
        Kind::Native => Processor::Own,
        Kind::Base | Kind::Dewar => Processor::AndMonitor,
        Kind::Peer => Processor::Unknown,
    }
}

impl Study {
    /// Lets whole commands run in `directory`.
    fn work_in(&mut self, directory: &Path, conditions: &Conditions) {
        let hand = |config: &Config| Hand::Anew {
            prefix: config.command_line(directory, &[]),
            env: config.env.clone(),
            directory: directory.to_owned(),
            cpu_known: config.kind != Kind::Peer,
        };
        self.hands = conditions.configs.iter().map(hand).collect();
    }

    /// Measures until it is enough; keeps samples in the file `raw`, or continues what is there.
    ///
    /// # Errors
    ///
    /// [`StudyError`]. A setting that fails is a row that says why.
    pub fn run(
        mut self,
        raw: Option<RawFile>,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Standing<'_>),
    ) -> Result<ExperimentResult, StudyError> {
        let mut runners: Vec<Box<dyn Runner + '_>> =
            self.hands.iter().map(|hand| hand.runner(interrupt)).collect();
        calibrate(&mut self.experiment, &mut *runners[0])?;
        let store = Store::open(raw, self.experiment.clone())?;
        Ok(engine::run(store, &mut runners, interrupt, progress)?)
    }
}

impl Hand {
    fn runner<'a>(&self, interrupt: &'a Interrupt) -> Box<dyn Runner + 'a> {
        match self {
            Self::Stays(launches) => Box::new(ProcessRunner::new(launches.clone(), interrupt)),
            Self::Anew { prefix, env, directory, cpu_known } => Box::new(WholeCommand {
                prefix: prefix.clone(),
                env: env.clone(),
                directory: directory.clone(),
                cpu_known: *cpu_known,
                interrupt,
            }),
        }
    }
}

/// Makes units of operations as long as they shall be under the first setting.
fn calibrate(experiment: &mut Experiment, runner: &mut dyn Runner) -> Result<(), StudyError> {
    let timeout = Duration::from_secs_f64(experiment.aim.timeout_s);
    for subject in &mut experiment.subjects {
        for unit in &mut subject.units {
            if !matches!(unit, Unit::Operation { .. } | Unit::Suite { .. }) {
                continue;
            }
            let reference = |source| StudyError::Reference {
                setting: experiment.settings[0].name.clone(),
                source,
            };
            let batch = if matches!(unit, Unit::Suite { .. }) { SUITE_BATCH } else { BATCH };
            *unit = engine::calibrate(runner, unit, batch, timeout).map_err(reference)?;
            subject.operations = unit.count();
        }
    }
    Ok(())
}
