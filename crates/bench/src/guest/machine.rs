//! One guest: a kernel started in QEMU's emulator, and what it said on its console.

use super::{GuestError, TESTS};
use std::{
    collections::BTreeMap,
    io::Read as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The emulator.
pub(super) const QEMU: &str = "qemu-system-x86_64";
/// A processor with the faults that kernels mitigate, the same wherever this runs.
const PROCESSOR: &str = "Skylake-Client-v1";
/// What is given to every kernel.
const ALWAYS: &str = "console=ttyS0 quiet panic=-1";

/// What a guest found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    /// What it said of itself, by name.
    pub(super) facts: BTreeMap<String, String>,
    /// Nanoseconds of its clock, which are instructions, for each request.
    pub(super) answers: Vec<u64>,
}

/// Starts `kernel` with `initrd` and these words; what it says until it turns itself off.
pub(super) fn boot(
    kernel: &Path,
    initrd: &Path,
    words: &str,
    patience: Duration,
) -> Result<Said, GuestError> {
    let mut command = Command::new(QEMU);
    command.args(["-machine", "q35", "-cpu", PROCESSOR, "-accel", "tcg", "-m", "512"]);
    // An instruction is a nanosecond of the guest's clock; time in which it waits does not pass.
    command.args(["-icount", "shift=0,sleep=off", "-nodefaults", "-nographic", "-no-reboot"]);
    command.args(["-serial", "stdio"]).arg("-kernel").arg(kernel).arg("-initrd").arg(initrd);
    command.arg("-append").arg(format!("{ALWAYS} {words}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child =
        command.spawn().map_err(|source| GuestError::Start { program: QEMU, source })?;
    let mut console = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(console) = &mut console {
            // What came until it failed is all there is.
            let _ = console.read_to_end(&mut text);
        }
        text
    });
    let begin = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if begin.elapsed() > patience {
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(50));
    }
    let _ = child.wait();
    let text = reader.join().unwrap_or_default();
    read(&String::from_utf8_lossy(&text))
}

/// What stands on a console.
fn read(console: &str) -> Result<Said, GuestError> {
    let mut said = Said::default();
    for line in console.lines().map(str::trim) {
        if let Some((name, value)) = line.strip_prefix("@ ").and_then(|it| it.split_once(": ")) {
            said.facts.insert(name.to_owned(), value.to_owned());
        } else if let Some(why) = line.strip_prefix("! ") {
            return Err(GuestError::Suite(why.to_owned()));
        } else if let Some((wall, _)) = line.split_once(' ').filter(|_| is_answer(line)) {
            said.answers.extend(wall.parse::<u64>());
        }
    }
    let is_whole = said.facts.get("end").is_some_and(|status| status == "0");
    if !is_whole || said.answers.len() % TESTS.len() != 0 || said.answers.is_empty() {
        let last = console.lines().map(str::trim).rfind(|line| !line.is_empty());
        return Err(GuestError::Ended(last.unwrap_or("nothing").to_owned()));
    }
    Ok(said)
}

/// Two numbers.
fn is_answer(line: &str) -> bool {
    line.split(' ').count() == 2 && line.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_read_between_whatever_else_stands_on_it() {
        let answers = "120 121\r\n".repeat(TESTS.len());
        let console = format!(
            "SeaBIOS\r\n[ 0.09] RETBleed: WARNING\r\n@ kernel: 6.1.0\r\n{answers}@ end: 0\r\n[ 2.0] reboot\r\n"
        );
        let said = read(&console).expect("all of it");
        assert_eq!(said.facts["kernel"], "6.1.0");
        assert_eq!(said.answers, vec![120; TESTS.len()]);
    }

    #[test]
    fn a_guest_that_does_not_come_to_its_end_is_no_result() {
        let ended = read("Kernel panic - not syncing: No working init found.\r\n");
        assert!(matches!(ended, Err(GuestError::Ended(last)) if last.contains("No working init")));
        let failed = read("! mkdir: Permission denied\r\n@ end: 0\r\n");
        assert!(matches!(failed, Err(GuestError::Suite(why)) if why.contains("mkdir")));
    }
}
