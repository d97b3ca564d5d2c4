//! Runs one command to its end and says what it took.

use crate::interrupt::Interrupt;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read, Seek},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use wait4::Wait4;

/// How much of what a command prints is kept.
const OUTPUT_BYTES: u64 = 1 << 20;

/// How often a wait looks up.
const LOOK_UP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Why a command has no measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// There is no command.
    #[error("the command is empty")]
    Empty,
    /// It could not be started.
    #[error("cannot run `{program}`: {source}")]
    Spawn {
        /// Its name.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// It could not be waited for, or its output not be kept.
    #[error("cannot follow the command: {0}")]
    Follow(#[from] io::Error),
    /// It ran for too long and was killed.
    #[error("killed after {:.1} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The person at the terminal stopped it.
    #[error("interrupted")]
    Interrupted,
    /// It said that it failed.
    #[error("{status}{}{said}", if .said.is_empty() { "" } else { ": " })]
    Failed {
        /// How it ended.
        status: ExitStatus,
        /// The line of its errors that most likely says why.
        said: String,
    },
}

/// What a command took, with all the processes that it waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// From just before its start to its end.
    pub wall: Duration,
    /// Processor time in its own code.
    pub user: Duration,
    /// Processor time in the kernel on its behalf.
    pub system: Duration,
    /// The largest resident set of any one of its processes.
    pub max_rss_kib: u64,
    /// What it printed, up to 1 MiB.
    pub stdout: Vec<u8>,
}

/// A command to run: argument vector, further environment, directory.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Variables set beyond those inherited.
    pub env: Vec<(String, String)>,
}

impl CommandLine {
    /// Runs it in `directory`, in a process group of its own, without input.
    ///
    /// # Errors
    ///
    /// [`ProcessError`], also when the command reports failure. The process group is killed when
    /// the time is over or `interrupt` has happened.
    pub fn run(
        &self,
        directory: &Path,
        timeout: Duration,
        interrupt: &Interrupt,
    ) -> Result<Finished, ProcessError> {
        let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let begin = Instant::now();
        let child = self.spawn(directory, stdout.try_clone()?, stderr.try_clone()?)?;
        let ended = wait(&child, timeout, interrupt);
        let wall = begin.elapsed();
        if ended.is_err() {
            kill_group(&child);
        }
        let used = child.wait4()?;
        ended?;
        if !used.status.success() {
            let said = reason(&contents(stderr)?);
            return Err(ProcessError::Failed { status: used.status, said });
        }
        Ok(Finished {
            wall,
            user: used.rusage.utime,
            system: used.rusage.stime,
            max_rss_kib: used.rusage.maxrss / 1024,
            stdout: contents(stdout)?,
        })
    }

    fn spawn(&self, directory: &Path, stdout: File, stderr: File) -> Result<Child, ProcessError> {
        let (program, arguments) = self.argv.split_first().ok_or(ProcessError::Empty)?;
        Command::new(program)
            .args(arguments)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()
            .map_err(|source| ProcessError::Spawn {
                program: program.to_string_lossy().into_owned(),
                source,
            })
    }
}

/// Waits until the child has ended, but does not reap it: its number stays its own.
fn wait(child: &Child, timeout: Duration, interrupt: &Interrupt) -> Result<(), ProcessError> {
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).map_err(io::Error::from)?;
    let begin = Instant::now();
    loop {
        let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut polled, Some(&LOOK_UP)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(errno) => return Err(io::Error::from(errno).into()),
        }
        if interrupt.happened() {
            return Err(ProcessError::Interrupted);
        }
        if begin.elapsed() >= timeout {
            return Err(ProcessError::Timeout(timeout));
        }
    }
}

fn kill_group(child: &Child) {
    // Only fails when nobody is left to be killed.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

/// Of what a command wrote to `file`, the line that most likely says why it failed.
pub(crate) fn last_words(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = file.rewind().and_then(|()| file.take(OUTPUT_BYTES).read_to_end(&mut bytes));
    read.map_or_else(|error| error.to_string(), |_| reason(&bytes))
}

fn contents(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(OUTPUT_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The line of its errors that most likely says why: the first that speaks of an error, else the
/// last.
fn reason(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let speaks = |line: &&str| line.to_ascii_lowercase().contains("error");
    lines()
        .find(speaks)
        .or_else(|| lines().next_back())
        .unwrap_or_default()
        .chars()
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_first_line_that_speaks_of_an_error_else_the_last_line() {
        for (stderr, want) in [
            ("warning: x\nerror: no such option\n\nsee --help\n", "error: no such option"),
            ("starting\nbwrap: no permission\n\n", "bwrap: no permission"),
            ("", ""),
        ] {
            assert_eq!(reason(stderr.as_bytes()), want);
        }
    }
}
