//! `dewar policy`: profiles and policies, shown, checked, asked, compared.

mod check;
mod decide;
mod diff;
mod env;
mod export;
mod grants;
mod groups;
mod history;
mod load;
mod profiles;
mod query;
mod replace;
mod set;
mod show;

use crate::output;
use clap::{Args, Subcommand};
#[cfg(test)]
pub(crate) use grants::Grants;
pub(crate) use groups::netlink;

const STATUS: &str = "\
Exit status: 0; 1 if a run is not what it was to become; 2 for wrong use, or a mistake in a
profile or policy.";

const LIST_STATUS: &str = "Exit status: 0; 2 for wrong use.";

/// Show, check, ask and compare profiles and policies; change that of a run.
///
/// A policy is a profile (the name of a shipped one, or a TOML file), CIL files (read together), or
/// a binary kernel policy such as /etc/selinux/default/policy/policy.33. Nothing here needs root or
/// an SELinux kernel.
#[derive(Debug, Args)]
#[command(after_help = STATUS)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the shipped profiles.
    #[command(after_help = LIST_STATUS)]
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    Show(show::ShowArgs),
    Check(check::CheckArgs),
    Query(query::QueryArgs),
    Av(decide::AvArgs),
    /// Ask which label a new object gets.
    #[command(
        override_usage = "dewar policy transition [OPTIONS] -f POLICY [SOURCE TARGET CLASS [NAME]]"
    )]
    Transition(decide::LabelArgs),
    /// Ask which member of a polyinstantiated object a subject sees.
    #[command(
        override_usage = "dewar policy member [OPTIONS] -f POLICY [SOURCE TARGET CLASS [NAME]]"
    )]
    Member(decide::LabelArgs),
    /// Ask which label an object is relabelled to.
    #[command(
        override_usage = "dewar policy change [OPTIONS] -f POLICY [SOURCE TARGET CLASS [NAME]]"
    )]
    Change(decide::LabelArgs),
    Env(env::EnvArgs),
    Diff(diff::DiffArgs),
    Export(export::ExportArgs),
    Set(set::SetArgs),
    Load(replace::LoadArgs),
    History(history::HistoryArgs),
}

/// Carries out `dewar policy`.
pub(crate) fn run(args: &PolicyArgs) -> anyhow::Result<()> {
    use security_server::policy::TypeRuleKind;
    match &args.action {
        Action::List { json } => Ok(output::print(profiles::list(*json)?.as_bytes())?),
        Action::Show(args) => show::run(args),
        Action::Check(args) => check::run(args),
        Action::Query(args) => query::run(args),
        Action::Av(args) => decide::av(args),
        Action::Transition(args) => decide::label(args, TypeRuleKind::Transition),
        Action::Member(args) => decide::label(args, TypeRuleKind::Member),
        Action::Change(args) => decide::label(args, TypeRuleKind::Change),
        Action::Env(args) => env::run(args),
        Action::Diff(args) => diff::run(args),
        Action::Export(args) => export::run(args),
        Action::Set(args) => set::run(args),
        Action::Load(args) => replace::run(args),
        Action::History(args) => history::run(args),
    }
}
