//! Single operations on plugins.

use super::{
    floor,
    jobs::{Jobs, batch, text},
    latency::{self, Latency},
    trial::{GRAY, Trial, limits, spec},
};
use anyhow::Context as _;
use avc::{Avc, Hint};
use bench::{
    interleaved::{Batch, Interleaved, Stopwatch},
    machine::Machine,
    sheet::{Cell, Sheet},
    statistics::Summary,
    table,
};
use ecode_kernel::{KernelCode, KernelOptions};
use flask::{Class, Question, SecurityServer, perm};
use plugin_host::{Cache, HOST_DECLARATIONS, PLUGIN_CONTEXT, PluginSpec, Session, Target};
use serde::Serialize;
use std::{os::unix::fs::PermissionsExt, sync::Arc, time::Duration};

const NULL: &str = "long handle(const char *in, long n, char *out, long room) { return 0; }";
/// Asks for a permission in each iteration.
const ASKS: &str = "long handle(const char *in, long n, char *out, long room)
{ for (int i = 0; i < 1000; i++) host_log(in, 0); return 0; }";
/// The same iterations without asking.
const ITERATIONS: &str = "long handle(const char *in, long n, char *out, long room)
{ long sum = 0; for (int i = 0; i < 1000; i++) sum ^= i * n; return sum & 0; }";
const ASKED: u32 = 1000;
/// How often the operations are timed one by one.
const TIMES: usize = 1000;

/// What one operation takes.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Operation {
    name: String,
    ns: Option<Summary>,
    #[serde(rename = "rounds_ns")]
    runs: Vec<f64>,
    failure: Option<String>,
}

/// What all of them take.
#[derive(Clone, Debug, Serialize)]
pub(super) struct OperationReport {
    machine: Machine,
    operations: Vec<Operation>,
    latencies: Vec<Latency>,
}

impl OperationReport {
    pub(super) fn sheets(&self) -> Vec<Sheet> {
        let mut sheet = Sheet::new(
            "plugins: single operations",
            &[
                ("operation (processor time)", 0, false),
                ("median", 0, true),
                ("± MAD", 1, true),
                ("min", 2, true),
                ("max", 3, true),
            ],
        );
        for operation in &self.operations {
            let mut row = vec![operation.name.as_str().into()];
            row.extend(match operation.ns {
                Some(ns) => [ns.median, ns.mad, ns.min, ns.max]
                    .map(|ns| Cell::number(table::nanoseconds(ns), ns)),
                None => ["failed".into(), Cell::empty(), Cell::empty(), Cell::empty()],
            });
            sheet.push(row);
        }
        let mut latencies = latency::sheet(&self.latencies);
        for operation in &self.operations {
            if let Some(why) = &operation.failure {
                latencies.notes.push(format!("{}: {why}", operation.name));
            }
        }
        let lines = GRAY.lines().count();
        latencies.notes.push(format!("{lines} lines of E-code are compiled; {}", self.machine));
        vec![sheet, latencies]
    }

    /// What calling an isolated plugin takes.
    pub(super) fn upcall(&self) -> Option<Summary> {
        self.operations.iter().find(|it| it.name == "upcall, isolated")?.ns
    }
}

pub(super) fn measure(iterations: Interleaved) -> anyhow::Result<OperationReport> {
    let machine = Machine::here();
    let plain = Trial::new(None)?;
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let only_owner = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(directory.path(), only_owner)?;
    let cache = Cache::open(directory.path(), Cache::DEFAULT_BYTES)?;
    let cached = Trial::new(Some(cache))?;
    let mut jobs = Jobs::new();
    calls(&plain, &mut jobs)?;
    floor::jobs(&mut jobs)?;
    checks(&plain, &mut jobs)?;
    loads(&plain, &cached, &mut jobs)?;
    let (names, mut batches): (Vec<String>, Vec<Batch<'_>>) = jobs.into_iter().unzip();
    let results = iterations.run(&mut batches);
    let operation = |(name, result): (String, Result<Vec<f64>, String>)| match result {
        Ok(runs) => Operation { name, ns: Summary::of(&runs), runs, failure: None },
        Err(why) => Operation { name, ns: None, runs: Vec::new(), failure: Some(why) },
    };
    let operations = names.into_iter().zip(results).map(operation).collect();
    let latencies = latency::measure(&plain, &cached, TIMES)?;
    Ok(OperationReport { machine, operations, latencies })
}

fn load(trial: &Trial, name: &str, source: &str, target: Target) -> anyhow::Result<Session> {
    let spec = PluginSpec::new(name, PLUGIN_CONTEXT, source);
    trial.plugins.load(&PluginSpec { target, limits: limits(), ..spec })?;
    let mut session = trial.plugins.session(name)?;
    session.fill(b"")?;
    Ok(session)
}

/// Upcalls and host calls.
fn calls<'a>(trial: &'a Trial, jobs: &mut Jobs<'a>) -> anyhow::Result<()> {
    for target in Target::ALL {
        let mut session = load(trial, &format!("null {target}"), NULL, target)?;
        jobs.push((format!("upcall, {target}"), batch(move || session.run().map(drop))));
    }
    let call = || trial.plugins.call("null isolated", b"").map(drop);
    jobs.push(("call by name, isolated".to_owned(), batch(call)));
    let instantiate = || trial.plugins.instantiate("null isolated");
    jobs.push(("instantiate, isolated".to_owned(), batch(instantiate)));
    for target in Target::ALL {
        let mut asks = load(trial, &format!("asks {target}"), ASKS, target)?;
        let mut iterations = load(trial, &format!("iterations {target}"), ITERATIONS, target)?;
        let run = move |times: u32| {
            let mut took = [Duration::ZERO; 2];
            for (session, took) in [&mut asks, &mut iterations].into_iter().zip(&mut took) {
                let start = Stopwatch::start();
                for _ in 0..times {
                    session.run().map_err(text)?;
                }
                *took = start.elapsed();
            }
            Ok(took[0].saturating_sub(took[1]) / ASKED)
        };
        jobs.push((format!("host call at the hint, {target}"), Box::new(run)));
    }
    Ok(())
}

/// Where a permission is found.
fn checks<'a>(trial: &'a Trial, jobs: &mut Jobs<'a>) -> anyhow::Result<()> {
    let sid = trial.server.context_to_sid(PLUGIN_CONTEXT)?;
    let question = Question { ssid: sid, tsid: sid, tclass: Class::Plugin };
    let server = Arc::clone(&trial.server) as Arc<dyn SecurityServer>;
    let avc = Arc::new(Avc::new(server));
    let (hint, same) = (Hint::default(), Arc::clone(&avc));
    let ask = move |hint: &Hint, avc: &Avc| match avc.has_perm(question, perm::plugin::LOG, hint) {
        Ok(verdict) if verdict.granted() => Ok(()),
        _ => Err("denied"),
    };
    jobs.push(("check, found at the hint".to_owned(), batch(move || ask(&hint, &avc))));
    let cache = move || ask(std::hint::black_box(&Hint::default()), &same);
    jobs.push(("check, found in the cache".to_owned(), batch(cache)));
    let server = move || {
        trial.server.compute_av(question).map(|av| {
            std::hint::black_box(av);
        })
    };
    jobs.push(("check, by the security server".to_owned(), batch(server)));
    Ok(())
}

/// Code generation, linking, replacing, unlinking.
fn loads<'a>(plain: &'a Trial, cached: &'a Trial, jobs: &mut Jobs<'a>) -> anyhow::Result<()> {
    let input = ecode::Input { host: HOST_DECLARATIONS, ..ecode::Input::new("gray.e", GRAY) };
    let front = move || ecode::compile(&input).map(drop);
    jobs.push(("text to intermediate form".to_owned(), batch(front)));
    let module = ecode::compile(&input)?.module;
    let instructions = move || KernelCode::compile(&module, KernelOptions::default()).map(drop);
    jobs.push(("intermediate form to BPF, not loaded".to_owned(), batch(instructions)));
    for target in Target::ALL {
        let spec = spec(target);
        let name = format!("compile and link, {target}");
        jobs.push((name, Box::new(move |times| load_and_unload(plain, &spec, times).map(|t| t.0))));
    }
    let isolated = spec(Target::Isolated);
    let link = move |times| load_and_unload(cached, &isolated, times).map(|took| took.0);
    jobs.push(("link, code from the cache, isolated".to_owned(), Box::new(link)));
    let unlink = move |times| load_and_unload(cached, &isolated, times).map(|took| took.1);
    jobs.push(("unlink, isolated".to_owned(), Box::new(unlink)));
    for (trial, how) in [(plain, "compiled"), (cached, "code from the cache")] {
        let replaced = PluginSpec { name: "replaced", ..isolated };
        trial.plugins.load(&replaced)?;
        let replace = move || trial.plugins.replace(&replaced).map(drop);
        jobs.push((format!("replace, {how}, isolated"), batch(replace)));
    }
    Ok(())
}

/// The time of loading and of unloading, `times` times.
fn load_and_unload(
    trial: &Trial,
    spec: &PluginSpec<'_>,
    times: u32,
) -> Result<(Duration, Duration), String> {
    let (mut load, mut unload) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..times {
        let start = Stopwatch::start();
        trial.plugins.load(spec).map_err(text)?;
        load += start.elapsed();
        let start = Stopwatch::start();
        trial.plugins.unload(spec.name);
        unload += start.elapsed();
    }
    Ok((load, unload))
}
