//! Random programs of system calls, natively and under profile `open`: the same answers, errno for
//! errno, and the same files afterwards.
//!
//! `DEWAR_RANDOM_PROGRAMS` says how many (150 by default), `DEWAR_RANDOM_SEED` with which seed to
//! start. A program that differs is made smaller before it is shown, unless the difference is in
//! [`known::KNOWN`].

mod known;
#[path = "../suites/list.rs"]
mod list;
mod page;
mod performer;
mod program;
mod stage;

use libtest_mimic::{Arguments, Failed, Trial};
use performer::{Performer, Way};
use program::{Program, generate, smaller};
use stage::{Stage, enter_own_devices};
use std::{collections::BTreeMap, path::Path, process::ExitCode, sync::Arc};
use test_support::Variant;

/// Programs that one process performs.
const BATCH: usize = 100;
/// Differing programs that are shown.
const MOST_SHOWN: usize = 5;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let stage = match enter_own_devices().and_then(|()| Stage::new()) {
        Ok(stage) => Arc::new(stage),
        Err(error) => {
            eprintln!("error: random programs cannot run: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let page = Trial::test("the_page_of_known_differences_is_the_list", page_is_the_list);
    let trials = Variant::ALL.into_iter().flat_map(|who| {
        let stage = &stage;
        Way::ALL.into_iter().map(move |way| {
            let stage = Arc::clone(stage);
            let name = format!("{}::random_programs_cannot_tell_mode_{}", who.name(), way.name());
            Trial::test(name, move || compare(&stage.performer(who, way), way))
        })
    });
    libtest_mimic::run(&arguments, trials.chain([page]).collect()).exit_code()
}

/// `docs/compatibility.md` says what the list says; with `DEWAR_WRITE_PAGE` it is made to.
fn page_is_the_list() -> Result<(), Failed> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compatibility.md");
    if std::env::var_os("DEWAR_WRITE_PAGE").is_some() {
        std::fs::write(&path, page::page())?;
    }
    let same = std::fs::read_to_string(&path)? == page::page();
    if same { Ok(()) } else { Err("it is not; write it with `DEWAR_WRITE_PAGE=1`".into()) }
}

fn number(variable: &str, default: u64) -> Result<u64, Failed> {
    match std::env::var(variable) {
        Ok(text) => text.parse().map_err(|_| format!("`{variable}` is no number: `{text}`").into()),
        Err(_) => Ok(default),
    }
}

fn compare(performer: &Performer, way: Way) -> Result<(), Failed> {
    let count = number("DEWAR_RANDOM_PROGRAMS", 150)?;
    let first = number("DEWAR_RANDOM_SEED", 1)?;
    let mut shown = Vec::new();
    let mut kinds: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let (mut differing, mut known, mut racing) = (0, 0, 0);
    let seeds: Vec<u64> = (first..first + count).collect();
    for seeds in seeds.chunks(BATCH) {
        let programs: Vec<Program> = seeds.iter().map(|seed| generate(*seed)).collect();
        for (at, kind) in performer.differing(way, &programs) {
            let Err(kind) = kind else {
                known += 1;
                continue;
            };
            if performer.races(way, &programs[at]) {
                racing += 1;
                continue;
            }
            differing += 1;
            if !kinds.contains_key(&kind) {
                eprintln!("seed {}: {kind}", seeds[at]);
            }
            let (times, _) = kinds.entry(kind).or_insert((0, seeds[at]));
            *times += 1;
            if *times == 1 && shown.len() < MOST_SHOWN {
                shown.push(explain(performer, way, seeds[at], &programs[at]));
            }
        }
    }
    if differing == 0 {
        eprintln!(
            "{count} programs: {known} differ as is known, {racing} race with themselves, the \
             others differ in nothing"
        );
        return Ok(());
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, (times, _))| std::cmp::Reverse(*times));
    let kinds: String = kinds
        .iter()
        .map(|(kind, (times, seed))| format!("{times:6} x {kind} (seed {seed})\n"))
        .collect();
    Err(format!(
        "{differing} of {count} programs differ, and {known} as is known\n{kinds}{}",
        shown.join("\n")
    )
    .into())
}

/// The smallest program that still differs, and how. All that are one step smaller are tried at
/// once.
fn explain(performer: &Performer, way: Way, seed: u64, program: &Program) -> String {
    let unknown = |programs: &[Program]| {
        let found = performer.differing(way, programs).into_iter();
        found.filter(|(_, kind)| kind.is_err()).map(|(at, _)| at).next()
    };
    if unknown(std::slice::from_ref(program)).is_none() {
        return format!("seed {seed}: differs only sometimes, or only after others");
    }
    let mut least = program.clone();
    loop {
        let candidates = smaller(&least);
        let Some(first) = unknown(&candidates) else { break };
        least.clone_from(&candidates[first]);
    }
    format!("seed {seed}:\n{}", performer.show(way, &least))
}
