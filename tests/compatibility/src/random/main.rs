//! Random programs of system calls, natively and under profile `open`: the same answers, errno for
//! errno, and the same files afterwards.
//!
//! `DEWAR_RANDOM_PROGRAMS` says how many (150 by default), `DEWAR_RANDOM_SEED` with which seed to
//! start. A program that differs is made smaller before it is shown, unless the difference is in
//! [`known::KNOWN`].

mod difference;
mod grammar;
mod known;
mod mended;
mod page;
mod performer;
mod program;
mod stage;

use libtest_mimic::{Arguments, Failed, Trial};
use performer::{Performer, Way};
use program::{Program, Step, generate, smaller};
use stage::{Stage, enter_own_devices};
use std::{
    collections::BTreeMap,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};
use test_support::Variant;

/// Programs that one process performs.
const BATCH: usize = 100;
/// Differing programs that are shown.
const MOST_SHOWN: usize = 5;
/// Differing programs after which no more are performed: each is tried dozens of times.
const MOST_DIFFERING: usize = 25;
/// A program that differs is made smaller for so long.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // A program may stop a process and orphan its group, which is that of the test, too: the kernel
    // sends that to all of it. What is executed has the default again.
    let hangups = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default());
    hangups.expect("handle SIGHUP");
    let stage = match enter_own_devices().and_then(|()| Stage::new()) {
        Ok(stage) => Arc::new(stage),
        Err(error) => {
            eprintln!("error: random programs cannot run: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let page = Trial::test("the_page_of_known_differences_is_the_list", page_is_the_list);
    let mended = Variant::ALL.into_iter().map(|who| {
        let stage = Arc::clone(&stage);
        let name = format!("{}::what_was_mended_differs_no_more", who.name());
        Trial::test(name, move || mended::differ_no_more(&stage.performer(who, "mended")))
    });
    let mended: Vec<Trial> = mended.collect();
    let trials = Variant::ALL.into_iter().flat_map(|who| {
        let stage = &stage;
        Way::ALL.into_iter().map(move |way| {
            let stage = Arc::clone(stage);
            let name = format!("{}::random_programs_cannot_tell_mode_{}", who.name(), way.name());
            Trial::test(name, move || compare(&stage.performer(who, way.name()), way))
        })
    });
    let performer = stage.performer(Variant::User, "alone");
    let alone =
        Trial::test("a_program_finds_nothing_of_the_one_before", move || finds_nothing(&performer));
    libtest_mimic::run(&arguments, trials.chain(mended).chain([page, alone]).collect()).exit_code()
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

/// Neither what was changed around the other's directory, nor its processes that wait for ever.
fn finds_nothing(performer: &Performer) -> Result<(), Failed> {
    let calls = |lines: &[&str]| lines.iter().map(|line| Step::Call((*line).into())).collect();
    // It waits at an empty pipe, also after its parent has ended.
    let waits = calls(&["pipe 0", "fcntl 3 4 0", "prctl 1 0", "read 3 1"]);
    let mut first: Program =
        calls(&["chdir ..", "chdir ..", "mkdirat -100 a 493", "setxattr . user.a 0 0"]);
    first.extend([Step::Call("chmod . 0".into()), Step::Block("fork", waits)]);
    let second = calls(&[
        "chdir ..",
        "chdir ..",
        "stat .",
        "stat a",
        "listxattr . 100",
        "mkdirat -100 b 493",
    ]);
    let of = |way, programs: &[Program]| performer.perform(way, programs).into_values();
    for way in [None, Some(Way::All)] {
        let wanted = of(way, std::slice::from_ref(&second)).next().unwrap_or_default();
        let both: Vec<Vec<String>> = of(way, &[first.clone(), second.clone()]).collect();
        let [first, found] = both.as_slice() else {
            return Err(format!("{way:?}: {both:?}").into());
        };
        if !first.iter().any(|line| line == "ended 0 14") {
            return Err(format!("{way:?}: not ended by `SIGALRM`: {first:?}").into());
        }
        // But for its number.
        let told = |lines: &[String]| -> Vec<String> {
            let is_own =
                |line: &&String| !line.starts_with("program") && !line.starts_with("ended");
            lines.iter().filter(is_own).cloned().collect()
        };
        if told(&wanted) != told(found) {
            return Err(format!("{way:?}: alone {wanted:?}, after another {found:?}").into());
        }
    }
    Ok(())
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
    let mut known: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut differing, mut racing) = (0, 0);
    let seeds: Vec<u64> = (first..first + count).collect();
    for seeds in seeds.chunks(BATCH) {
        let programs: Vec<Program> = seeds.iter().map(|seed| generate(*seed)).collect();
        if differing >= MOST_DIFFERING {
            break;
        }
        for (at, kind) in performer.differing(way, &programs) {
            if differing >= MOST_DIFFERING {
                break;
            }
            let kind = match kind {
                Ok(it) => {
                    *known.entry(it.native).or_default() += 1;
                    continue;
                }
                Err(kind) => kind,
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
    let as_known: u64 = known.values().sum();
    if differing == 0 {
        eprintln!(
            "{count} programs: {as_known} differ as is known, {racing} race with themselves, the \
             others differ in nothing; known: {known:?}"
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
        "{differing} of {count} programs differ, and {as_known} as is known\n{kinds}{}",
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
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let candidates = smaller(&least);
        let Some(first) = unknown(&candidates) else { break };
        least.clone_from(&candidates[first]);
    }
    format!("seed {seed}:\n{}", performer.show(way, &least))
}
