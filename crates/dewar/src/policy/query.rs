//! `dewar policy query`.

use super::load::PolicySource;
use crate::failure::Usage;
use crate::output;
use clap::{Args, ValueEnum};
use cli::look::did_you_mean;
use security_server::Engine;
use security_server::analysis::{MatchingRule, Query, Which};
use security_server::policy::{AvKind, TypeRuleKind};
use serde_json::json;
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  dewar policy query -f policy.33 -s httpd_t -c file -p write
  dewar policy query -f policy.33 -s sshd_t -t shadow_t --expand --json
  dewar policy query -f policy.33 -k typetransition -s init_t --active
  dewar policy query -f policy.33 -k allowx -p ioctl -x 0x5401
  dewar policy query -f policy.33 -k roleallow -s staff_r

Exit status: 0, or 2 for a name that the policy lacks.";

/// Find rules by source, target, class and permission.
///
/// Prints each rule as CIL; one in a `booleanif` with its condition and whether that is in force.
/// Rules of all kinds are looked through; rules on roles match by the roles that they name,
/// `roletransition` by role and type.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct QueryArgs {
    #[command(flatten)]
    policy: PolicySource,

    /// Type, attribute or role of the subject
    #[arg(short, long, value_name = "TYPE")]
    source: Option<String>,

    /// Type or attribute of the object, or the new role of a `roleallow`
    #[arg(short, long, value_name = "TYPE")]
    target: Option<String>,

    /// Class of the object
    #[arg(short, long)]
    class: Option<String>,

    /// Permission (repeat for several; a rule that names any of them matches); `ioctl` and `nlmsg`
    /// find rules on extended permissions, too
    #[arg(short, long, value_name = "PERMISSION")]
    permission: Vec<String>,

    /// Extended permission, or a range of them (repeat for several): 0x5401, 0x8900-0x89ff
    #[arg(short, long, value_name = "NUMBER", value_parser = xperms)]
    xperm: Vec<(u16, u16)>,

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
    Allowx,
    Auditallowx,
    Dontauditx,
    Typetransition,
    Typemember,
    Typechange,
    Rangetransition,
    Roleallow,
    Roletransition,
}

impl From<Kind> for Which {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Allow => Self::Av(AvKind::Allow),
            Kind::Auditallow => Self::Av(AvKind::AuditAllow),
            Kind::Dontaudit => Self::Av(AvKind::DontAudit),
            Kind::Allowx => Self::Xperm(AvKind::Allow),
            Kind::Auditallowx => Self::Xperm(AvKind::AuditAllow),
            Kind::Dontauditx => Self::Xperm(AvKind::DontAudit),
            Kind::Typetransition => Self::Type(TypeRuleKind::Transition),
            Kind::Typemember => Self::Type(TypeRuleKind::Member),
            Kind::Typechange => Self::Type(TypeRuleKind::Change),
            Kind::Rangetransition => Self::RangeTransition,
            Kind::Roleallow => Self::RoleAllow,
            Kind::Roletransition => Self::RoleTransition,
        }
    }
}

/// A number of 16 bits, or two of them with a hyphen between.
fn xperms(text: &str) -> Result<(u16, u16), String> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    match (number(low), number(high)) {
        (Ok(low), Ok(high)) if low <= high => Ok((low, high)),
        _ => Err("write a number up to 0xffff, or LOW-HIGH".to_owned()),
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
        xperms: args.xperm.clone(),
        expand: args.expand,
        active_only: args.active,
    };
    let found = engine.query(&query).map_err(|error| {
        let policy = engine.policy();
        let types = policy.types.keys().chain(policy.roles.keys()).chain(policy.classes.keys());
        let permissions = policy.classes.values().flat_map(|class| class.permissions.keys());
        let meant = did_you_mean(&error.name, types.chain(permissions).map(|it| &**it));
        Usage(format!("{error}{meant}"))
    })?;
    let mut text = String::new();
    for rule in found {
        line(&mut text, &engine, &rule, args.json)?;
    }
    Ok(output::print(text.as_bytes())?)
}

fn line(
    text: &mut String,
    engine: &Engine,
    found: &MatchingRule<'_>,
    json: bool,
) -> std::fmt::Result {
    let policy = engine.policy();
    let (rule, branch) = (found.format(policy), found.branch());
    let condition = branch.map(|branch| policy.format_condition(branch.condition));
    let active = branch.is_none_or(|branch| engine.index().holds(branch));
    let place = policy.format_place(found.place());
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
