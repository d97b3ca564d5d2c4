//! A terminal for those who are asked on one.

use crate::ask::{Home, PATIENCE, text};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::{Child, Command},
    time::{Duration, Instant},
};

/// A run on a terminal of its own, seen from the keyboard.
pub(crate) struct Terminal {
    pub(crate) master: File,
    /// What it says of its size; it says nothing at all if that is 0.
    pub(crate) rows: usize,
    child: Child,
    seen: String,
    /// What has not been looked through for questions to the terminal.
    unheard: String,
}

impl Terminal {
    pub(crate) fn run(home: &Home, options: &[&str], script: &str) -> Self {
        let args =
            [&["run", "--no-daemon", "--ask"], options, &["--", "sh", "-c", script]].concat();
        Self::start(home.command(&["--ctty"], &args))
    }

    /// Starts what has the terminal on standard input to control it.
    pub(crate) fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let stream = || File::options().read(true).write(true).open(&name).unwrap();
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let child = command.spawn().unwrap();
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        let (seen, unheard) = Default::default();
        Self { master: master.into(), rows: 24, child, seen, unheard }
    }

    /// Reads what has come, and answers as terminals do; how much it was.
    fn read(&mut self) -> usize {
        let mut bytes = [0; 4096];
        let count = self.master.read(&mut bytes).unwrap_or(0);
        let text = text(&bytes[..count]);
        self.seen.push_str(&text);
        self.unheard.push_str(&text);
        while let Some(at) = self.unheard.find("\x1b[6n") {
            let place = match self.unheard[..at].rsplit("\x1b[").next().unwrap_or_default() {
                "999;999H" => format!("{};80", self.rows),
                column => format!("1;{}", column.trim_end_matches('G')),
            };
            self.unheard.drain(..at + 4);
            if self.rows > 0 {
                self.master.write_all(format!("\x1b[{place}R").as_bytes()).unwrap();
            }
        }
        count
    }

    /// Waits until `part` has come out, and forgets everything up to it; what came before.
    pub(crate) fn expect(&mut self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            self.read();
            if let Some(at) = self.seen.find(part) {
                let rest = self.seen.split_off(at + part.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            assert!(Instant::now() < until, "no {part:?} in {:?}", self.seen);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for the question, and types.
    pub(crate) fn answer(&mut self, keys: &str) -> String {
        let asked = self.expect("[N]o? ");
        self.master.write_all(keys.as_bytes()).unwrap();
        asked
    }

    /// What comes until the end, and the exit status.
    pub(crate) fn end(mut self) -> (String, i32) {
        let until = Instant::now() + PATIENCE;
        loop {
            let count = self.read();
            if let (0, Some(status)) = (count, self.child.try_wait().unwrap()) {
                return (std::mem::take(&mut self.seen), status.code().unwrap_or(-1));
            }
            assert!(Instant::now() < until, "it does not end: {:?}", self.seen);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
