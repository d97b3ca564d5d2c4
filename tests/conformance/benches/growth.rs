//! The cost of a decision when types and rules grow tenfold.
//!
//! `cargo bench -p conformance --bench growth` prints it; with `-- docs/growth`, writes
//! `docs/growth.tsv` and `docs/growth.svg` as well. Sizes take turns, so that noise meets all of
//! them alike; the median of all rounds counts.

use anyhow::Context as _;
use plotters::prelude::*;
use security_server::policy::Context;
use security_server::{ClassId, Engine, cil};
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Types of the smallest policy, and how many times as many the others have.
const TYPES: usize = 400;
const SCALES: [usize; 5] = [1, 2, 4, 7, 10];
const ROUNDS: usize = 9;
const QUESTIONS: usize = 20_000;

/// A policy of one size, and questions about it.
struct Size {
    types: usize,
    rules: usize,
    engine: Engine,
    questions: Vec<(Context, Context, ClassId)>,
    medians: Vec<Duration>,
    p99s: Vec<Duration>,
}

fn main() -> anyhow::Result<()> {
    let output = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let mut sizes =
        SCALES.iter().map(|scale| Size::new(TYPES * scale)).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..ROUNDS {
        sizes.iter_mut().for_each(Size::measure);
    }
    let mut table = String::from("types\trules\tmedian_ns\tp99_ns\trounds\n");
    let mut points = Vec::new();
    for size in &mut sizes {
        let (median, p99) = (middle(&mut size.medians), middle(&mut size.p99s));
        writeln!(table, "{}\t{}\t{median}\t{p99}\t{ROUNDS}", size.types, size.rules)?;
        points.push((size.rules as f64, median as f64, p99 as f64));
    }
    print!("{table}");
    if let Some(output) = output {
        // Benchmarks run in their package's directory.
        let output = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(output);
        std::fs::write(output.with_extension("tsv"), &table)?;
        plot(&output.with_extension("svg"), &points)?;
    }
    Ok(())
}

impl Size {
    fn new(types: usize) -> anyhow::Result<Self> {
        let text = conformance::synthetic_policy(types);
        let policy =
            cil::compile(&[("synthetic.cil", text)]).map_err(|e| anyhow::anyhow!("{e}"))?;
        let contexts = (0..types).map(|n| policy.parse_context(&format!("u:object_r:t{n}")));
        let contexts = contexts.collect::<Result<Vec<_>, _>>()?;
        let class = policy.class("file").context("the policy has a class")?;
        let pair = |n: usize| (n * 7919 % types, n * 104_729 % types);
        let questions = (0..QUESTIONS).map(pair);
        let questions =
            questions.map(|(s, t)| (contexts[s].clone(), contexts[t].clone(), class)).collect();
        let rules = policy.av_rules.len();
        let engine = Engine::new(policy);
        Ok(Self { types, rules, engine, questions, medians: Vec::new(), p99s: Vec::new() })
    }

    /// Times every question on its own, less the time of reading the clock.
    fn measure(&mut self) {
        let mut clock: Vec<Duration> = (0..10_000).map(|_| Instant::now().elapsed()).collect();
        clock.sort_unstable();
        let clock = clock[clock.len() / 2];
        let time = |(source, target, class): &(Context, Context, ClassId)| {
            let start = Instant::now();
            black_box(self.engine.compute_av(source, target, *class));
            start.elapsed().saturating_sub(clock)
        };
        let mut times: Vec<Duration> = self.questions.iter().map(time).collect();
        times.sort_unstable();
        self.medians.push(times[times.len() / 2]);
        self.p99s.push(times[times.len() * 99 / 100]);
    }
}

/// The median, in nanoseconds.
fn middle(times: &mut [Duration]) -> u128 {
    times.sort_unstable();
    times[times.len() / 2].as_nanos()
}

fn plot(path: &PathBuf, points: &[(f64, f64, f64)]) -> anyhow::Result<()> {
    let highest = points.iter().map(|point| point.2).fold(0.0, f64::max) * 1.15;
    let last = points.last().map_or(1.0, |point| point.0) * 1.05;
    let area = SVGBackend::new(path, (720, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption("One decision of the engine, by size of the policy", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..last, 0.0..highest)?;
    chart.configure_mesh().x_desc("rules").y_desc("ns").disable_x_mesh().draw()?;
    type Value = fn(&(f64, f64, f64)) -> f64;
    let lines: [(&str, RGBColor, Value); 2] =
        [("99th percentile", RED, |point| point.2), ("median", BLUE, |point| point.1)];
    for (name, colour, value) in lines {
        let line: Vec<(f64, f64)> = points.iter().map(|point| (point.0, value(point))).collect();
        let sample = move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour);
        chart.draw_series(LineSeries::new(line.clone(), colour))?.label(name).legend(sample);
        chart.draw_series(line.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
    }
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).draw()?;
    area.present()?;
    Ok(())
}
