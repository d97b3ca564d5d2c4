//! The files of `/proc/PID`: they show a process, so the process is asked about, too.

use super::lineage::subject_of;
use crate::{caller::read_text, gate::Asker, manager::Request, resolve::Found};
use avc::Hint;
use flask::{Class, perm};
use rustix::io::{Errno, Result};
use std::{ffi::OsStr, path::PathBuf};

/// Files that show what a process is, not what it holds.
const HARMLESS: &[&str] = &[
    "stat",
    "status",
    "statm",
    "cmdline",
    "comm",
    "cgroup",
    "loginuid",
    "sessionid",
    "task",
    "limits",
];

/// Whether `asker` may open what a walk found, as far as that belongs to another process.
pub(crate) fn allow(asker: Asker<'_>, found: &Found) -> Result<()> {
    let Some(pid) = found.process else { return Ok(()) };
    let name = found.entry.as_ref().map(|(_, name)| name.as_os_str());
    let is_pid = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    let harmless = name.is_some_and(|name| is_pid(name) || HARMLESS.iter().any(|it| name == *it));
    let requested = if harmless { perm::process::GETATTR } else { perm::process::PTRACE };
    let identity = asker.caller.identity()?;
    let outer = asker.gate.view.outer_pid(pid, identity)?;
    let tsid = subject_of(asker, outer)?;
    let object = || format!("process {pid}");
    let hint = Hint::default();
    let request = Request { tsid, tclass: Class::Process, requested, hint: &hint, object: &object };
    Ok(asker.gate.processes.ask(asker, &request)?)
}

/// The path of the caller's controlling terminal.
pub(crate) fn controlling_terminal(asker: Asker<'_>) -> Result<PathBuf> {
    let text = read_text(&asker.gate.view, &format!("{}/stat", asker.caller.call.tid))?;
    tty_number(&text).and_then(tty_path).ok_or(Errno::NXIO)
}

/// Field 7 of proc_pid_stat(5); the name in field 2 may hold anything, so fields are counted from its end.
fn tty_number(stat: &str) -> Option<u64> {
    let number: i32 = stat.rsplit_once(')')?.1.split_whitespace().nth(4)?.parse().ok()?;
    Some(u64::from(number as u32)).filter(|number| *number != 0)
}

fn tty_path(number: u64) -> Option<PathBuf> {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    match major {
        136..=143 => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor).into()),
        4 if minor < 64 => Some(format!("/dev/tty{minor}").into()),
        4 => Some(format!("/dev/ttyS{}", minor - 64).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_found_behind_any_process_name() {
        let stat = "12 (a) b 34816 (x) S 1 12 12 34819 12 4194304 0";
        let number = tty_number(stat).unwrap();
        assert_eq!(tty_path(number), Some("/dev/pts/3".into()));
        assert_eq!(tty_number("12 (a) S 1 12 12 0 -1 0"), None);
    }
}
