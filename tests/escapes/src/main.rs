//! Attacks. Each test builds a small program that tries to get out of its sandbox, runs it under
//! `dewar run`, and looks from outside whether it did.
//!
//! An attack ends with status 0 when it was held and with 42 when it got through. Every test runs
//! as root, as an ordinary user, and as an ordinary user on a machine that forbids namespaces,
//! unless it is about one of these.

mod answers;
mod attack;
mod case;
mod control;
mod dewar;
mod domains;
mod files;
mod inside;
mod kernel;
mod links;
mod network;
mod planting;
mod processes;
mod random;
mod stage;
mod terminals;

pub(crate) use case::{Case, cases};

use libtest_mimic::{Arguments, Trial};
use stage::{Stage, available};
use std::process::ExitCode;

fn main() -> ExitCode {
    let groups = [
        control::CASES,
        domains::CASES,
        files::CASES,
        inside::CASES,
        kernel::CASES,
        links::CASES,
        network::CASES,
        planting::CASES,
        processes::CASES,
        random::CASES,
        terminals::CASES,
    ];
    let mut trials = Vec::new();
    for variant in available() {
        for (name, case) in groups.into_iter().flatten() {
            let run = move || {
                case(&Stage::new(variant));
                Ok(())
            };
            trials.push(Trial::test(format!("{}::{name}", variant.name()), run));
        }
    }
    let told = "modes_are_told_from_times";
    trials.push(Trial::test(told, answers::modes_are_told_from_times));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
