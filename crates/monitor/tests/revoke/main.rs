//! Takes permissions back from real programs, as root and as an ordinary user.
//!
//! Each test starts this program again as a small Dewar (`--as-dewar`), which runs a script of
//! Python under one profile, changes to another when the script is ready, and tells the script when
//! the change is complete.

mod borrowed;
mod chains;
mod deleted;
mod dewar;
mod held;
mod late;
mod local;
mod network;
mod parked;
mod reach;
mod seizing;
mod settled;
mod stage;
#[path = "../../../confine/tests/common/trials.rs"]
mod trials;
mod untold;
#[path = "../../../confine/tests/common/user.rs"]
mod user;

use std::process::ExitCode;

pub(crate) use trials::{Case, cases};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|first| first == "--as-dewar") {
        dewar::main(arguments);
    }
    trials::run(&[
        borrowed::CASES,
        chains::CASES,
        deleted::CASES,
        held::CASES,
        late::CASES,
        local::CASES,
        network::CASES,
        parked::CASES,
        reach::CASES,
        seizing::CASES,
        settled::CASES,
        untold::CASES,
    ])
}
