//! An attack: this program, started inside the sandbox.

use crate::{
    cases,
    scene::{ATTACK, STARTED, Scene, say},
};
use rustix::process::{getegid, geteuid, getgid, getuid};
use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

/// Whether this program was started as an attack.
#[must_use]
pub fn is_attack(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.nth(1).is_some_and(|first| first == ATTACK)
}

/// Carries out what `--attack NAME KEY=VALUE…` says.
#[must_use]
pub fn run_attack() -> ExitCode {
    // An attack does what its caller says: with the caller's rights alone.
    if getuid() != geteuid() || getgid() != getegid() {
        let _ = writeln!(io::stderr(), "attack refused: it would have the rights of another user");
        return ExitCode::FAILURE;
    }
    let mut words = std::env::args().skip(2);
    let name = words.next().unwrap_or_default();
    let told = words.filter_map(|word| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    });
    let scene = Scene::new(told.collect());
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
