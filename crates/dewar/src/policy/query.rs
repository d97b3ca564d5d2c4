//! `dewar policy query`.

use super::load::PolicySource;
use crate::failure::Usage;
use crate::output;
use clap::{Args, ValueEnum};
use security_server::Engine;
use security_server::analysis::{Found, Query, Which};
use security_server::policy::{AvKind, Branch, Place, Policy, TypeRuleKind};
use serde_json::json;
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  dewar policy query -f policy.33 -s httpd_t -c file -p write
  dewar policy query -f policy.33 -s sshd_t -t shadow_t --expand --json
  dewar policy query -f policy.33 -k typetransition -s init_t --active

Exit status: 0, or 2 for a name that the policy lacks.";

/// Find rules by source, target, class and permission.
///
/// Prints each rule as CIL; one in a `booleanif` with its condition and whether that is in force.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct QueryArgs {
    #[command(flatten)]
    policy: PolicySource,

    /// Type or attribute of the subject
    #[arg(short, long, value_name = "TYPE")]
    source: Option<String>,

    /// Type or attribute of the object
    #[arg(short, long, value_name = "TYPE")]
    target: Option<String>,

    /// Class of the object
    #[arg(short, long)]
    class: Option<String>,

    /// Permission (repeat for several; a rule that names any of them matches)
    #[arg(short, long, value_name = "PERMISSION")]
    permission: Vec<String>,

    /// Kind of rule (repeat for several) [default: all]
    #[arg(short, long)]
    kind: Vec<Kind>,

    /// Match types by the attributes that they have, and attributes by their types
    #[arg(short = 'e', long)]
    expand: bool,

    /// Leave out rules whose condition is not in force
    #[arg(long)]
    active: bool,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Allow,
    Auditallow,
    Dontaudit,
    Typetransition,
    Typemember,
    Typechange,
}

impl From<Kind> for Which {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Allow => Self::Av(AvKind::Allow),
            Kind::Auditallow => Self::Av(AvKind::AuditAllow),
            Kind::Dontaudit => Self::Av(AvKind::DontAudit),
            Kind::Typetransition => Self::Type(TypeRuleKind::Transition),
            Kind::Typemember => Self::Type(TypeRuleKind::Member),
            Kind::Typechange => Self::Type(TypeRuleKind::Change),
        }
    }
}

/// Carries out `dewar policy query`.
pub(super) fn run(args: &QueryArgs) -> anyhow::Result<()> {
    let engine = args.policy.engine()?;
    let query = Query {
        kinds: args.kind.iter().copied().map(Which::from).collect(),
        source: args.source.as_deref(),
        target: args.target.as_deref(),
        class: args.class.as_deref(),
        perms: args.permission.iter().map(String::as_str).collect(),
        expand: args.expand,
        active_only: args.active,
    };
    let found = engine.query(&query).map_err(|error| Usage(error.to_string()))?;
    let mut text = String::new();
    for rule in found {
        let (rule, branch, place) = describe(engine.policy(), rule);
        line(&mut text, &engine, &rule, branch, place, args.json)?;
    }
    Ok(output::print(text.as_bytes())?)
}

fn describe(policy: &Policy, rule: Found<'_>) -> (String, Option<Branch>, Option<Place>) {
    match rule {
        Found::Av(rule) => (policy.format_rule(rule), rule.branch, rule.place),
        Found::Type(rule) => (policy.format_type_rule(rule), rule.branch, rule.place),
    }
}

fn line(
    text: &mut String,
    engine: &Engine,
    rule: &str,
    branch: Option<Branch>,
    place: Option<Place>,
    json: bool,
) -> std::fmt::Result {
    let policy = engine.policy();
    let condition = branch.map(|branch| policy.format_condition(branch.condition));
    let active = branch.is_none_or(|branch| engine.index().holds(branch));
    let place = policy.format_place(place);
    if json {
        let when = branch.map(|branch| branch.when);
        let place = place.trim();
        let value = json!({"rule": rule, "condition": condition, "when": when, "active": active, "place": place});
        return writeln!(text, "{value}");
    }
    write!(text, "{rule}")?;
    if let (Some(condition), Some(branch)) = (condition, branch) {
        let state = if active { "in force" } else { "not in force" };
        write!(text, "  ; if {condition} is {}: {state}", branch.when)?;
    }
    writeln!(text, "{place}")
}
