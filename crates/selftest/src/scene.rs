//! The attack's side: what it is told, and what it says and leaves.

use std::{
    collections::HashMap,
    io::{self, BufRead as _, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// The first argument of an attack.
pub const ATTACK: &str = "--attack";
/// Said when an attack begins.
pub(crate) const STARTED: &str = "attack started";
/// Said when there is something to look at; the attack then waits until its standard input ends.
pub(crate) const HOLDS: &str = "attack holds";
/// A race may take so long.
pub(crate) const RACE: Duration = Duration::from_millis(1200);

/// What an attack is told: where it is, and what to aim at.
pub(crate) struct Scene(HashMap<String, String>);

impl Scene {
    pub(crate) fn new(told: HashMap<String, String>) -> Self {
        Self(told)
    }

    pub(crate) fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    pub(crate) fn path(&self, key: &str) -> PathBuf {
        PathBuf::from(self.get(key))
    }

    pub(crate) fn number(&self, key: &str) -> i32 {
        self.get(key).parse().unwrap_or(-1)
    }

    pub(crate) fn port(&self) -> u16 {
        self.get("port").parse().unwrap_or(1)
    }

    /// What a witness recognizes.
    pub(crate) fn mark(&self) -> &[u8] {
        self.get("mark").as_bytes()
    }
}

/// Says something on standard output.
pub(crate) fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// Says what was found, whatever bytes it is.
pub(crate) fn loot(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
}

/// Lets the judge look at this process, until standard input ends.
pub(crate) fn hold() {
    say(HOLDS);
    let until = Instant::now() + Duration::from_secs(10);
    let mut line = String::new();
    while Instant::now() < until {
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => line.clear(),
        }
    }
}

/// Writes a file, and the directories above it.
pub(crate) fn plant(path: &Path, content: &str) -> io::Result<()> {
    let name =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(name)?;
    }
    std::fs::write(path, content).map_err(name)
}
