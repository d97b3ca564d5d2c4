//! `dewar revoke`: takes something from a run while it runs.

use crate::{
    amend::{Amend, ObjectArgs},
    control::RunArg,
};
use clap::Args;
use monitor::RevokeMode;
use profile::AmendmentKind;
use rustix::process::Signal;

const EXAMPLES: &str = "\
Examples:
  dewar revoke --file '${workspace}/secrets/**'     from the only run there is
  dewar revoke last --net github.com                no connection to that host, old or new
  dewar revoke ci --domain git --net '*'            only from processes in domain git
  dewar revoke ci --file src --write                what is read may still be read
  dewar revoke ci --exec '/usr/bin/*' --kill        kill who runs any of these
  dewar revoke ci --all                             everything: every process is killed

What the program sees: EACCES, from now on and on descriptors that it holds; ECONNRESET on
connections; SIGBUS where it has mapped a file. `dewar grant` with the same arguments takes it
back. What the kernel was told at the start of the run cannot be taken from a process that
runs: that is refused by name, or done by --kill.

Exit status: 0 if nothing of it can be used any more; 1 if that is not so, or nothing was
changed; 2 for wrong use.";

/// Take something from a run while it runs.
///
/// Overrides whatever the profile grants, also by more specific patterns, and reaches what is held
/// already: open descriptors, mappings, connections, calls under way. Prints a receipt: who held
/// what, what was done about it, and how long that took.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "dewar revoke [OPTIONS] [RUN] <--file …|--net …|--unix …|--exec …|--all>")]
pub(crate) struct RevokeArgs {
    #[command(flatten)]
    run: RunArg,

    #[command(flatten)]
    object: ObjectArgs,

    /// Send this signal, too, to processes that held it
    #[arg(long, value_name = "SIG", value_parser = signal)]
    signal: Option<i32>,

    /// Kill processes that held it, instead of repairing them
    #[arg(long, conflicts_with = "signal")]
    kill: bool,

    /// Print the receipt as JSON
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar revoke`.
pub(crate) fn run(args: &RevokeArgs) -> anyhow::Result<()> {
    let mode = match (args.kill, args.signal) {
        (true, _) => RevokeMode::Kill,
        (false, Some(signal)) => RevokeMode::Signal(signal),
        (false, None) => RevokeMode::Repair,
    };
    let kind = AmendmentKind::Revoke;
    Amend { run: &args.run, kind, object: &args.object, mode, json: args.json }.carry_out()
}

/// Reads the name or number of a signal.
fn signal(text: &str) -> Result<i32, String> {
    const NAMES: [(&str, Signal); 14] = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("ABRT", Signal::ABORT),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("PIPE", Signal::PIPE),
        ("ALRM", Signal::ALARM),
        ("TERM", Signal::TERM),
        ("CONT", Signal::CONT),
        ("STOP", Signal::STOP),
        ("TSTP", Signal::TSTP),
        ("WINCH", Signal::WINCH),
    ];
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let known = NAMES.iter().find(|(known, _)| *known == name).map(|(_, signal)| signal.as_raw());
    let number = || text.parse().ok().filter(|number| (1..=64).contains(number));
    let names = || NAMES.map(|(name, _)| name).join(", ");
    known.or_else(number).ok_or_else(|| format!("write a number up to 64, or one of {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, want) in [("TERM", 15), ("sigusr1", 10), ("9", 9), ("64", 64)] {
            assert_eq!(signal(text), Ok(want));
        }
        for text in ["", "0", "65", "-1", "NOSUCH"] {
            assert!(signal(text).is_err(), "{text}");
        }
    }
}
