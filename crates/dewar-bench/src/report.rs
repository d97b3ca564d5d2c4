//! `dewar bench report`: everything on one page.

use anyhow::Context as _;
use bench::{report, sheet::Width, table::Style};
use cli::{
    args::bench::ReportArgs,
    failure::Usage,
    output::{self, tell},
    output_file, program,
};
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// What is measured: the file that it leaves, the words of the command, and its share of the time
/// in percent; 0 for what takes its own.
const STEPS: [(&str, &[&str], f64); 17] = [
    ("self-memory.jsonl", &["self", "--no-disk"], 4.0),
    ("build.jsonl", &["build"], 16.0),
    ("build-memory.jsonl", &["build", "--no-disk", "--no-peers"], 8.0),
    ("project.jsonl", &["project", "--no-peers"], 6.0),
    ("walk.jsonl", &["walk"], 6.0),
    ("start.jsonl", &["start"], 6.0),
    ("syscalls.jsonl", &["syscalls", "--no-peers", "--within", "3"], 9.0),
    ("unix.jsonl", &["unix", "--no-peers", "--within", "3"], 12.0),
    ("harden.jsonl", &["harden", "--within", "2"], 13.0),
    ("kernel.json", &["kernel", "--rounds", "5"], 0.0),
    ("plugin.json", &["plugin", "--rounds", "5", "--size", "9747", "--size", "101568"], 0.0),
    ("web.jsonl", &["web", "--within", "3"], 9.0),
    ("resolution.json", &["resolution"], 0.0),
    ("ipc.json", &["ipc"], 0.0),
    ("decision.json", &["decision"], 0.0),
    ("library.json", &["library"], 0.0),
    ("revoke.json", &["revoke", "--rounds", "3"], 0.0),
];

/// The commands that measure what is fetched from Debian.
const FETCHING: [&str; 2] = ["project", "kernel"];

/// Measures what is missing, and shows all of it.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let directory = args.directory.clone().map_or_else(default_directory, Ok)?;
    if !args.as_is {
        output_file::make_directory(&directory, &[], 0o777)
            .with_context(|| format!("cannot make `{}`", directory.display()))?;
        measure(&directory, args)?;
    }
    let sections = report::collect(&directory).map_err(|error| Usage(error.to_string()))?;
    if let Some(file) = &args.output {
        output_file::replace(file, report::html(&sections).as_bytes())
            .with_context(|| format!("cannot write `{}`", file.display()))?;
        tell!("dewar: the report is in {}", file.display());
    }
    if args.markdown || args.output.is_none() {
        let style = Style::of(args.markdown);
        let width = Width::of(args.wide, cli::look::columns());
        let text = report::draw(&sections, style, width);
        if args.markdown { output::print(text.as_bytes())? } else { cli::look::show(&text)? }
    }
    Ok(())
}

fn default_directory() -> anyhow::Result<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|it| it.is_absolute());
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let state =
        state.or_else(home).context("neither XDG_STATE_HOME nor HOME is set: name a directory")?;
    Ok(state.join("dewar/bench"))
}

/// Each step by a process of its own. What has ended is not repeated, what was interrupted is
/// continued; a step that fails does not keep the others from being measured.
fn measure(directory: &Path, args: &ReportArgs) -> anyhow::Result<()> {
    let dewar = program::beside("dewar")?;
    for (file, words, share) in STEPS {
        if is_complete(&directory.join(file)) {
            continue;
        }
        tell!("dewar: measuring: {}", words.join(" "));
        let mut command = Command::new(&dewar);
        command.arg("bench").args(words).arg("--keep").arg(directory);
        if share > 0.0 {
            command.args(["--budget", &format!("{:.2}", args.budget * share / 100.0)]);
        }
        if args.fetch && FETCHING.contains(&words[0]) {
            command.arg("--fetch");
        }
        command.stdout(std::process::Stdio::null());
        let status = command.status().context("cannot start `dewar`")?;
        if !status.success() {
            tell!(
                "dewar: `dewar bench {}` ended with {status}; the report goes on without it",
                words.join(" ")
            );
        }
    }
    Ok(())
}

/// Whether a step needs no more: of samples, that they were not interrupted.
fn is_complete(file: &Path) -> bool {
    if file.extension().is_some_and(|it| it == "json") {
        return file.is_file();
    }
    bench::pairs::read(file).is_ok_and(|kept| kept.stop != bench::pairs::Stop::Interrupted)
}
