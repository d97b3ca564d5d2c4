//! The command line: subcommands, and what holds for all of them.

use crate::{
    allow::AllowArgs, ask::AskArgs, completions::CompletionsArgs, doctor::DoctorArgs,
    explain::ExplainArgs, grant::GrantArgs, init::InitArgs, learn::LearnArgs, man::ManArgs,
    past_runs::RunsArgs, policy::PolicyArgs, ps::PsArgs, report::ReportArgs, revoke::RevokeArgs,
    run::RunArgs, schema, top::TopArgs, trust::TrustArgs,
};
use clap::{CommandFactory as _, Parser, Subcommand};
use cli::args::{AuditArgs, BenchArgs, DaemonArgs, McpArgs, PluginArgs, SelftestArgs, ServeArgs};
use cli::help;

const AFTER_HELP: &str = "\
Examples:
  dewar run -- make                    build here; no network, secrets hidden
  dewar run -p build.toml -- npm ci    the same under a profile of your own
  dewar revoke --net github.com        takes something back while it runs
  dewar explain                        why something was denied, and what would allow it
  dewar report -o report.html          what a run did, as a page with a timeline
  dewar runs                           the runs that ended; `dewar ps` lists those that go on
  dewar allow 1 --write dewar.toml     allows it, in a profile of your own
  dewar learn -- npm ci                writes a profile that fits a command
  dewar init                           writes one for this project, by what lies in it
  dewar policy show --cil workspace    the policy that a profile stands for
  dewar doctor                         what this machine can enforce
  dewar selftest                       attacks it, and says what got through

Exit status:
  that of the command, once it was started: 128 + N if signal N killed it
  2    wrong use: the command line, or a mistake in a profile; nothing was started
  124  the time limit of the command was over
  125  Dewar itself failed to set up; nothing was started
  126  the command was found, but not executed
  127  the command was not found";

/// Runs code you do not fully trust under one mandatory policy.
///
/// A command, and whatever it starts, sees and changes only what a profile grants. Every access is
/// decided by one policy, a denial is explained, and all of it works as an ordinary user, without
/// daemon or container, on Linux 5.19 or later with Landlock.
#[derive(Debug, Parser)]
#[command(name = "dewar", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub(crate) struct Dewar {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line, with all that its help texts say.
pub(crate) fn command() -> clap::Command {
    help::with_statuses(schema::offered(Dewar::command()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Ps(PsArgs),
    Runs(RunsArgs),
    Top(TopArgs),
    Revoke(RevokeArgs),
    Grant(GrantArgs),
    Explain(ExplainArgs),
    Allow(AllowArgs),
    Ask(AskArgs),
    Learn(LearnArgs),
    Init(InitArgs),
    Report(ReportArgs),
    Trust(TrustArgs),
    Audit(AuditArgs),
    Policy(PolicyArgs),
    Plugin(PluginArgs),
    Serve(ServeArgs),
    Daemon(DaemonArgs),
    Mcp(McpArgs),
    Doctor(DoctorArgs),
    Selftest(SelftestArgs),
    Bench(BenchArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Dewar::command().debug_assert();
    }

    #[test]
    fn every_argument_has_help() {
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                let has_help = argument.get_help().is_some();
                assert!(has_help, "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Dewar::command());
    }
}
