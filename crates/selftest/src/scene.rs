//! The attack's side: this program, started inside the sandbox.

use crate::cases;
use std::{
    collections::HashMap,
    ffi::OsString,
    io::{self, BufRead as _, Write as _},
    path::PathBuf,
    process::ExitCode,
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

/// Whether this program was started as an attack.
#[must_use]
pub fn is_attack(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.nth(1).is_some_and(|first| first == ATTACK)
}

/// Carries out what `--attack NAME KEY=VALUE…` says.
#[must_use]
pub fn run_attack() -> ExitCode {
    let mut words = std::env::args().skip(2);
    let name = words.next().unwrap_or_default();
    let told = words.filter_map(|word| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    });
    let scene = Scene(told.collect());
    say(STARTED);
    let done = match cases::helper(&name) {
        Some(helper) => helper(&scene),
        None => match cases::find(&name) {
            Some(case) => (case.attack)(&scene),
            None => Err(io::Error::other(format!("no attack is called `{name}`"))),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "attack failed: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Scene {
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
