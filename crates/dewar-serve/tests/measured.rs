//! `dewar bench web`, with few slices: that every part of it works, not how fast anything is.

use std::{fs, path::Path, process::Command};

fn bench(arguments: &[&str], place: &Path) -> serde_json::Value {
    let dewar = test_support::install(place, &["dewar", "dewar-bench", "dewar-serve"]);
    let mut command = Command::new(dewar.with_file_name("dewar-bench"));
    let output = command.args(["bench", "web", "--json"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn servers_are_started_compared_byte_by_byte_measured_and_drawn() {
    let place = tempfile::tempdir().unwrap();
    let plots = place.path().join("plots");
    let drawn = plots.to_str().unwrap();
    let report = bench(
        &["--rounds", "2", "--only", "dewar isolated", "--only", "out of process", "--plot", drawn],
        place.path(),
    );
    let settings = report["experiment"]["settings"].as_array().unwrap();
    let own = settings.iter().position(|it| it["name"] == "dewar isolated").unwrap();
    let rows = report["rows"].as_array().unwrap().iter();
    let mine: Vec<_> = rows.filter(|row| row["setting"] == own).collect();
    assert_eq!(mine.len(), 16, "four images, plain and gray, one and eight at a time");
    for row in mine {
        assert!(row["failure"].is_null(), "{row}");
        assert!(row["cpu_s"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    for quantity in ["service-time", "throughput", "processor-time"] {
        for kind in ["plain", "gray"] {
            let svg = fs::read_to_string(plots.join(format!("web-{quantity}-{kind}.svg")));
            assert!(svg.unwrap().contains("dewar isolated"), "{quantity} {kind}");
        }
    }
}

#[test]
fn growth_by_connections_plugins_and_rules_is_measured_and_drawn() {
    let place = tempfile::tempdir().unwrap();
    let plots = place.path().join("plots");
    let drawn = plots.to_str().unwrap();
    let report = bench(&["--growth", "--rounds", "1", "--plot", drawn], place.path());
    let steps = report["steps"].as_array().unwrap();
    for (growth, most) in [("connections", 10_000), ("plugins", 1000), ("rules", 10_000)] {
        let last = steps.iter().rfind(|step| step["growth"] == growth).unwrap();
        assert_eq!(last["count"], most, "{growth}");
    }
    let svg = fs::read_to_string(plots.join("web-growth.svg")).unwrap();
    assert!(svg.contains("loaded plugins"), "{svg}");
}

#[test]
fn memory_is_watched_over_as_many_requests_as_are_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let report = bench(&["--soak", "20000"], place.path());
    assert_eq!(report["requests"], 20_000);
    let looks = report["looks"].as_array().unwrap();
    assert!(looks.len() > 1 && looks.iter().all(|look| look["resident_kib"].as_u64() > Some(0)));
}
