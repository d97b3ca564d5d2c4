//! `dewar bench resolution`: where decisions were found, by object manager, in a workload that
//! exercises all of them.

use crate::show;
use anyhow::{Context as _, anyhow};
use bench::{
    report::Section,
    sample,
    sheet::{Cell, Sheet},
};
use cli::{args::bench::ResolutionArgs, program};
use serde::Deserialize;
use std::{
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
};

/// What Flask on Fluke had: all, by hint, by cache, by the security server.
const FOUNDING: [(&str, [&str; 4]); 3] = [
    ("Kernel", ["603735", "175585", "428121", "29"]),
    ("FFS", ["76708", "N/A", "76700", "8"]),
    ("PM", ["892", "N/A", "890", "2"]),
];

/// What a run says of itself.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Record {
    pub(crate) decisions: Vec<Decisions>,
    #[serde(default)]
    pub(crate) spent: Vec<Spent>,
}

/// What a system call took the monitor.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Spent {
    pub(crate) manager: String,
    pub(crate) call: String,
    pub(crate) times: u64,
    pub(crate) seconds: f64,
}

/// Decisions of one object manager.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Decisions {
    pub(crate) manager: String,
    pub(crate) queries: u64,
    pub(crate) hint: u64,
    pub(crate) cache: u64,
    pub(crate) server: u64,
}

/// Builds again and again in one domain, and connects, signals and builds in another.
const WORKLOAD: &str = r#"
set -e
round=0
while [ $round -lt "$ROUNDS" ]; do
    round=$((round + 1))
    make -s clean
    make -s
    ./helper sh -c ./sample
    ./helper sh -c 'kill -0 $$; sleep 0.01 & kill $!; wait' || true
    ./helper python3 - "$PORT" <<'END'
import socket, sys
for _ in range(200):
    socket.create_connection(("127.0.0.1", int(sys.argv[1]))).close()
END
done
"#;

/// Measures, and prints what was asked for.
pub(crate) fn run(args: &ResolutionArgs) -> anyhow::Result<()> {
    let workspace = tempfile::tempdir_in("/var/tmp").context("cannot make a workspace")?;
    let place = workspace.path();
    sample::write(place)?;
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen on this machine")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    std::fs::copy("/usr/bin/env", place.join("helper")).context("cannot make a second program")?;
    let profile = place.join("profile.toml");
    std::fs::write(&profile, text(port))?;
    let mut command = dewar(&profile.display().to_string(), place, &[])?;
    let words = format!("ROUNDS={}\nPORT={port}\n{WORKLOAD}", args.rounds);
    command.args(["sh", "-c", &words]).current_dir(place);
    let found = decisions(command)?;
    let mut sheet = sheet(
        &format!(
            "Resolution of requested decisions: {} rounds of make, two domains, connections, signals",
            args.rounds
        ),
        &found,
    );
    for (name, figures) in FOUNDING {
        let mut cells = vec![format!("Flask on Fluke: {name}").into()];
        cells.extend(figures.map(Cell::from));
        sheet.push(cells);
    }
    let never = found.iter().map(|it| it.server).sum::<u64>() as f64;
    let all = found.iter().map(|it| it.queries).sum::<u64>().max(1) as f64;
    let headline = format!(
        "{:.2} % of {all} decisions never reached the security server.",
        (1.0 - never / all) * 100.0
    );
    let section =
        Section::new("resolution", "Resolution of requested decisions", headline, vec![sheet]);
    show::keep(&section, &args.show)?;
    show::sheets(&section.sheets, &section, &args.show)
}

fn text(port: u16) -> String {
    format!(
        "extends = 'workspace'\nnetwork.connect = ['127.0.0.1:{port}']\n\
         [domains.helper]\nexec = ['${{workspace}}/helper']\nnetwork.connect = ['127.0.0.1:{port}']\n"
    )
}

/// `dewar run --json …`, up to the command.
pub(crate) fn dewar(profile: &str, workspace: &Path, flags: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(program::beside("dewar")?);
    command.args([
        "run",
        "--no-daemon",
        "--json",
        "--mode",
        "all",
        "--profile",
        profile,
        "--workspace",
    ]);
    command.arg(workspace).args(flags).arg("--");
    Ok(command)
}

/// Where decisions were found by a `dewar run --json …`.
pub(crate) fn decisions(command: Command) -> anyhow::Result<Vec<Decisions>> {
    Ok(record(command)?.decisions)
}

/// Runs `dewar run --json …` and reads what it says at its end.
pub(crate) fn record(mut command: Command) -> anyhow::Result<Record> {
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .context("cannot run `dewar`")?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "the run ended with {}: {}",
        output.status,
        said.trim()
    );
    let last = said.lines().rev().find(|line| line.starts_with('{'));
    Ok(serde_json::from_str(last.ok_or_else(|| anyhow!("no record: {said}"))?)?)
}

pub(crate) fn sheet(title: &str, found: &[Decisions]) -> Sheet {
    let mut sheet = Sheet::new(
        title,
        &[
            ("object manager", 0, false),
            ("queries", 0, true),
            ("by hint", 0, true),
            ("by cache", 0, true),
            ("by security server", 0, true),
        ],
    );
    let number = |value: u64| Cell::number(value.to_string(), value as f64);
    for row in found {
        let mut cells = vec![row.manager.as_str().into()];
        cells.extend([row.queries, row.hint, row.cache, row.server].map(number));
        sheet.push(cells);
    }
    sheet
}
