//! Cases, each run as every user that the tests can be.

use crate::{stage::Stage, user::User};
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

/// A test, and its name: a sentence that would be false if it failed.
pub(crate) type Case = (&'static str, fn(&Stage));

/// Lists functions as cases.
macro_rules! cases {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name as fn(&crate::stage::Stage))),*] };
}
pub(crate) use cases;

/// Runs those of `cases` that the command line asks for.
pub(crate) fn run(cases: &[&'static [Case]]) -> ExitCode {
    let mut trials = Vec::new();
    for user in User::available() {
        for (name, case) in cases.iter().copied().flatten() {
            let run = move || {
                case(&Stage::new(user));
                Ok(())
            };
            trials.push(Trial::test(format!("{}::{name}", user.name()), run));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
