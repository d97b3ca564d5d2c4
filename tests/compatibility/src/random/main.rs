//! Random programs of system calls, natively and under profile `open`: the same answers, errno for errno, and
//! the same files afterwards.
//!
//! `DEWAR_RANDOM_PROGRAMS` says how many (2,000 by default), `DEWAR_RANDOM_SEED` with which seed to start. A
//! program that differs is made smaller before it is shown.

mod performer;
mod program;
mod stage;

use libtest_mimic::{Arguments, Failed, Trial};
use performer::{Performer, Way};
use program::{Program, generate, smaller};
use stage::{Stage, Who};
use std::{collections::BTreeMap, process::ExitCode, sync::Arc};

/// Programs that one process performs.
const BATCH: usize = 100;
/// Differing programs that are shown.
const MOST_SHOWN: usize = 5;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let stage = match Stage::new() {
        Ok(stage) => Arc::new(stage),
        Err(error) => {
            eprintln!("error: random programs cannot run: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let trials = Who::ALL.into_iter().flat_map(|who| {
        let stage = &stage;
        Way::ALL.into_iter().map(move |way| {
            let stage = Arc::clone(stage);
            let name = format!("{}::random_programs_cannot_tell_mode_{}", who.name(), way.name());
            Trial::test(name, move || compare(&stage.performer(who), way))
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn number(variable: &str, default: u64) -> Result<u64, Failed> {
    match std::env::var(variable) {
        Ok(text) => text.parse().map_err(|_| format!("`{variable}` is no number: `{text}`").into()),
        Err(_) => Ok(default),
    }
}

fn compare(performer: &Performer, way: Way) -> Result<(), Failed> {
    let count = number("DEWAR_RANDOM_PROGRAMS", 2_000)?;
    let first = number("DEWAR_RANDOM_SEED", 1)?;
    let mut shown = Vec::new();
    let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut differing = 0;
    let seeds: Vec<u64> = (first..first + count).collect();
    for seeds in seeds.chunks(BATCH) {
        let programs: Vec<Program> = seeds.iter().map(|seed| generate(*seed)).collect();
        for (at, kind) in performer.differing(way, &programs) {
            differing += 1;
            let (times, _) = kinds.entry(kind).or_insert((0, seeds[at]));
            *times += 1;
            if *times == 1 && shown.len() < MOST_SHOWN {
                shown.push(explain(performer, way, seeds[at], &programs[at]));
            }
        }
    }
    if differing == 0 {
        return Ok(());
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, (times, _))| std::cmp::Reverse(*times));
    let kinds: String = kinds
        .iter()
        .map(|(kind, (times, seed))| format!("{times:6} x {kind} (seed {seed})\n"))
        .collect();
    Err(format!("{differing} of {count} programs differ\n{kinds}{}", shown.join("\n")).into())
}

/// The smallest program that still differs, and how. All that are one step smaller are tried at once.
fn explain(performer: &Performer, way: Way, seed: u64, program: &Program) -> String {
    if performer.differing(way, std::slice::from_ref(program)).is_empty() {
        return format!("seed {seed}: differs only sometimes, or only after others");
    }
    let mut least = program.clone();
    loop {
        let candidates = smaller(&least);
        let Some(&(first, _)) = performer.differing(way, &candidates).first() else { break };
        least.clone_from(&candidates[first]);
    }
    format!("seed {seed}:\n{}", performer.show(way, &least))
}
