//! The arguments of `dewar run`.

use super::{AskRequest, RunRequest, UseDaemon};
use crate::{learn::LearnArgs, learning::Learning};
use clap::{Args, ValueEnum};
use confine::Mode;
use monitor::Enforce;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

const AFTER_HELP: &str = "\
Examples:
  dewar run -- make -j2                       build under the default profile
  dewar run -p claude -- claude               its service only, and its tools reach nothing
  dewar run -p npm+loopback -- npm test       two shipped profiles together
  dewar run -p ./build.toml --stats -- make   a profile of your own; how decisions were found
  dewar run --audit - -- ls                   every decision, as JSON lines on standard error
  dewar run --dry-run -p agent -- claude      what would be laid down; nothing is run

Inside, DEWAR_RUN begins with the run's id. For a mark in the prompt, in a .bashrc that the
profile lets bash read:
  PS1='${DEWAR_RUN:+[dewar ${DEWAR_RUN%%:*}] }'$PS1

Inside of a run, the command may do what both profiles grant, in a domain of its own:
  dewar run -p agent -- sh -c 'dewar run -p offline -- make test'

Standard input, output, signals, job control and the exit status are the command's own. What it
leaves running ends with it. If something was denied, one line on standard error says so at the
end; `dewar explain` tells the rest.

Exit status: the command's; 2 for wrong use, 124 if the time limit was over, 125 if Dewar failed
to set up, 126 and 127 if the command could not be executed or found.";

/// What `--learn` would not do: each is refused beside it, above all `--dry-run`.
const NOT_LEARNED: [&str; 19] = [
    "no_home",
    "name",
    "mode",
    "stats",
    "audit",
    "daemon",
    "record",
    "cil",
    "json",
    "allow_degraded",
    "without",
    "enforce",
    "ask",
    "ask_timeout",
    "ask_rate",
    "show_env",
    "quiet",
    "dry_run",
    "learning",
];

/// Run a command under a policy.
///
/// Everything that the command and its descendants do is decided by the policy that a profile
/// stands for. What the profile does not grant is denied. Dewar refuses to start if this machine
/// cannot enforce what the profile asks for.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RunArgs {
    /// Profile: the name of a shipped one (see `dewar policy list`), several joined by `+`, or a
    /// file [default: the project's dewar.toml, if there is one and it is trusted, else
    /// `workspace`]
    #[arg(short, long, value_name = "PROFILE")]
    profile: Option<String>,

    /// Learn instead, as `dewar learn` does: nearly everything is allowed, and dewar.toml gets what
    /// was needed. Goes with -p and -w alone
    #[arg(long, conflicts_with_all = NOT_LEARNED)]
    learn: bool,

    /// The directory that `${workspace}` stands for [default: the working directory]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,

    /// Refuse a workspace that the home lies in: for `dewar init exec`, whose caller names it
    #[arg(long, hide = true)]
    no_home: bool,

    /// A name for the run, by which `dewar ps`, `dewar revoke` and others know it
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: Option<String>,

    /// How much the monitor decides itself [default: as the profile says]
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeName>,

    /// Say at the end how many decisions were made, and where they were found
    #[arg(long)]
    stats: bool,

    /// Write every decision as a line of JSON to FILE, or to standard error for `-`
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,

    /// Let a daemon decide, and fail if none answers [default: use one if it is there]
    #[arg(long, conflicts_with = "no_daemon")]
    daemon: bool,

    /// Decide without a daemon, and stay out of its journal
    #[arg(long)]
    no_daemon: bool,

    /// What goes into the journal of the daemon
    #[arg(long, value_name = "WHAT", default_value = "denials", conflicts_with = "no_daemon")]
    record: RecordName,

    /// CIL text that is part of the policy: rules, or booleans to change by `dewar policy set` (may
    /// be repeated)
    #[arg(long, value_name = "FILE")]
    cil: Vec<PathBuf>,

    /// Print the final summary as JSON. Like every message of `dewar run`, it goes to standard
    /// error
    #[arg(long)]
    json: bool,

    /// Run even if this machine cannot enforce all of it, and say aloud what is missing
    #[arg(long)]
    allow_degraded: bool,

    /// Pretend that this machine lacks a layer of protection; `dewar doctor` lists them (may be
    /// repeated)
    #[arg(long, value_name = "LAYER")]
    without: Vec<String>,

    /// Which object managers decide: `on`, `off`, or a list of `files`, `processes`, `sockets`; for
    /// measurements
    #[arg(long, value_name = "WHICH", default_value = "on", value_parser = enforce)]
    enforce: Enforce,

    /// Ask before something is denied that the profile could grant; see `dewar ask --help`
    #[arg(long)]
    ask: bool,

    /// How long a question is open; then it is denied
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = humantime::parse_duration, requires = "ask")]
    ask_timeout: Duration,

    /// How many questions there are in a minute at most; more are denied unasked
    #[arg(long, value_name = "N", default_value = "10", requires = "ask")]
    ask_rate: usize,

    /// Say which environment variables the command sees, and which not, and why
    #[arg(long)]
    show_env: bool,

    /// Say what is set up, and how
    #[arg(short, long)]
    verbose: bool,

    /// Say nothing at the end of what was denied; mistakes, and what is lost on this machine, are
    /// still told
    #[arg(short, long, conflicts_with_all = ["verbose", "stats", "json", "show_env"])]
    quiet: bool,

    /// Say what would be laid down, and run nothing
    #[arg(short = 'n', long, conflicts_with_all = ["quiet", "stats", "json", "audit", "daemon"])]
    dry_run: bool,

    /// What `dewar learn` starts
    #[arg(long, hide = true)]
    learning: bool,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How much the monitor decides itself.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeName {
    /// Every open is decided, counted and explained
    All,
    /// Reads that all domains may do are left to the kernel
    Fast,
}

/// What the journal gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RecordName {
    /// Denials
    Denials,
    /// Every decision
    All,
}

/// Reads `--name`.
fn name(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if text == "last" || text.is_empty() || text.len() > 40 || !text.bytes().all(plain) {
        return Err("write up to 40 letters, digits, `-`, `_` or `.`; `last` is taken".into());
    }
    if runs::is_id(text) {
        return Err("eight letters and digits look like the id of a run: write one more".into());
    }
    Ok(text.to_owned())
}

/// Reads `--enforce`.
fn enforce(text: &str) -> Result<Enforce, String> {
    match text {
        "on" => return Ok(Enforce::ALL),
        "off" => return Ok(Enforce::OFF),
        _ => {}
    }
    let mut enforce = Enforce::OFF;
    for name in text.split(',') {
        match name {
            "files" => enforce.files = true,
            "processes" => enforce.processes = true,
            "sockets" => enforce.sockets = true,
            _ => {
                let expected = "write `on`, `off`, or some of `files,processes,sockets`";
                return Err(format!("`{name}` is no object manager: {expected}"));
            }
        }
    }
    Ok(enforce)
}

impl RunArgs {
    /// Whether a profile is to be learned.
    pub(crate) fn learns(&self) -> bool {
        self.learn
    }
}

impl From<RunArgs> for LearnArgs {
    fn from(args: RunArgs) -> Self {
        Self::for_run(args.profile, args.workspace, args.command)
    }
}

impl From<RunArgs> for RunRequest {
    fn from(args: RunArgs) -> Self {
        let above = args.profile.as_ref().filter(|_| args.learning);
        let learning = above.map(|above| Learning::of(Path::new(above)).unwrap_or_default());
        Self {
            profile: args.profile,
            name: args.name,
            mode: args.mode.map(|mode| match mode {
                ModeName::All => Mode::All,
                ModeName::Fast => Mode::Fast,
            }),
            workspace: args.workspace,
            no_home: args.no_home,
            stats: args.stats,
            audit: args.audit,
            daemon: match (args.daemon, args.no_daemon) {
                (true, _) => UseDaemon::Insist,
                (_, true) => UseDaemon::No,
                _ => UseDaemon::IfThere,
            },
            record_all: args.record == RecordName::All,
            cil: args.cil,
            allow_degraded: args.allow_degraded,
            without: args.without,
            enforce: args.enforce,
            json: args.json,
            show_env: args.show_env,
            verbose: args.verbose,
            ask: args.ask.then_some(AskRequest { timeout: args.ask_timeout, rate: args.ask_rate }),
            quiet: args.quiet,
            dry_run: args.dry_run,
            learning,
            command: args.command,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Parsed {
        #[command(flatten)]
        run: RunArgs,
    }

    #[test]
    fn learning_goes_with_no_flag_that_it_would_not_follow() {
        use clap::{CommandFactory as _, Parser as _};
        let followed = ["learn", "profile", "workspace", "no_daemon", "command", "help"];
        // How much is said is no promise.
        let followed = [&followed[..], &["verbose"]].concat();
        let command = Parsed::command();
        let names = command.get_arguments().map(|arg| arg.get_id().as_str());
        for name in names.filter(|name| !followed.contains(name)) {
            let value: &[&str] = match name {
                "name" | "audit" | "cil" | "without" => &["x"],
                "mode" | "record" => &["all"],
                "enforce" => &["on"],
                "ask_timeout" => &["1s", "--ask"],
                "ask_rate" => &["1", "--ask"],
                _ => &[],
            };
            let flag = format!("--{}", name.replace('_', "-"));
            let words = [&["run", "--learn", &flag], value, &["--", "true"]].concat();
            let error = Parsed::try_parse_from(&words).map(|_| ()).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{words:?}");
            let plain: Vec<&str> =
                words.iter().filter(|word| **word != "--learn").copied().collect();
            assert!(Parsed::try_parse_from(&plain).is_ok(), "{plain:?}");
        }
    }

    #[test]
    fn no_run_is_called_as_runs_are_numbered() {
        for _ in 0..100 {
            assert!(name(&runs::new_id().unwrap()).is_err());
        }
        assert!(["build", "database2", "Database", "frontend"].iter().all(|it| name(it).is_ok()));
    }

    #[test]
    fn object_managers_are_chosen_by_name() {
        assert_eq!(enforce("on"), Ok(Enforce::ALL));
        assert_eq!(enforce("off"), Ok(Enforce::OFF));
        assert_eq!(enforce("sockets"), Ok(Enforce { sockets: true, ..Enforce::OFF }));
        assert_eq!(enforce("files,processes,sockets"), Ok(Enforce::ALL));
        assert!(enforce("").is_err() && enforce("file").is_err());
    }
}
