//! Real programs under `dewar run`: what works natively works the same in the sandbox, and what
//! policy refuses is refused and explained.
//!
//! Every case runs as root, as an ordinary user, and as an ordinary user without any namespace (as
//! on a machine that forbids them); some run where user namespaces are refused, under what Docker
//! refuses by default, and in a sandbox of bubblewrap's (`DEWAR_TESTS_SURROUNDED=all`: every
//! program). Cases compare with the same command run natively in an identical directory. With
//! `DEWAR_TESTS_DAEMON=1`, every case has a daemon of its user, which decides for all of its runs.
//! Called by who is not root, the tests fail unless `DEWAR_TESTS_AS=user` says that the part for
//! root is run elsewhere.

mod case;
mod changes;
mod daemon;
mod denied;
mod dewar;
mod explained;
mod fidelity;
mod guard;
mod identity;
mod kernel;
mod process;
mod programs;
mod record;
mod same;
mod stage;
mod suite;
mod surrounded;
mod terminal;
mod tree;

pub(crate) use case::{Case, cases};

use libtest_mimic::{Arguments, Trial};
use stage::Stage;
use std::{process::ExitCode, sync::Arc};
use suite::Suite;
use test_support::Variant;

fn main() -> ExitCode {
    identity::serve_if_called_so();
    let arguments = Arguments::from_args();
    let suite = match Suite::new() {
        Ok(suite) => Arc::new(suite),
        Err(error) => {
            eprintln!("error: the sandbox tests cannot run: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let groups = [
        programs::CASES,
        kernel::CASES,
        denied::CASES,
        explained::CASES,
        fidelity::CASES,
        &[guard::CASES],
        terminal::CASES,
        changes::CASES,
        identity::CASES,
        daemon::CASES,
    ];
    let cases: Vec<&Case> = groups.into_iter().flatten().copied().flatten().collect();
    let in_surroundings = surrounded_cases();
    let trials = Variant::ALL.into_iter().map(|variant| (variant, &cases));
    let surrounded = Variant::SURROUNDED.into_iter().map(|variant| (variant, &in_surroundings));
    let offered = trials.chain(surrounded).filter(|(variant, _)| suite.offers(*variant));
    let trials = offered.flat_map(|(variant, cases)| {
        let suite = &suite;
        cases.iter().map(move |(name, case)| {
            let (suite, case) = (Arc::clone(suite), *case);
            let run = move || {
                let stage = Stage::new(suite, variant);
                match surrounded::why_not(name, variant) {
                    None => case(&stage),
                    Some(reason) => surrounded::fails(case, &stage, reason),
                }
                Ok(())
            };
            Trial::test(format!("{}::{name}", variant.name()), run)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// What runs in the surroundings that people will first try Dewar in.
fn surrounded_cases() -> Vec<&'static Case> {
    let all = std::env::var_os("DEWAR_TESTS_SURROUNDED").is_some_and(|it| it == "all");
    let programs = if all { programs::CASES } else { &[] };
    let everywhere = surrounded::CASES.iter().chain(changes::SURROUNDED);
    programs.iter().copied().flatten().chain(everywhere).collect()
}
