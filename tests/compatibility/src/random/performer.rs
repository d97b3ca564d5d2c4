//! Performs programs natively and under Dewar, and compares.

use crate::{
    difference::{Difference, without_set_ids},
    known::{Known, known},
    program::{Program, write},
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader, Read, Seek as _, Write as _},
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{RecvTimeoutError, Sender},
    time::Duration,
};
use test_support::Variant;

/// Without a line for so long, nothing more comes: a program that waits ends long before by itself
/// (`PATIENCE` of `performer.c`).
const MOST_SILENT: Duration = Duration::from_secs(60);

/// How Dewar mediates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Everything is decided.
    All,
    /// Reading is left to the kernel.
    Fast,
}

impl Way {
    pub(crate) const ALL: [Self; 2] = [Self::All, Self::Fast];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Fast => "fast",
        }
    }
}

/// Who performs, with what, where.
pub(crate) struct Performer {
    pub(crate) program: PathBuf,
    pub(crate) dewar: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) who: Variant,
    pub(crate) ids: Option<(u32, u32)>,
}

/// What each program printed, and what it left behind, in lines.
type Results = BTreeMap<usize, Vec<String>>;

impl Performer {
    /// Which of `programs` do not have the same results both ways; in what first, unless that is
    /// known.
    pub(crate) fn differing(
        &self,
        way: Way,
        programs: &[Program],
    ) -> Vec<(usize, Result<&'static Known, String>)> {
        let (native, dewar) = (self.perform(None, programs), self.perform(Some(way), programs));
        let none = Vec::new();
        let of = |results: &Results, n: usize| results.get(&n).unwrap_or(&none).clone();
        let differs = |n: usize| {
            let text = write(&programs[n], "%", 0);
            Some((n, difference(&text, &of(&native, n), &of(&dewar, n))?))
        };
        (0..programs.len()).filter_map(differs).collect()
    }

    /// Whether a program races with itself: some run of it natively ends as some run under Dewar.
    pub(crate) fn races(&self, way: Way, program: &Program) -> bool {
        const RUNS: usize = 30;
        let text = write(program, "%", 0);
        let lines = |way| {
            let results = self.perform(way, std::slice::from_ref(program));
            results.into_values().next().unwrap_or_default()
        };
        let same = |one: &Vec<String>, other: &Vec<String>| {
            difference(&text, one, other).is_none_or(|kind| kind.is_ok())
        };
        let (mut native, mut dewar) = (Vec::new(), Vec::new());
        (0..RUNS).any(|_| {
            let (one, other) = (lines(None), lines(Some(way)));
            let is_same = same(&one, &other)
                || native.iter().any(|it| same(it, &other))
                || dewar.iter().any(|it| same(&one, it));
            native.push(one);
            dewar.push(other);
            is_same
        })
    }

    /// A program beside its results.
    pub(crate) fn show(&self, way: Way, program: &Program) -> String {
        let programs = std::slice::from_ref(program);
        let line = |results: &Results, n: usize| {
            results
                .get(&0)
                .and_then(|lines| lines.get(n))
                .cloned()
                .unwrap_or_else(|| "(nothing)".into())
        };
        let (native, dewar) = (self.perform(None, programs), self.perform(Some(way), programs));
        let length = [&native, &dewar].map(|results| results.get(&0).map_or(0, Vec::len));
        let mut text = write(program, "%", 0);
        for n in 0..length[0].max(length[1]) {
            let (native, dewar) = (line(&native, n), line(&dewar, n));
            if native != dewar {
                text += &format!("  native {native}\n  dewar  {dewar}\n");
            }
        }
        text
    }

    /// Performs programs one after the other.
    pub(crate) fn perform(&self, way: Option<Way>, programs: &[Program]) -> Results {
        self.clear();
        let directory = self.work.to_str().expect("UTF-8");
        let input: String =
            programs.iter().enumerate().map(|(n, program)| write(program, directory, n)).collect();
        let said = tempfile::tempfile().expect("make a file");
        let mut command = self.command(way);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .stderr(said.try_clone().expect("duplicate a descriptor"))
            .spawn()
            .expect("start the performer");
        let (mut stdin, stdout) = (child.stdin.take(), child.stdout.take().expect("its output"));
        let writer = std::thread::spawn(move || {
            stdin.take().expect("its input").write_all(input.as_bytes())
        });
        let (mut results, mut at) = (Results::new(), 0);
        let (told, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell_lines(stdout, &told));
        let end = loop {
            match lines.recv_timeout(MOST_SILENT) {
                Ok(line) => {
                    if let Some(number) = line.strip_prefix("program ") {
                        at = number.parse().expect("a number");
                    }
                    results.entry(at).or_default().push(without_set_ids(&line));
                }
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {
                    child.kill().expect("end the performer");
                    break Some(format!("does not end: nothing for {MOST_SILENT:?}"));
                }
            }
        };
        let status = child.wait().expect("wait for the performer");
        let _ = writer.join().expect("write programs");
        if !status.success() {
            let end = end.unwrap_or_else(|| status.to_string());
            results.entry(at).or_default().push(format!("{end}: {}", text_of(said)));
        }
        for (n, lines) in &mut results {
            let left = tree(&self.work.join(n.to_string()));
            lines.extend(left.iter().map(|line| without_set_ids(line)));
        }
        results
    }

    /// Makes the directory of all programs anew: former ones may have changed what is in it, and
    /// itself.
    fn clear(&self) {
        if self.work.exists() {
            std::fs::remove_dir_all(&self.work).expect("remove what is left");
        }
        std::fs::create_dir(&self.work).expect("create a directory");
        if let Some((uid, gid)) = self.ids {
            std::os::unix::fs::chown(&self.work, Some(uid), Some(gid)).expect("give it away");
        }
    }

    fn command(&self, way: Option<Way>) -> Command {
        let mut command = match way {
            Some(way) => {
                let mut command = Command::new(&self.dewar);
                command
                    .args(["run", "-p", "open", "--mode", way.name(), "--workspace"])
                    .arg(&self.work);
                if self.who == Variant::Bare {
                    command.args(["--without", "user"]);
                }
                command.arg("--");
                command
            }
            // Nobody under Dewar has privileges, or gets any.
            None => {
                let mut command = Command::new("setpriv");
                command.args(["--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--"]);
                command
            }
        };
        if way.is_none() && self.who != Variant::Root {
            command = Command::new("setpriv");
            command.args(["--no-new-privs", "--"]);
        }
        command.arg(&self.program).arg(&self.work).current_dir(&self.work);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &self.work);
        command.env("XDG_STATE_HOME", self.work.with_extension("state"));
        if let Some((uid, gid)) = self.ids {
            command.uid(uid).gid(gid);
        }
        command
    }
}

/// What differs first: as is known, or how. A program without results differs.
fn difference(
    text: &str,
    native: &[String],
    dewar: &[String],
) -> Option<Result<&'static Known, String>> {
    if native.is_empty() {
        return Some(Err("nothing was performed".into()));
    }
    let n = (0..native.len().max(dewar.len())).find(|n| native.get(*n) != dewar.get(*n))?;
    let line = |lines: &[String]| lines.get(n).map_or("nothing", String::as_str).to_owned();
    let (native, dewar) = (line(native), line(dewar));
    let at = native.split(' ').next().and_then(|number| number.parse::<usize>().ok());
    let call = at.and_then(|at| text.lines().nth(at)).unwrap_or_default().to_owned();
    let result = |line: &str| line.split_once(" = ").map_or(line, |(_, result)| result).to_owned();
    let same_call = native.split(' ').take(2).eq(dewar.split(' ').take(2));
    let (native, dewar) = (result(&native), result(&dewar));
    let found = Difference { call, native, dewar, program: text.to_owned() };
    Some(match known(&found) {
        Some(known) if same_call => Ok(known),
        _ => Err(format!("`{}`: native {}, dewar {}", found.call, found.native, found.dewar)),
    })
}

/// Tells each line until there is no more.
fn tell_lines(output: impl Read, told: &Sender<String>) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        if told.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            break;
        }
    }
}

/// What was written to a file.
fn text_of(mut file: File) -> String {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).expect("read a file");
    String::from_utf8_lossy(&text).into_owned()
}

/// What lies in a directory: names, kinds, rights, sizes and contents, links, in order.
fn tree(directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(path) = todo.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
        let name = path.strip_prefix(directory).expect("a path below").display().to_string();
        let mut line =
            format!("file `{name}` {:o} {}:{}", metadata.mode(), metadata.uid(), metadata.gid());
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).expect("read a directory");
            let mut entries: Vec<PathBuf> =
                entries.map(|entry| entry.expect("an entry").path()).collect();
            entries.sort();
            todo.extend(entries);
        } else {
            line += &format!(" links={}", metadata.nlink());
        }
        if metadata.is_symlink() {
            line += &format!(" -> {}", std::fs::read_link(&path).expect("read a link").display());
        } else if metadata.is_file() && !name.ends_with("/t") {
            line += &format!(
                " {:?}",
                String::from_utf8_lossy(&std::fs::read(&path).expect("read a file"))
            );
        }
        lines.push(line);
    }
    lines
}
