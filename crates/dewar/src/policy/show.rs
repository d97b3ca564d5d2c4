//! `dewar policy show`.

use super::{load, profiles};
use crate::output;
use clap::Args;
use security_server::policy::{AvKind, Policy, TypeKind};
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  dewar policy show workspace            who may do what where
  dewar policy show --cil ./build.toml   the policy in CIL; `secilc` reads it, too
  dewar policy show --cil --origins -p agent | grep github_com
  dewar policy show /etc/selinux/default/policy/policy.33

Exit status: 0, or 2 for a mistake in the profile or policy.";

/// Show what a profile grants, or what a policy is made of.
///
/// For a profile, prints what each domain may do with which files and which hosts it reaches; for a policy, how
/// many of everything it has; with --cil, the policy itself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// Policy: a profile, CIL files or a binary policy
    #[arg(value_name = "POLICY", default_value = "workspace")]
    policies: Vec<String>,

    /// Print the policy in CIL
    #[arg(long)]
    cil: bool,

    /// Append to each rule the place in the profile that it comes from
    #[arg(long, requires = "cil")]
    origins: bool,

    /// Print JSON
    #[arg(long, conflicts_with = "cil")]
    json: bool,

    /// Resolve host names of a profile, as a run does
    #[arg(long)]
    resolve: bool,

    /// The directory that `${workspace}` of a profile stands for [default: the working directory]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

/// Carries out `dewar policy show`.
pub(super) fn run(args: &ShowArgs) -> anyhow::Result<()> {
    let text = match &args.policies[..] {
        [name] if load::is_profile(name) && !args.json => {
            let compiled = profiles::compile(name, args.workspace.as_deref(), args.resolve)?;
            match (args.cil, args.origins) {
                (true, true) => profiles::with_origins(&compiled),
                (true, false) => compiled.cil,
                _ => profiles::summary(&compiled)?,
            }
        }
        policies => {
            let policy = load::load(policies)?;
            if args.cil { policy.to_cil() } else { counts(&policy, args.json)? }
        }
    };
    Ok(output::print(text.as_bytes())?)
}

/// How many of everything a policy has.
fn counts(policy: &Policy, json: bool) -> Result<String, std::fmt::Error> {
    let types = |kind| policy.types.values().filter(|entry| entry.kind == kind).count();
    let rules = |kind| policy.av_rules.iter().filter(|rule| rule.kind == kind).count();
    let constraints: usize = policy.classes.values().map(|class| class.constraints.len()).sum();
    let permissive = policy.types.values().filter(|entry| entry.permissive).count();
    let counts = [
        ("classes", policy.classes.len()),
        ("types", types(TypeKind::Type)),
        ("attributes", types(TypeKind::Attribute)),
        ("permissive", permissive),
        ("roles", policy.roles.len()),
        ("users", policy.users.len()),
        ("sensitivities", policy.sensitivities.len()),
        ("categories", policy.categories.len()),
        ("booleans", policy.booleans.len()),
        ("allow", rules(AvKind::Allow)),
        ("auditallow", rules(AvKind::AuditAllow)),
        ("dontaudit", rules(AvKind::DontAudit)),
        ("conditional", policy.av_rules.iter().filter(|rule| rule.branch.is_some()).count()),
        ("extended permissions", policy.xperm_rules.len()),
        ("type rules", policy.type_rules.len()),
        ("constraints", constraints),
        ("initial SIDs", policy.initial_sids.len()),
        ("file labels", policy.labels.files.len()),
        ("port labels", policy.labels.ports.len()),
    ];
    if json {
        let map: serde_json::Map<_, _> =
            counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect();
        return Ok(format!("{}\n", serde_json::Value::from(map)));
    }
    let mut text = String::new();
    for (name, count) in counts {
        writeln!(text, "{name:22}{count:>9}")?;
    }
    Ok(text)
}
