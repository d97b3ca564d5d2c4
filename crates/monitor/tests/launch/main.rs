//! Launches real commands, as root and as an ordinary user.
//!
//! Each test starts this program again as a small Dewar (`--as-dewar PLAN COMMAND…`), as a
//! sandbox can be started only from a process with a single thread, and looks at it from the
//! outside, as a user would.

mod confinement;
mod death;
mod dewar;
mod doctor;
mod limits;
mod stage;
mod status;
mod terminal;
#[path = "../common/user.rs"]
mod user;
mod view;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use stage::Stage;
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
    match arguments.nth(1).as_deref().and_then(|first| first.to_str()) {
        Some("--as-dewar") => dewar::main(arguments),
        Some("--as-doctor") => {
            println!("{}", serde_json::json!(monitor::layers::Layers::probe()));
            return ExitCode::SUCCESS;
        }
        Some("--on-terminal") => terminal::on_terminal(arguments),
        _ => {}
    }
    let all = [
        status::CASES,
        confinement::CASES,
        view::CASES,
        death::CASES,
        limits::CASES,
        doctor::CASES,
        terminal::CASES,
    ];
    let mut trials = Vec::new();
    for user in User::available() {
        for (name, case) in all.into_iter().flatten() {
            let run = move || {
                case(&Stage::new(user));
                Ok(())
            };
            trials.push(Trial::test(format!("{}::{name}", user.name()), run));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
