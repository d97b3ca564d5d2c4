//! Runners that are processes: one that stays and performs unit after unit, and a command that is
//! launched anew.

use super::{Runner, RunnerError, Took, Unit, unit::Answer};
use crate::{
    interrupt::Interrupt,
    process::{CommandLine, ProcessError, last_words},
    sys,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, kill_process_group},
};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// How a runner is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments, those of the setting and those of the runner.
    pub argv: Vec<OsString>,
    /// Variables set beyond those inherited.
    pub env: Vec<(String, String)>,
    /// Where.
    pub directory: PathBuf,
    /// How it is talked to.
    pub language: Language,
    /// Whose processor time counts.
    pub processor: Processor,
}

/// Whose processor time a unit takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// Of the runner and the children it waits for.
    Own,
    /// Of the process that was started, too: a monitor around the runner.
    AndMonitor,
    /// Part of it is not known.
    Unknown,
}

/// How a runner is talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Requests and answers of [`super::serve`].
    Json,
    /// `NAME TIMES` on a line, answered by `WALL CPU` in nanoseconds, or by `! why`.
    Plain,
}

/// A process that stays. Started by the first unit; ended when dropped.
pub struct ProcessRunner {
    /// One for each life; after the last comes the first again.
    launches: Vec<Launch>,
    life: usize,
    running: Option<Running>,
    interrupted: Arc<AtomicBool>,
}

struct Running {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    said: File,
}

impl ProcessRunner {
    /// A runner that is started when it is first asked, and anew in each life, by the next of
    /// `launches`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn new(launches: Vec<Launch>, interrupt: &Interrupt) -> Self {
        assert!(!launches.is_empty(), "a runner is started in some way");
        Self { launches, life: 0, running: None, interrupted: interrupt.flag() }
    }

    fn start(launch: &Launch) -> Result<Running, RunnerError> {
        let said = tempfile::tempfile()?;
        let (program, arguments) = launch
            .argv
            .split_first()
            .ok_or_else(|| RunnerError::Unit("the command is empty".to_owned()))?;
        let mut child = Command::new(program)
            .args(arguments)
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&launch.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(said.try_clone()?)
            .process_group(0)
            .spawn()
            .map_err(|source| RunnerError::Start {
                program: program.to_string_lossy().into_owned(),
                source,
            })?;
        let requests = child.stdin.take();
        let answers = child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
        Ok(Running { child, requests, answers: BufReader::new(answers), said })
    }
}

impl Runner for ProcessRunner {
    fn perform(&mut self, unit: &Unit, timeout: Duration) -> Result<Took, RunnerError> {
        let launch = &self.launches[self.life % self.launches.len()];
        let running = match &mut self.running {
            Some(running) => running,
            none => none.insert(Self::start(launch)?),
        };
        let before = sys::process_time(running.child.id());
        let request = match (launch.language, unit) {
            (Language::Plain, Unit::Suite { name, times }) => format!("{name} {times}\n"),
            _ => serde_json::to_string(unit).map_err(io::Error::from)? + "\n",
        };
        let answer = running.ask(&request, timeout, &self.interrupted)?;
        let mut took = match launch.language {
            Language::Json => match serde_json::from_str(&answer).map_err(io::Error::from)? {
                Answer::Took(took) => took,
                Answer::Failed(why) => return Err(RunnerError::Unit(why)),
            },
            Language::Plain => plain(&answer)?,
        };
        let spent = sys::process_time(running.child.id()).zip(before);
        let spent = spent.map(|(after, before)| after.saturating_sub(before).as_secs_f64());
        took.cpu_s = match launch.processor {
            Processor::Own => took.cpu_s,
            Processor::AndMonitor => {
                took.cpu_s.zip(spent).map(|(inside, outside)| inside + outside)
            }
            Processor::Unknown => None,
        };
        Ok(took)
    }

    fn stays(&self) -> bool {
        true
    }

    fn renew(&mut self) {
        self.running = None;
        self.life += 1;
    }
}

fn plain(answer: &str) -> Result<Took, RunnerError> {
    if let Some(why) = answer.strip_prefix('!') {
        return Err(RunnerError::Unit(why.trim().to_owned()));
    }
    let numbers: Option<Vec<f64>> = answer.split_whitespace().map(|it| it.parse().ok()).collect();
    match numbers.as_deref() {
        Some([wall, cpu]) => {
            Ok(Took { wall_s: wall / 1e9, cpu_s: Some(cpu / 1e9), inside_s: None })
        }
        _ => Err(RunnerError::Unit(format!("it answered `{}`", answer.trim()))),
    }
}

impl Running {
    fn ask(
        &mut self,
        request: &str,
        timeout: Duration,
        interrupted: &AtomicBool,
    ) -> Result<String, RunnerError> {
        let mut answer = String::new();
        let sent = match &mut self.requests {
            Some(requests) => requests.write_all(request.as_bytes()),
            None => Ok(()),
        };
        if sent.is_ok() {
            self.wait(timeout, interrupted)?;
            self.answers.read_line(&mut answer)?;
        }
        if answer.ends_with('\n') {
            return Ok(answer);
        }
        // Its words come before its end.
        let _ = self.child.wait();
        Err(RunnerError::Ended { said: last_words(&mut self.said) })
    }

    /// Waits until it answers or ends. After an interrupt the unit is finished, unless it takes
    /// long.
    fn wait(&self, timeout: Duration, interrupted: &AtomicBool) -> Result<(), RunnerError> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let begin = Instant::now();
        let mut since: Option<Instant> = None;
        loop {
            let mut polled = [PollFd::new(self.answers.get_ref(), PollFlags::IN)];
            match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 200_000_000 })) {
                Err(Errno::INTR) | Ok(0) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(io::Error::from(errno).into()),
            }
            if interrupted.load(Ordering::Relaxed) {
                since = since.or_else(|| Some(Instant::now()));
            }
            if since.is_some_and(|since| since.elapsed() > PATIENCE) {
                return Err(RunnerError::Interrupted);
            }
            if begin.elapsed() > timeout {
                return Err(RunnerError::Timeout(timeout));
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without requests it ends by itself; what does not is killed with all it has started.
        drop(self.requests.take());
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(1) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Launches the whole setting anew for each unit: what a command costs from its start to its end.
pub struct WholeCommand<'a> {
    /// What goes before the unit's own words.
    pub prefix: Vec<OsString>,
    /// Variables set beyond those inherited.
    pub env: Vec<(String, String)>,
    /// Where.
    pub directory: PathBuf,
    /// Whether the processor time of all that took part is that of the command and its children.
    pub cpu_known: bool,
    /// Ends it early.
    pub interrupt: &'a Interrupt,
}

impl Runner for WholeCommand<'_> {
    fn perform(&mut self, unit: &Unit, timeout: Duration) -> Result<Took, RunnerError> {
        let Unit::Command { argv, remove, before } = unit else {
            return Err(RunnerError::Unit("only commands can be launched".to_owned()));
        };
        let run = |argv: Vec<OsString>, env: &[(String, String)]| {
            let line = CommandLine { argv, env: env.to_vec() };
            line.run(&self.directory, timeout, self.interrupt).map_err(|error| match error {
                ProcessError::Interrupted => RunnerError::Interrupted,
                error => RunnerError::Unit(error.to_string()),
            })
        };
        for file in remove {
            match std::fs::remove_file(self.directory.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        if !before.is_empty() {
            run(before.iter().map(OsString::from).collect(), &[])?;
        }
        let words = argv.iter().map(OsString::from);
        let finished = run(self.prefix.iter().cloned().chain(words).collect(), &self.env)?;
        let cpu_s = (finished.user + finished.system).as_secs_f64();
        let wall_s = finished.wall.as_secs_f64();
        Ok(Took { wall_s, cpu_s: self.cpu_known.then_some(cpu_s), inside_s: None })
    }
}
