//! Every shipped profile with every kind of program: it works as natively, or is denied for a
//! reason that is on record.
//!
//! What is expected stands in `expected.tsv`, of which `docs/compatibility.md` tells; with
//! `DEWAR_WRITE_PAGE=1` it is written. Run by an ordinary user, or by root as one.

mod programs;
mod stage;

use libtest_mimic::{Arguments, Failed, Trial};
use programs::PROGRAMS;
use stage::Stage;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

/// What came of each program, by profile.
type Matrix = BTreeMap<String, Vec<String>>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let stage = match Stage::new() {
        Ok(stage) => Arc::new(stage),
        Err(error) => {
            eprintln!("error: programs cannot run under profiles: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let found = Arc::new(Mutex::new(Matrix::new()));
    let (expected, writes) = (Arc::new(read()), std::env::var_os("DEWAR_WRITE_PAGE").is_some());
    let trials = profiles().into_iter().map(|profile| {
        let (stage, found) = (Arc::clone(&stage), Arc::clone(&found));
        let expected = Arc::clone(&expected);
        let name = format!("{profile}::programs_work_or_are_denied_as_expected");
        Trial::test(name, move || {
            let row = row(&stage, &profile)?;
            let differing = differing(&row, expected.get(&profile));
            found.lock().unwrap_or_else(PoisonError::into_inner).insert(profile, row);
            if writes || differing.is_empty() { Ok(()) } else { Err(differing.into()) }
        })
    });
    let trials: Vec<Trial> = trials.collect();
    // Programs wait for most of their time, for others or for names that nobody answers.
    arguments.test_threads.get_or_insert(trials.len());
    let conclusion = libtest_mimic::run(&arguments, trials);
    let found = found.lock().unwrap_or_else(PoisonError::into_inner);
    if writes && found.len() == profiles().len() {
        write(&found);
    }
    conclusion.exit_code()
}

/// The names of the shipped profiles.
fn profiles() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policy/profiles");
    let names = std::fs::read_dir(directory).expect("profiles").filter_map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().ok()?;
        Some(name.strip_suffix(".toml")?.to_owned())
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn row(stage: &Stage, profile: &str) -> Result<Vec<String>, Failed> {
    PROGRAMS.iter().map(|program| Ok(stage.outcome(profile, program)?)).collect()
}

fn differing(row: &[String], expected: Option<&Vec<String>>) -> String {
    let none = Vec::new();
    let expected = expected.unwrap_or(&none);
    let lines = PROGRAMS.iter().enumerate().filter(|(n, _)| expected.get(*n) != row.get(*n));
    let lines = lines.map(|(n, program)| {
        let expected = expected.get(n).map_or("nothing", |it| it);
        format!("{}: {}, expected {expected}\n", program.name, row[n])
    });
    lines.collect()
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/matrix/expected.tsv")
}

fn read() -> Matrix {
    let text = std::fs::read_to_string(path()).unwrap_or_default();
    let row = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        Some((cells.next()?, cells.collect()))
    };
    text.lines().skip(1).filter_map(row).collect()
}

fn write(found: &Matrix) {
    let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
    let mut text = format!("profile\t{}\n", names.join("\t"));
    for (profile, row) in found {
        text += &format!("{profile}\t{}\n", row.join("\t"));
    }
    std::fs::write(path(), text).expect("write what was found");
}
