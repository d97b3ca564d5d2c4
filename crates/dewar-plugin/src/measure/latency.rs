//! How long it takes to make, load, replace and unload a plugin, each time by itself: what the
//! slowest of a hundred takes, too.

use super::trial::{self, Trial};
use bench::{
    sheet::{Cell, Sheet},
    table,
};
use plugin_host::{PluginSpec, Target};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Times of one operation, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Latency {
    name: &'static str,
    #[serde(rename = "median_ns")]
    median: f64,
    #[serde(rename = "p99_ns")]
    p99: f64,
    #[serde(rename = "max_ns")]
    max: f64,
    #[serde(rename = "runs_ns")]
    runs: Vec<f64>,
}

/// Times each operation `count` times.
pub(super) fn measure(plain: &Trial, cached: &Trial, count: usize) -> anyhow::Result<Vec<Latency>> {
    let spec = trial::spec(Target::Isolated);
    let spec = PluginSpec { name: "latency", ..spec };
    let (mut instantiate, mut replace, mut compile) = (Vec::new(), Vec::new(), Vec::new());
    let (mut link, mut unlink) = (Vec::new(), Vec::new());
    let timed = |times: &mut Vec<Duration>, work: &mut dyn FnMut() -> anyhow::Result<()>| {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed());
        anyhow::Ok(())
    };
    for trial in [plain, cached] {
        trial.plugins.load(&spec)?;
    }
    for _ in 0..count {
        timed(&mut compile, &mut || Ok(plain.plugins.replace(&spec).map(drop)?))?;
        timed(&mut replace, &mut || Ok(cached.plugins.replace(&spec).map(drop)?))?;
        timed(&mut instantiate, &mut || Ok(cached.plugins.instantiate(spec.name)?))?;
        timed(&mut unlink, &mut || {
            cached.plugins.unload(spec.name);
            Ok(())
        })?;
        timed(&mut link, &mut || Ok(cached.plugins.load(&spec).map(drop)?))?;
    }
    let all = [
        ("instantiate", instantiate),
        ("link, code from the cache", link),
        ("unlink", unlink),
        ("replace, code from the cache", replace),
        ("replace, compiled", compile),
    ];
    Ok(all.into_iter().map(|(name, times)| Latency::of(name, &times)).collect())
}

impl Latency {
    /// What `times`, of which there is one at least, come to.
    fn of(name: &'static str, times: &[Duration]) -> Self {
        let runs: Vec<f64> = times.iter().map(|time| time.as_nanos() as f64).collect();
        let mut sorted = runs.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at =
            |share: f64| sorted[((sorted.len() as f64 * share) as usize).min(sorted.len() - 1)];
        Self { name, median: at(0.5), p99: at(0.99), max: at(1.0), runs }
    }
}

pub(super) fn sheet(latencies: &[Latency]) -> Sheet {
    let mut sheet = Sheet::new(
        "",
        &[
            ("isolated, one at a time (elapsed)", 0, false),
            ("median", 0, true),
            ("p99", 0, true),
            ("max", 0, true),
            ("times", 0, true),
        ],
    );
    for latency in latencies {
        let mut row = vec![latency.name.into()];
        row.extend(
            [latency.median, latency.p99, latency.max]
                .map(|ns| Cell::number(table::nanoseconds(ns), ns)),
        );
        row.push(Cell::number(latency.runs.len().to_string(), latency.runs.len() as f64));
        sheet.push(row);
    }
    sheet
}
