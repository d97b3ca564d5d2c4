//! A shell on a terminal, as who types sees it.

use crate::{
    process::until,
    stage::{Stage, bash},
};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// The key that interrupts.
pub(super) const INTERRUPT: &str = "\x03";

/// A shell on a terminal, seen from the keyboard.
pub(super) struct Keyboard {
    pub(super) master: File,
    pub(super) shell: Child,
    pub(super) seen: String,
}

impl Keyboard {
    pub(super) fn new(stage: &Stage) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).expect("a terminal");
        grantpt(&master).expect("grant it");
        unlockpt(&master).expect("unlock it");
        let name = ptsname(&master, Vec::new()).expect("its name").into_string().expect("UTF-8");
        stage.give(name.as_ref());
        let stream = || {
            let file = File::options().read(true).write(true).open(&name).expect("the terminal");
            Stdio::from(file)
        };
        let words = ["setsid", "--ctty", "bash", "--norc", "--noprofile", "-i"].map(Into::into);
        let mut command = stage.command(&words);
        command.env("PS1", "outer> ").env("TERM", "vt100").env("HISTFILE", "");
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let shell = command.spawn().expect("start a shell");
        rustix::io::ioctl_fionbio(&master, true).expect("read without waiting");
        let mut keyboard = Self { master: master.into(), shell, seen: String::new() };
        keyboard.expect("outer> ");
        keyboard
    }

    pub(super) fn keys(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("type");
    }

    /// Types a line that runs a script under Dewar.
    pub(super) fn dewar(&mut self, stage: &Stage, script: &str) {
        self.dewar_and(stage, script, "");
        // The shell has taken the line, and gives the terminal back its ways.
        self.expect("\x1b[?2004l");
    }

    /// The same, with something behind the command.
    pub(super) fn dewar_and(&mut self, stage: &Stage, script: &str, rest: &str) {
        self.keys(&format!("{}{rest}\n", line(stage, script)));
    }

    /// Runs a script in the background, and waits until that is stopped, as it needs the terminal.
    pub(super) fn in_background(&mut self, stage: &Stage, script: &str) {
        self.dewar_and(stage, script, "& echo star''ted");
        self.expect("started");
        let stopped = until(|| {
            self.expect("outer> ");
            self.keys("jobs; echo sa''id\n");
            self.expect("said").contains("Stopped").then_some(())
        });
        stopped.expect("it is stopped");
        self.expect("outer> ");
    }

    /// Interrupts again and again until `text` comes out: who is brought to the foreground is named
    /// before it is there.
    pub(super) fn interrupt_until(&mut self, text: &str) {
        let come = until(|| {
            self.keys(INTERRUPT);
            std::thread::sleep(Duration::from_millis(200));
            self.read();
            self.seen.contains(text).then_some(())
        });
        come.unwrap_or_else(|| panic!("no {text:?} in {:?}", self.seen));
        self.expect(text);
    }

    /// What has come out by now.
    pub(super) fn read(&mut self) {
        let mut bytes = [0; 4096];
        // Nothing to read now, or nobody has the other side open.
        let count = self.master.read(&mut bytes).unwrap_or(0);
        self.seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }

    /// Waits until `text` has come out, and forgets everything up to it; what came before.
    pub(super) fn expect(&mut self, text: &str) -> String {
        let found = until(|| {
            self.read();
            self.seen.find(text)
        });
        let at = found.unwrap_or_else(|| panic!("no {text:?} in {:?}", self.seen));
        let rest = self.seen.split_off(at + text.len());
        std::mem::replace(&mut self.seen, rest)
    }

    /// What the shell says of the last command.
    pub(super) fn status(&mut self) -> i32 {
        self.expect("outer> ");
        self.keys("echo sta''tus $?.\n");
        self.expect("status ");
        self.expect(".").trim_end_matches('.').parse().expect("a number")
    }
}

/// What is typed to run a script under Dewar.
pub(super) fn line(stage: &Stage, script: &str) -> String {
    line_of(&stage.dewar(stage.call(), &bash(script)))
}

/// The same of any command.
pub(super) fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| format!("'{}' ", word.to_string_lossy().replace('\'', r"'\''"))).collect()
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
