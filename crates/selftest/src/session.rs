//! Runs cases behind walls, and judges.

use crate::{
    case::{Case, Judge, Process, Ran},
    scene::{HOLDS, STARTED},
    stage::Stage,
    sys,
    verdict::Verdict,
    wall::Wall,
};
use serde::Deserialize;
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};
use std::{
    collections::{HashMap, HashSet},
    env, fs, io,
    io::Read,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// A run that takes longer is ended.
const LONGEST: Duration = Duration::from_secs(15);
/// What a run has said is read within this time of its end.
const READING: Duration = Duration::from_secs(2);
/// What is left of a run may take so long to end with it.
const GRACE: Duration = Duration::from_millis(400);

/// Why a session could not begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A signal asked for the end.
    #[error("interrupted; everything was removed")]
    Interrupted,
    /// The machine refused something that has nothing to do with walls.
    #[error("cannot lay out case `{case}`: {error}")]
    Stage {
        /// The case.
        case: String,
        /// What was refused.
        error: io::Error,
    },
    /// Signals cannot be taken.
    #[error("cannot prepare: {0}")]
    Prepare(io::Error),
}

/// What is common to all cases.
pub struct Session {
    program: PathBuf,
    place: PathBuf,
    interrupted: Arc<AtomicBool>,
    /// What each wall records of a program that does nothing, so that it is not taken for a record
    /// of an attack.
    idle: HashMap<String, HashSet<String>>,
}

impl Session {
    /// Begins; `program` is this program, which carries out attacks when it is called so.
    ///
    /// # Errors
    ///
    /// [`SessionError::Prepare`].
    pub fn begin(program: &Path) -> Result<Self, SessionError> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&interrupted)).map_err(SessionError::Prepare)?;
        }
        // Whatever a run leaves behind becomes a child of this process, and is found.
        sys::adopt_orphans().map_err(SessionError::Prepare)?;
        let place = place();
        Ok(Self { program: program.to_owned(), place, interrupted, idle: HashMap::new() })
    }

    /// Runs one case behind one wall.
    ///
    /// # Errors
    ///
    /// [`SessionError`].
    pub fn run(&mut self, case: &Case, wall: &Wall) -> Result<Verdict, SessionError> {
        let failed = |error| SessionError::Stage { case: case.name.to_owned(), error };
        if !self.idle.contains_key(&wall.name()) {
            let idle = self.idle(wall).map_err(failed)?;
            if let Err(why) = idle {
                return Ok(Verdict::NotApplicable { why });
            }
        }
        let mut stage = Stage::new(&self.place, &self.program).map_err(failed)?;
        let judge = match (case.outside)(&mut stage) {
            Ok(judge) => judge,
            // Without the target there is no attack.
            Err(error) if matches!(wall, Wall::Off) => {
                return Ok(Verdict::NotShown { why: format!("no target here: {error}") });
            }
            Err(error) => {
                return Ok(Verdict::NotApplicable { why: format!("no target here: {error}") });
            }
        };
        if let Some(why) = wall.cannot(case, &stage) {
            return Ok(Verdict::NotApplicable { why: why.to_owned() });
        }
        let mut judge = judge;
        let ran = match (self.start(case.name, wall, &mut stage, &judge), wall) {
            (Ok(ran), _) => ran,
            (Err(error), Wall::Off) => {
                return Ok(Verdict::NotShown { why: format!("cannot be laid out: {error}") });
            }
            (Err(error), _) => {
                return Ok(Verdict::NotApplicable { why: format!("cannot be laid out: {error}") });
            }
        };
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(SessionError::Interrupted);
        }
        Ok(self.judge(wall, &mut judge, &ran))
    }

    fn judge(&self, wall: &Wall, judge: &mut Judge, ran: &Ran) -> Verdict {
        let happened = ran.seen.clone().or_else(|| judge.after.as_mut().and_then(|it| it(ran)));
        let record = matches!(wall, Wall::Dewar(_)).then(|| Record::of(&ran.err));
        match (happened, wall) {
            (Some(what), _) => match record {
                Some(record) if record.reports() => Verdict::Reported { what },
                _ => Verdict::GotThrough { what },
            },
            (None, Wall::Off) => Verdict::NotShown { why: reason(ran) },
            (None, _) if !ran.started => {
                Verdict::NotApplicable { why: format!("not started: {}", reason(ran)) }
            }
            (None, _) => {
                let idle = self.idle.get(&wall.name());
                let new = |kind: &String| idle.is_none_or(|idle| !idle.contains(kind));
                let recorded = record.map(|record| record.kinds().any(|kind| new(&kind)));
                Verdict::Stopped { recorded, said: reason(ran) }
            }
        }
    }

    /// Learns what a wall records of a program that does nothing; or why none can be started.
    fn idle(&mut self, wall: &Wall) -> io::Result<Result<(), String>> {
        let mut stage = Stage::new(&self.place, &self.program)?;
        let ran = self.start("idle", wall, &mut stage, &Judge { during: None, after: None })?;
        if !ran.started {
            return Ok(Err(format!("no program can be started: {}", reason(&ran))));
        }
        if matches!(wall, Wall::Peer(_)) && !stage.workspace().join("idle").exists() {
            return Ok(Err("it does not let the workspace be written here".to_owned()));
        }
        self.idle.insert(wall.name(), Record::of(&ran.err).kinds().collect());
        Ok(Ok(()))
    }

    fn start(&self, name: &str, wall: &Wall, stage: &mut Stage, judge: &Judge) -> io::Result<Ran> {
        let mut command = wall.command(stage, name)?;
        surround(&mut command, stage);
        let before: HashSet<i32> = below(own_pid(), &HashSet::new()).into_iter().collect();
        sys::prepare(&mut command, stage);
        let mut child = command.spawn()?;
        let program = fs::metadata(stage.program())?;
        let look = || -> Vec<Process> {
            let pids = below(own_pid(), &before).into_iter();
            pids.filter_map(|pid| process(pid, (program.dev(), program.ino()))).collect()
        };
        let mut ran = self.follow(&mut child, judge, &look);
        let until = Instant::now() + GRACE;
        ran.left = look();
        while !ran.left.is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
            ran.left = look();
        }
        end(&ran.left);
        Ok(ran)
    }

    /// Waits for the end of a run; lets the judge look when the attack holds.
    fn follow(&self, child: &mut Child, judge: &Judge, look: &dyn Fn() -> Vec<Process>) -> Ran {
        let (out, err) = (gather(child.stdout.take()), gather(child.stderr.take()));
        let mut input = child.stdin.take();
        let begun = Instant::now();
        let mut ran = Ran::default();
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                ran.status = status.code();
                break;
            }
            if input.is_some() && out.text().contains(HOLDS) {
                // What the wall does when it notices may take a moment.
                std::thread::sleep(Duration::from_millis(60));
                ran.seen = judge.during.as_ref().and_then(|during| during(&look()));
                input = None;
            }
            ran.late = begun.elapsed() > LONGEST;
            if ran.late || self.interrupted.load(Ordering::Relaxed) {
                let _ = child.kill();
                ran.status = child.wait().ok().and_then(|status| status.code());
                break;
            }
            std::thread::sleep(Duration::from_millis(4));
        }
        // Pipes that others hold open end with them, later.
        let until = Instant::now() + READING;
        while !(out.is_read() && err.is_read()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(4));
        }
        (ran.out, ran.err) = (out.text(), err.text());
        ran.started = ran.out.contains(STARTED);
        ran
    }
}

/// Where scenes are laid out: not in a directory that sandboxes replace.
fn place() -> PathBuf {
    let home = env::var_os("HOME").map(PathBuf::from);
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| home.map(|home| home.join(".cache")));
    let usable = |path: &PathBuf| {
        let _ = fs::create_dir_all(path);
        tempfile::tempfile_in(path).is_ok()
    };
    let asked = env::var_os("DEWAR_SELFTEST_DIR").map(PathBuf::from);
    let places = [asked, Some(PathBuf::from("/var/lib")), cache, Some(PathBuf::from("/var/tmp"))];
    places.into_iter().flatten().find(usable).unwrap_or_else(env::temp_dir)
}

/// Where a run stands, and its environment: nothing of the caller's.
fn surround(command: &mut Command, stage: &Stage) {
    command.current_dir(stage.workspace()).env_clear();
    command.env("HOME", stage.home()).env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    for (name, place) in
        [("XDG_RUNTIME_DIR", "run/user"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")]
    {
        command.env(name, stage.home().join(place));
    }
    // Hosts that a profile names need not be found here, so nobody waits long for them.
    command.env("RES_OPTIONS", "timeout:1 attempts:1");
    command.envs(stage.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
}

/// What a pipe says, read by a thread.
struct Gathered {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Gathered {
    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether all of it was read.
    fn is_read(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

fn gather(from: Option<impl Read + Send + 'static>) -> Gathered {
    const MOST: usize = 4 << 20;
    let bytes = Arc::<Mutex<Vec<u8>>>::default();
    let into = Arc::clone(&bytes);
    let thread = from.map(|mut from| {
        std::thread::spawn(move || {
            let mut piece = [0; 8192];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                let mut all = into.lock().unwrap_or_else(PoisonError::into_inner);
                if all.len() < MOST {
                    all.extend_from_slice(&piece[..count]);
                }
            }
        })
    });
    Gathered { bytes, thread }
}

/// The last thing that a run said on standard error.
fn reason(ran: &Ran) -> String {
    if ran.late {
        return "it took too long".to_owned();
    }
    let failed = |line: &&str| line.starts_with("attack failed: ");
    let tells = |line: &&str| !line.trim().is_empty() && !line.starts_with('{');
    let lines = || ran.err.lines().rev().filter(tells);
    let said = lines().find(failed).or_else(|| lines().next()).unwrap_or("nothing came of it");
    said.trim_start_matches("attack failed: ").chars().take(200).collect()
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

/// Processes that descend from `top`, without `known` ones and what is below them.
fn below(top: i32, known: &HashSet<i32>) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in brackets can hold anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (state, parent) = (fields.next(), fields.next().and_then(|it| it.parse().ok()));
        if let (Some(parent), Some(state)) = (parent, state)
            && state != "Z"
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut todo) = (Vec::new(), vec![top]);
    while let Some(parent) = todo.pop() {
        for &pid in children.get(&parent).into_iter().flatten() {
            if !known.contains(&pid) {
                found.push(pid);
                todo.push(pid);
            }
        }
    }
    found
}

fn process(pid: i32, program: (u64, u64)) -> Option<Process> {
    let path = format!("/proc/{pid}/exe");
    let exe = fs::read_link(&path).map(|exe| exe.display().to_string()).unwrap_or_default();
    let found = fs::metadata(&path).map(|it| (it.dev(), it.ino()));
    let is_attack = found.is_ok_and(|it| it == program);
    Path::new(&format!("/proc/{pid}")).exists().then_some(Process { pid, exe, is_attack })
}

fn end(left: &[Process]) {
    for process in left {
        sys::kill(process.pid);
    }
    for process in left {
        sys::reap(process.pid);
    }
}

/// What `dewar run --json` says at its end.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record {
    denials: Vec<Denial>,
    planted: Vec<Planted>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Denial {
    object: String,
    tclass: String,
    missing: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Planted {
    path: String,
    state: String,
}

impl Record {
    fn of(err: &str) -> Self {
        let last = err.lines().rev().find(|line| line.starts_with('{'));
        last.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default()
    }

    /// Denials, whatever the scene was called.
    fn kinds(&self) -> impl Iterator<Item = String> + '_ {
        self.denials.iter().map(|denial| {
            let object = denial.object.split("dewar-selftest-").last().unwrap_or_default();
            let object = object.split_once('/').map_or(object, |(_, rest)| rest);
            format!("{} {object} {}", denial.tclass, denial.missing.join(" "))
        })
    }

    /// Whether what was left is named.
    fn reports(&self) -> bool {
        self.planted.iter().any(|it| it.state != "refused" && !it.path.ends_with("/attack"))
    }
}
