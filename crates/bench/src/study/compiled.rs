//! Experiments on what is compiled here first: the classic suite, and the sample application, by
//! each compiler.

use super::{Conditions, Hand, Study, StudyError, processor};
use crate::{
    classic,
    config::{Config, Kind},
    harden::Build,
    pairs::{Language, Launch, Setting, Subject, Unit},
    project, sample,
};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// How often the sample application runs in one unit: once is over before it can be timed.
const RUNS: usize = 20;

impl Conditions {
    /// The classic suite, compiled by the system's compiler, under every setting.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`], also when the suite cannot be compiled.
    pub fn unix(&self) -> Result<Study, StudyError> {
        let what = ("unix", "classic suite", "5 ms of one test, natively");
        let study = self.experiment(what.0, what.1, what.2, classic::subjects(&classic::TESTS));
        let mut study = Study { experiment: study, hands: Vec::new(), _workspaces: Vec::new() };
        for config in &self.configs {
            let words = ["cc", "-O2"];
            let workspace =
                self.suite_in(config, &mut study, &|place| classic::compile(&words, place))?;
            study._workspaces.push(workspace);
        }
        Ok(study)
    }

    /// The part of the classic suite that depends on how it is compiled, natively, by every build.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`]. A build that the compiler refuses is a row that says why.
    pub fn harden(&self, builds: &[Build]) -> Result<Study, StudyError> {
        let tests: Vec<classic::Test> =
            classic::TESTS.into_iter().filter(|test| test.own_code).collect();
        let unit = "5 ms of one test, natively";
        let title = "classic suite by compilers and protections";
        let mut experiment = self.experiment("harden", title, unit, classic::subjects(&tests));
        experiment.settings = settings(builds);
        let mut study = Study { experiment, hands: Vec::new(), _workspaces: Vec::new() };
        for build in builds {
            let native = Config::native();
            let workspace = self.suite_in(&native, &mut study, &|place| build.compile(place))?;
            study._workspaces.push(workspace);
        }
        Ok(study)
    }

    /// The sample application by every build: one unit is a compilation of one of its files, or
    /// some runs of it.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`]. A build that the compiler refuses is a row that says why.
    pub fn harden_sample(&self, builds: &[Build]) -> Result<Study, StudyError> {
        let files = sample::files();
        let objects = files.iter().filter_map(|file| file.name.strip_suffix(".c"));
        let compile = objects.map(|name| Unit::Command {
            argv: ["make", "-s", &format!("{name}.o")].map(str::to_owned).to_vec(),
            remove: vec![format!("{name}.o")],
            before: Vec::new(),
        });
        let again =
            format!("for i in $(seq {RUNS}); do {} > /dev/null || exit; done", sample::PROGRAM);
        let run = Unit::command(&["sh", "-c", &again]);
        let subjects = vec![
            Subject { name: "it runs".to_owned(), units: vec![run], operations: RUNS as f64 },
            Subject {
                name: "a file of it is compiled".to_owned(),
                units: compile.collect(),
                operations: 1.0,
            },
        ];
        let title = "sample application by compilers and protections";
        let unit = "one compilation, or 20 runs";
        let mut experiment = self.experiment("harden-sample", title, unit, subjects);
        experiment.settings = settings(builds);
        let mut study = Study { experiment, hands: Vec::new(), _workspaces: Vec::new() };
        for build in builds {
            let workspace = self.medium.workspace(&|place| {
                self.worker.install(place)?;
                sample::write(place)?;
                build.write_makefile(place)
            })?;
            let mut argv = self.worker.runner(Path::new("."));
            // Whatever unit comes first finds the program. What the compiler refuses is a runner
            // that does not start.
            let made = ["sh", "-c", "make -s >&2 && exec \"$@\"", "made"].map(OsString::from);
            argv.splice(0..0, made);
            study.hands.push(Hand::Stays(vec![Launch {
                argv,
                env: Vec::new(),
                directory: workspace.path().to_owned(),
                language: Language::Json,
                processor: processor(Kind::Native),
            }]));
            study._workspaces.push(workspace);
        }
        Ok(study)
    }

    /// A build of a real size: one unit compiles one file of the sources in `directory`.
    ///
    /// # Errors
    ///
    /// [`StudyError::Workspace`], also when there are no sources.
    pub fn project(&self, directory: &Path) -> Result<Study, StudyError> {
        let units = project::units(&project::sources(directory));
        let title = format!("build of Lua, zlib and SQLite, {} files of C", units.len());
        let subject = Subject { name: "project".to_owned(), units, operations: 1.0 };
        let what = ("project", title.as_str(), "one compilation");
        self.staying(what, vec![subject], &|workspace| project::copy(directory, workspace))
    }

    /// A runner of the suite in a workspace of its own. What the compiler refuses is a runner
    /// that does not start.
    fn suite_in(
        &self,
        config: &Config,
        study: &mut Study,
        compile: &dyn Fn(&Path) -> std::io::Result<PathBuf>,
    ) -> Result<TempDir, StudyError> {
        let workspace = self.medium.workspace(&classic::furnish)?;
        let command: Vec<OsString> = match compile(workspace.path()) {
            Ok(program) => vec![program.into()],
            Err(why) => ["sh", "-c", "echo \"$0\" >&2; exit 1", &why.to_string()]
                .map(OsString::from)
                .to_vec(),
        };
        study.hands.push(Hand::Stays(vec![Launch {
            argv: config.command_line(workspace.path(), &command),
            env: config.env.clone(),
            directory: workspace.path().to_owned(),
            language: Language::Plain,
            processor: processor(config.kind),
        }]));
        Ok(workspace)
    }
}

/// Builds as settings; the first is what all others are compared with.
fn settings(builds: &[Build]) -> Vec<Setting> {
    let own = builds.first().map(|build| build.compiler.clone());
    builds
        .iter()
        .enumerate()
        .map(|(place, build)| Setting {
            name: build.name(own.as_ref() == Some(&build.compiler)),
            description: format!(
                "{}: {}",
                build.compiler.release(),
                build.compiler.description(&build.protection)
            ),
            kind: if place == 0 { Kind::Native } else { Kind::Peer },
        })
        .collect()
}
