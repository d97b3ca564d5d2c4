//! Test suites of others, natively and under Dewar: what passes natively passes under profile
//! `open` in both modes, and under `workspace`, but for what `known.tsv` names.
//!
//! `DEWAR_SUITES=all` runs them whole (`make compatibility`); else some have a quick part. With
//! `DEWAR_WRITE_PAGE=1` how many cases passed is kept in `results.tsv`, of which
//! `docs/compatibility.md` tells. `DEWAR_SUITES_DONE` names a file of suites that have passed
//! whole, which the same build does not run again.

mod done;
mod keeper;
mod known;
mod stage;
mod suite;

use done::Done;
use libtest_mimic::{Arguments, Failed, Trial};
use stage::{Said, Stage, Way, Who};
use std::{collections::BTreeMap, path::PathBuf, process::ExitCode, sync::Arc};
use suite::{SUITES, Suite};

fn main() -> ExitCode {
    if let Some(code) = keeper::main() {
        return code;
    }
    let arguments = Arguments::from_args();
    let file = std::env::var_os("DEWAR_SUITES_DONE").map(PathBuf::from);
    let (stage, done) = match Stage::new().and_then(|stage| Ok((stage, Done::new(file)?))) {
        Ok((stage, done)) => (Arc::new(stage), Arc::new(done)),
        Err(error) => {
            eprintln!("error: suites of others cannot run: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    let is_whole = std::env::var_os("DEWAR_SUITES").is_some_and(|it| it == "all");
    let mut trials = Vec::new();
    for suite in SUITES.iter().filter(|suite| is_whole || suite.has_quick_part) {
        for who in suite.run_by {
            let (stage, done) = (Arc::clone(&stage), Arc::clone(&done));
            let name = format!("{}::{}_passes_as_natively", who.name(), suite.name);
            // Shown as ignored.
            let has_passed = is_whole && done.has(suite.name, who.name());
            let run = move || {
                check(&stage, suite, *who, is_whole)?;
                if is_whole {
                    done.add(suite.name, who.name())?;
                }
                Ok(())
            };
            trials.push(Trial::test(name, run).with_ignored_flag(has_passed));
        }
    }
    trials.push(Trial::test("what_a_suite_leaves_ends_with_it", move || leaves_nothing(&stage)));
    trials.push(Trial::test("a_suite_that_has_lost_its_cases_fails", shrunk_is_told));
    trials.push(Trial::test("what_has_passed_is_known_to_the_same_build", known_when_passed));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A process that left the suite's session, and holds its output, ends; errors are kept.
fn leaves_nothing(stage: &Stage) -> Result<(), Failed> {
    let suite = Suite {
        name: "leaves",
        packages: "util-linux",
        script: "setsid sleep 600 & printf '%s\tpass\n' $!; echo an error >&2",
        before: "",
        source: None,
        has_quick_part: true,
        run_by: &[Who::User],
    };
    let said = stage.run(&suite, Who::User, Way::Native, false)?;
    let (pid, _) = said.output.split_once('\t').ok_or("no PID")?;
    let is_there = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
    match is_there.is_ok_and(|it| it.starts_with("sleep")) || said.errors != "an error" {
        true => Err(format!("process {pid} is left, or no error: {:?}", said.errors).into()),
        false => Ok(()),
    }
}

fn shrunk_is_told() -> Result<(), Failed> {
    for (passed, before) in [(6, None), (4, None), (3, Some(7)), (0, Some(7))] {
        if known::shrunk("jq", "user", passed) != before {
            return Err(format!("{passed} of 7").into());
        }
    }
    match known::shrunk("jq", "nobody", 0) {
        None => Ok(()),
        Some(before) => Err(format!("{before} of nobody").into()),
    }
}

fn known_when_passed() -> Result<(), Failed> {
    let file = tempfile::NamedTempFile::new()?;
    let done = || Done::new(Some(file.path().to_owned()));
    done()?.add("jq", "user")?;
    let later = done()?;
    if !later.has("jq", "user") || later.has("jq", "root") || later.has("tar", "user") {
        return Err(std::fs::read_to_string(file.path())?.into());
    }
    std::fs::write(file.path(), "jq\tuser\t0\n")?;
    if done()?.has("jq", "user") {
        return Err("it passed by another build".into());
    }
    Ok(())
}

/// What came of each case.
type Results = BTreeMap<String, String>;

fn check(stage: &Stage, suite: &Suite, who: Who, is_whole: bool) -> Result<(), Failed> {
    let native = results(&stage.run(suite, who, Way::Native, is_whole)?.output);
    let passed: Vec<&String> =
        native.iter().filter(|(_, result)| *result == "pass").map(|(case, _)| case).collect();
    if passed.is_empty() {
        return Err(format!("no case of {} passes natively", suite.name).into());
    }
    if let Some(before) = known::shrunk(suite.name, who.name(), passed.len()).filter(|_| is_whole) {
        let now = passed.len();
        return Err(format!("{now} cases pass natively, and {before} did: what is missing?").into());
    }
    let mut faults = Vec::new();
    let mut counts = vec![passed.len()];
    for way in Way::DEWAR {
        let Said { output, errors } = stage.run(suite, who, way, is_whole)?;
        let found = results(&output);
        let before = faults.len();
        let differs = |case: &&&String| found.get(**case).is_none_or(|it| it != "pass");
        let differing: Vec<&&String> = passed.iter().filter(differs).collect();
        counts.push(passed.len() - differing.len());
        for case in differing {
            if let Some(reason) = known::reason(suite.name, case, way) {
                eprintln!("{case} differs under {}: {reason}", way.name());
                continue;
            }
            let result = found.get(*case).map_or("nothing", |it| it);
            let said = output.lines().filter(|line| line.starts_with(&format!("# {case}:")));
            let said: Vec<&str> = said.collect();
            faults.push(format!("{case}: {result} under {}\n{}", way.name(), said.join("\n")));
        }
        if faults.len() > before && !errors.is_empty() {
            faults.push(format!("its standard error under {}:\n{errors}", way.name()));
        }
    }
    eprintln!("{} {}: {counts:?} of {} cases", who.name(), suite.name, native.len());
    if is_whole && std::env::var_os("DEWAR_WRITE_PAGE").is_some() {
        known::keep(suite.name, who.name(), &counts)?;
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n").into()) }
}

/// The lines `CASE<TAB>RESULT`; of a case that is told twice, the worse.
fn results(output: &str) -> Results {
    let mut results = Results::new();
    for (case, result) in output.lines().filter_map(|line| line.split_once('\t')) {
        let known = results.entry(case.to_owned()).or_insert_with(|| result.to_owned());
        if result == "fail" {
            "fail".clone_into(known);
        }
    }
    results
}
