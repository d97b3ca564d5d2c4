//! `dewar policy show`.

use super::{
    grants::Grants,
    groups, load,
    profiles::{self, Read},
};
use crate::output;
use anyhow::bail;
use clap::Args;
use cli::{failure::Usage, look};
use monitor::visible;
use profile::{Compiled, Documents, PathRule, Variables};
use security_server::policy::{AvKind, Policy, TypeKind};
use serde_json::json;
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write as _,
    path::PathBuf,
};

const EXAMPLES: &str = "\
Examples:
  dewar policy show workspace            who may do what where
  dewar policy show --toml agent         one profile that extends nothing and grants the same
  dewar policy show --json agent | jq '.domains[].connect'
  dewar policy show --cil ./build.toml   the policy in CIL; `secilc` reads it, too
  dewar policy show --cil --origins agent | grep github_com
  dewar policy show /etc/selinux/default/policy/policy.33

Exit status: 0, or 2 for a mistake in the profile or policy.";

/// Show what a profile grants, or what a policy is made of.
///
/// For a profile, prints what each domain may do, in groups: workspace, yours, system, hidden,
/// network, entry points; then environment and limits. Letters stand for reading, writing and
/// executing. Of a domain besides `main`, only what differs from `main` is shown. For a policy,
/// prints how many of everything it has; with --cil, the policy itself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// Policy: a profile, CIL files or a binary policy
    #[arg(value_name = "POLICY", default_value = "workspace")]
    policies: Vec<String>,

    /// The same for a profile, as `dewar run` names it
    #[arg(short, long, value_name = "PROFILE", conflicts_with = "policies")]
    profile: Option<String>,

    /// Print the policy in CIL
    #[arg(long)]
    cil: bool,

    /// Print a profile that extends nothing and grants the same
    #[arg(long, conflicts_with_all = ["cil", "json", "resolve"])]
    toml: bool,

    /// Leave nothing out of long lists
    #[arg(long)]
    all: bool,

    /// Append to each rule the place in the profile that it comes from
    #[arg(long, requires = "cil")]
    origins: bool,

    /// Print JSON: what a profile grants, and how many of everything its policy has
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
    let named = args.profile.as_ref().map_or(&args.policies[..], std::slice::from_ref);
    let text = match named {
        [name] if args.profile.is_some() || load::is_profile(name) => {
            let read = profiles::read(name, args.workspace.as_deref(), args.resolve)?;
            match (args.cil, args.origins) {
                (true, true) => profiles::with_origins(&read.compiled),
                (true, false) => read.compiled.cil,
                _ if args.toml => flat(&read)?,
                _ if args.json => json(&read, &load::load(named)?)?,
                _ => {
                    let grants = Grants::of(&read.compiled, &read.variables);
                    return Ok(look::show(&groups::tell(&grants, look::width(), args.all)?)?);
                }
            }
        }
        _ if args.toml => {
            bail!(Usage("only a profile can be printed as TOML; --cil prints a policy".into()))
        }
        policies => {
            let policy = load::load(policies)?;
            if args.cil { policy.to_cil() } else { counts(&policy, args.json)? }
        }
    };
    Ok(output::print(text.as_bytes())?)
}

/// One text for a profile and all that it extends, if that grants the same.
fn flat(read: &Read) -> anyhow::Result<String> {
    if read.compiled.proposes {
        bail!(Usage(format!(
            "the [propose] of {} names its bound from where it lies, so one text cannot say it; --cil prints the policy",
            visible(&read.compiled.name)
        )));
    }
    let text = read.documents.flattened(read.compiled.private_loopback.is_some());
    let name = &read.compiled.name;
    let compile = |texts: &[(String, String)]| {
        Documents::from_texts(name.clone(), texts)
            .and_then(|it| it.compile(&read.variables, &mut profile::unresolved, &[]))
    };
    // Not what was read already: a file protects itself, and neither of these texts is one.
    let before = compile(&read.documents.texts())?;
    let after = compile(&[("one text".to_owned(), text.clone())])?;
    let differences = differences(&before, &after, &read.variables)?;
    if let Some(first) = differences.first() {
        let more = match differences.len() - 1 {
            0 => String::new(),
            more => format!(" (and of {more} more)"),
        };
        bail!(Usage(format!(
            "one text would not grant the same as {}, of {}{more}: what it says there and what it extends overlap, and \
             there the order counts; --cil prints the policy, and --json what is granted",
            visible(name),
            visible(first),
        )));
    }
    Ok(text.lines().map(|line| visible(line) + "\n").collect())
}

/// What two profiles do not grant alike, in whatever order they say it.
fn differences(
    one: &Compiled,
    other: &Compiled,
    variables: &Variables,
) -> serde_json::Result<Vec<String>> {
    let files = |it: &Compiled| -> HashMap<_, _> {
        let rule = |rule: &PathRule| {
            ((rule.regex.clone(), rule.is_way, rule.by_name), rule.rights.clone())
        };
        it.paths.iter().map(rule).collect()
    };
    let (before, after) = (files(one), files(other));
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let keys = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let mut found: Vec<String> = keys.map(|(regex, ..)| format!("`{regex}`")).collect();
    let [one, other] = [one, other].map(|it| grants_beside_files(it, variables));
    let (one, other) = (one?, other?);
    found.extend(one.iter().filter(|it| !other.contains(it)).map(|(name, _)| name.clone()));
    Ok(found)
}

/// Everything else that a profile grants, by what it is about.
fn grants_beside_files(
    compiled: &Compiled,
    variables: &Variables,
) -> serde_json::Result<Vec<(String, serde_json::Value)>> {
    let Grants { mode, hiding, guarded, domains, environment, limits, .. } =
        Grants::of(compiled, variables);
    let sorted = |rules: &[super::grants::EndpointGrant]| {
        let mut rules: Vec<String> = rules.iter().map(|it| format!("{it:?}")).collect();
        rules.sort();
        rules.dedup();
        rules
    };
    let mut about = vec![
        ("the settings".to_owned(), json!([mode, hiding, guarded, compiled.directories])),
        ("the loopback".to_owned(), json!([compiled.private_loopback, Some(compiled.own_ports)])),
        ("the environment".to_owned(), json!(environment.set)),
        ("the limits".to_owned(), serde_json::to_value(limits)?),
    ];
    for rules in [environment.pass, environment.drop] {
        about.push(("the environment".to_owned(), json!(rules.iter().collect::<BTreeSet<_>>())));
    }
    for domain in domains {
        let entries: BTreeSet<_> =
            domain.entry_points.iter().map(|it| (&it.program, &it.domain)).collect();
        let rest = json!([
            sorted(&domain.connect),
            sorted(&domain.bind),
            domain.unix_sockets,
            domain.netlink,
            domain.capabilities.iter().collect::<BTreeSet<_>>(),
            entries,
        ]);
        about.push((format!("domain {}", domain.name), rest));
    }
    Ok(about)
}

/// What a profile grants, and how many of everything its policy has, on one line.
fn json(read: &Read, policy: &Policy) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(Grants::of(&read.compiled, &read.variables))?;
    value["policy"] = serde_json::from_str(&counts(policy, true)?)?;
    Ok(flask::visible_json(&value.to_string()) + "\n")
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
