//! What benchmarks have printed as JSON (`recorded`), read again: its tables as people see them,
//! and the schemas of `docs/schemas` that it follows. No figure in it is of interest.

use bench::{
    calls::CallReport,
    guest::GuestReport,
    harden::HardenReport,
    kernels::KernelReport,
    library::LibraryReport,
    machine::Machine,
    pairs::{self, Draws, ExperimentResult, Trust},
    report::{self, Section},
    revocation,
    sheet::{Sheet, Width},
    statistics::Summary,
    table::Style,
    web::{self, GrowthReport, SoakReport},
};
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, de::DeserializeOwned};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// What `dewar bench web` prints, by what it is asked for.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum WebDocument {
    Servers(Box<ExperimentResult>),
    Growth(GrowthReport),
    Soak(SoakReport),
}

/// What `dewar bench plugin` prints: a part of another program.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct PluginDocument {
    /// Single operations.
    operations: Operations,
    /// Whole kernels, unless they were left out.
    kernels: Option<KernelReport>,
}

/// Single operations on plugins.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Operations {
    /// Where and when.
    machine: Machine,
    /// Processor time, many at a time.
    operations: Vec<Operation>,
    /// One by one.
    latencies: Vec<Latency>,
}

/// What one operation takes.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Operation {
    /// Its name.
    name: String,
    /// Nanoseconds of processor time.
    ns: Option<Summary>,
    /// The same of every round.
    rounds_ns: Vec<f64>,
    /// Why it was not measured.
    failure: Option<String>,
}

/// What single operations took, by the wall's clock.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Latency {
    /// Its name.
    name: String,
    /// Half of them took no longer.
    median_ns: f64,
    /// One in a hundred took longer.
    p99_ns: f64,
    /// The longest.
    max_ns: f64,
    /// Every one.
    runs_ns: Vec<f64>,
}

fn place(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// What `recorded` keeps of a benchmark.
fn recorded<T: DeserializeOwned>(name: &str) -> T {
    let path = place("recorded").join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Compares what a terminal shows of these tables with what `snapshots` keeps.
fn screen(name: &str, sheets: &[Sheet]) {
    test_support::screen(&place("snapshots"), name, |columns| {
        let width = Width::Columns(columns);
        let drawn = sheets.iter().map(|sheet| sheet.draw(Style::Terminal, width));
        drawn.collect::<Vec<String>>().join("\n").trim_end().to_owned()
    });
}

#[test]
fn comparisons_look_as_reviewed() {
    for name in ["build", "project", "syscalls", "walk", "start", "unix", "self"] {
        screen(name, &recorded::<ExperimentResult>(name).sheets());
    }
    let releases: Vec<ExperimentResult> = recorded("releases");
    let sheets: Vec<Sheet> = releases.iter().flat_map(ExperimentResult::sheets).collect();
    screen("releases", &sheets);
    let harden: HardenReport = recorded("harden");
    let prices = harden.prices.iter().flat_map(ExperimentResult::sheets);
    screen("harden", &harden.attacks.sheets.into_iter().chain(prices).collect::<Vec<Sheet>>());
}

#[test]
fn other_benchmarks_look_as_reviewed() {
    for name in ["ipc", "decision"] {
        screen(name, &recorded::<CallReport>(name).sheets());
    }
    screen("library", &[recorded::<LibraryReport>("library").sheet()]);
    screen("revoke", &[recorded::<revocation::Report>("revoke").sheet()]);
    screen("kernel", &recorded::<GuestReport>("kernel").sheets());
    screen("web", &recorded::<web::Report>("web").sheets());
    screen("web-growth", &[recorded::<GrowthReport>("web-growth").sheet()]);
    screen("web-soak", &[recorded::<SoakReport>("web-soak").sheet()]);
    let draws = Draws { repeats: 1000, plant: 0.02, half_width: 0.01 };
    screen("trust", &[pairs::trust_sheet(&recorded::<Vec<Trust>>("trust"), draws)]);
    // What programs make of their own, as it is kept for a report.
    for name in ["resolution", "run-section", "plugin-section"] {
        screen(name, &recorded::<Section>(name).sheets);
    }
}

#[test]
fn the_report_of_several_benchmarks_looks_as_reviewed() {
    let sections = ["resolution", "run-section", "plugin-section"].map(recorded::<Section>);
    test_support::screen(&place("snapshots"), "report", |columns| {
        report::draw(&sections, Style::Terminal, Width::Columns(columns))
    });
}

/// Compares a schema with the one that `--json-schema` prints; `DEWAR_BLESS=1` writes it anew.
fn schema(name: &str, made: Schema) {
    let mut made = serde_json::to_value(made).unwrap();
    let path = place("../../docs/schemas").join(format!("{name}.json"));
    let kept = fs::read_to_string(&path).ok().map(|text| {
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|error| {
            panic!("{}: {error}", path.display());
        })
    });
    let version = kept.as_ref().and_then(|kept| kept["$id"].as_str());
    made["$id"] = version.unwrap_or(&format!("dewar/{name}/1")).into();
    if std::env::var_os("DEWAR_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&made).unwrap() + "\n";
        fs::write(path, text).unwrap();
        return;
    }
    assert_eq!(Some(made), kept, "DEWAR_BLESS=1 writes {name}.json");
}

#[test]
fn the_schemas_are_those_of_what_is_printed() {
    schema("bench-comparison", schema_for!(ExperimentResult));
    schema("bench-comparisons", schema_for!(Vec<ExperimentResult>));
    schema("bench-harden", schema_for!(HardenReport));
    schema("bench-guests", schema_for!(GuestReport));
    schema("bench-trust", schema_for!(Vec<Trust>));
    schema("bench-section", schema_for!(Section));
    schema("bench-plugin", schema_for!(PluginDocument));
    schema("bench-calls", schema_for!(CallReport));
    schema("bench-library", schema_for!(LibraryReport));
    schema("bench-revocation", schema_for!(revocation::Report));
    schema("bench-web", schema_for!(WebDocument));
    // What was recorded is read as what the schema describes.
    recorded::<PluginDocument>("plugin");
    recorded::<ExperimentResult>("run");
}
