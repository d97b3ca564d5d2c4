//! Asking in another language: a process that is told how often, and says what it took.

use super::{OBJECTS, Place, ways::Way};
use crate::{interleaved::Batch, process::last_words};
use std::{
    cell::RefCell,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    rc::Rc,
    time::Duration,
};

/// A program that reads `PLACE TIMES`, and writes nanoseconds of processor time.
struct Asker {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    said: File,
}

impl Asker {
    /// Starts it, and waits until it is ready.
    fn start(command: &mut Command) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let said = tempfile::tempfile().map_err(text)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(said.try_clone().map_err(text)?);
        let mut process = command
            .spawn()
            .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (requests, answers) = pipes.ok_or("it has no pipes")?;
        let mut asker = Self { process, requests, answers: BufReader::new(answers), said };
        match asker.line()?.as_str() {
            "ready" => Ok(asker),
            line => Err(format!("it says `{line}`")),
        }
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err(last_words(&mut self.said)),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn ask(&mut self, place: Place, times: u32) -> Result<Duration, String> {
        let asked = writeln!(self.requests, "{} {times}", place.name());
        asked.and_then(|()| self.requests.flush()).map_err(|error| error.to_string())?;
        let line = self.line()?;
        let ns = line.parse().map_err(|_| format!("it says `{line}`"))?;
        Ok(Duration::from_nanos(ns))
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        // One that has ended already is as good.
        let _ = (self.process.kill(), self.process.wait());
    }
}

/// All places, asked of one process.
fn jobs(asker: Asker) -> Vec<(Place, Batch<'static>)> {
    let asker = Rc::new(RefCell::new(asker));
    let job = |place| {
        let asker = Rc::clone(&asker);
        let batch = move |times| asker.borrow_mut().ask(place, times);
        (place, Box::new(batch) as Batch<'static>)
    };
    Place::ALL.map(job).into()
}

/// A program in C, compiled here and linked with the shared library, as a server would be.
pub(super) fn in_c(library: Option<&Path>, directory: &Path, policy: &Path) -> Way {
    let asker = || {
        let missing = "libdewar.so lies not beside this program; --library names it";
        let library = library.ok_or(missing)?.canonicalize();
        let library = library.map_err(|error| error.to_string())?;
        let place = |name: &str| directory.join(name);
        let written = [
            ("check.c", include_str!("check.c")),
            ("dewar.h", include_str!("../../../object-manager-c/include/dewar.h")),
            ("dewar_port.h", include_str!("../../../ipc-c/include/dewar_port.h")),
        ]
        .into_iter()
        .try_for_each(|(name, text)| fs::write(place(name), text));
        // By the name that it is linked by, and the one that it is found by.
        let linked = ["libdewar.so", "libdewar.so.0"]
            .into_iter()
            .try_for_each(|name| symlink(&library, place(name)));
        written.and(linked).map_err(|error| error.to_string())?;
        let mut cc = Command::new("cc");
        cc.current_dir(directory).args(["-O2", "-o", "check", "check.c", "-I.", "-L."]);
        cc.arg(format!("-DOBJECTS={OBJECTS}")).args(["-ldewar", "-Wl,-rpath,$ORIGIN"]);
        let built = cc.output().map_err(|error| format!("cannot run `cc`: {error}"))?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr).into_owned();
            return Err(said.lines().next().unwrap_or("cc fails").to_owned());
        }
        Asker::start(Command::new(place("check")).arg(policy)).map(jobs)
    };
    Way { name: "C: dewar_check".to_owned(), jobs: asker() }
}

/// A program in Python, by an interpreter that can import the module.
pub(super) fn in_python(python: &Path, directory: &Path, policy: &Path) -> Way {
    let asker = || {
        let program = directory.join("check.py");
        fs::write(&program, include_str!("check.py")).map_err(|error| error.to_string())?;
        let mut command = Command::new(python);
        command.arg(program).arg(policy).arg(OBJECTS.to_string());
        Asker::start(&mut command).map(jobs).map_err(|why| match why.contains("No module named") {
            true => format!("{why}: `make wheel` builds it, --python names an interpreter"),
            false => why,
        })
    };
    Way { name: "Python: check".to_owned(), jobs: asker() }
}
