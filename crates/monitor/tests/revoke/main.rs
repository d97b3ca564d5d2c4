//! Takes permissions back from real programs, as root and as an ordinary user.
//!
//! Each test starts this program again as a small Dewar (`--as-dewar`), which runs a script of Python under one
//! profile, changes to another when the script is ready, and tells the script when the change is complete.

mod dewar;
mod held;
mod reach;
mod stage;
#[path = "../common/user.rs"]
mod user;

use libtest_mimic::{Arguments, Trial};
use stage::Stage;
use std::process::ExitCode;
use user::User;

/// A test, and its name: a sentence that would be false if it failed.
pub(crate) type Case = (&'static str, fn(&Stage));

/// Lists functions as cases.
macro_rules! cases {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), $name as fn(&crate::stage::Stage))),*] };
}
pub(crate) use cases;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|first| first == "--as-dewar") {
        dewar::main(arguments);
    }
    let mut trials = Vec::new();
    for user in User::available() {
        for (name, case) in held::CASES.iter().chain(reach::CASES) {
            let run = move || {
                case(&Stage::new(user));
                Ok(())
            };
            trials.push(Trial::test(format!("{}::{name}", user.name()), run));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
