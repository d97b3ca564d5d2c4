//! The keeper of a suite: a process that starts it, gives it so much time, and ends all that it has
//! left, in whatever group or session that is.

use anyhow::Context as _;
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper, wait},
};
use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

/// Longer than any sound suite takes.
const PATIENCE: Duration = Duration::from_secs(3000);
const PAUSE: Duration = Duration::from_millis(20);

/// Set in a keeper alone: as whom the suite runs, `UID:GID`.
const AS: &str = "DEWAR_SUITES_KEEPER";

/// A command that starts a keeper, which starts the words that are added as that user.
pub(crate) fn command((uid, gid): (u32, u32)) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    // What interrupts the test leaves the keeper time to end the suite.
    command.env_clear().env(AS, format!("{uid}:{gid}")).process_group(0);
    Ok(command)
}

/// What the keeper does, if this process is one.
pub(crate) fn main() -> Option<ExitCode> {
    let ids = std::env::var(AS).ok()?;
    Some(match keep(&ids) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("keeper: {error:#}");
            ExitCode::FAILURE
        }
    })
}

fn keep(ids: &str) -> anyhow::Result<ExitCode> {
    let (uid, gid) = ids.split_once(':').context("no IDs")?;
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let (program, rest) = words.split_first().context("no command")?;
    set_child_subreaper(Some(getpid()))?;
    let parent = getppid();
    let mut command = Command::new(program);
    command.args(rest).env_remove(AS).uid(uid.parse()?).gid(gid.parse()?);
    let mut suite = command.spawn().with_context(|| format!("cannot start {program:?}"))?;
    let until = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = suite.try_wait()? {
            break status;
        }
        // The test has ended, however that came.
        let is_alone = getppid() != parent;
        if is_alone || Instant::now() > until {
            suite.kill()?;
            if !is_alone {
                eprintln!("keeper: it has not ended within {} s", PATIENCE.as_secs());
            }
        }
        std::thread::sleep(PAUSE);
    };
    end_children()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Ends what is left: orphans are this process's children.
fn end_children() -> anyhow::Result<()> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Err(Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error.into()),
            Ok(Some(_)) => {}
            Ok(None) => {
                for pid in children()? {
                    let _ = kill_process(pid, Signal::KILL);
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

fn children() -> anyhow::Result<impl Iterator<Item = Pid>> {
    let own = getpid().as_raw_nonzero().to_string();
    let parent = |stat: &str| {
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.split(' ').nth(1).map(str::to_owned)
    };
    Ok(std::fs::read_dir("/proc")?.flatten().filter_map(move |entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        (parent(&stat)? == own).then_some(pid)
    }))
}
