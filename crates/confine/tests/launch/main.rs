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
#[path = "../common/trials.rs"]
mod trials;
#[path = "../common/user.rs"]
mod user;
mod view;

use std::process::ExitCode;

pub(crate) use trials::{Case, cases};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    match arguments.nth(1).as_deref().and_then(|first| first.to_str()) {
        Some("--as-dewar") => dewar::main(arguments),
        Some("--as-doctor") => {
            println!("{}", serde_json::json!(confine::layers::Layers::probe()));
            return ExitCode::SUCCESS;
        }
        Some("--on-terminal") => terminal::on_terminal(arguments),
        _ => {}
    }
    trials::run(&[
        status::CASES,
        confinement::CASES,
        view::CASES,
        death::CASES,
        limits::CASES,
        doctor::CASES,
        terminal::CASES,
    ])
}
