//! Processes outside that attacks aim at.

use crate::{scene::ATTACK, stage::Stage};
use std::{
    fs, io,
    io::{BufRead as _, BufReader, Write as _},
    process::Command,
};

/// A process outside that sleeps. It knows `word`, in its memory and in its environment.
pub(crate) fn with_word(stage: &mut Stage, word: &str) -> io::Result<i32> {
    let mut command = program()?;
    command.args([ATTACK, "victim"]).env("DEPLOY_TOKEN", word);
    let pid = stage.victim(command)?;
    let child = stage.victims.last_mut().ok_or_else(|| io::Error::other("no victim"))?;
    if let Some(input) = &mut child.stdin {
        writeln!(input, "{word}")?;
    }
    let mut lines = BufReader::new(child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?);
    let mut line = String::new();
    // Until it has said where it keeps the word.
    while !line.starts_with("kept at ") {
        line.clear();
        if lines.read_line(&mut line)? == 0 {
            return Err(io::Error::other("a process to be attacked did not start"));
        }
    }
    child.stdout = Some(lines.into_inner());
    stage.tell("at", line.trim().trim_start_matches("kept at "));
    Ok(pid)
}

/// A process outside that sleeps.
pub(crate) fn asleep(stage: &mut Stage) -> io::Result<i32> {
    with_word(stage, "nothing")
}

/// This program, to be called as something else.
pub(crate) fn program() -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.current_dir("/").env_clear();
    Ok(command)
}

/// Whether a process is there and not a zombie; its state otherwise.
pub(crate) fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.unwrap_or('X')
}

/// A line of `/proc/PID/status`.
pub(crate) fn status(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.split(':').next() == Some(name))?;
    Some(line.split(':').nth(1)?.trim().to_owned())
}
