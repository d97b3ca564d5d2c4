//! `dewar policy show`.

use super::{
    grants::Grants,
    groups, load,
    profiles::{self, Read},
};
use crate::{output, run::document::schema};
use anyhow::bail;
use clap::Args;
use cli::{failure::Usage, look};
use monitor::visible;
use profile::{Compiled, Documents, EndpointRule, Hiding, Limits, Mode};
use security_server::policy::{AvKind, Policy, TypeKind};
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
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

    /// Print the schema of what --json prints for a profile
    #[arg(long, conflicts_with_all = ["json", "cil", "toml"])]
    json_schema: bool,

    /// Resolve host names of a profile, as a run does
    #[arg(long)]
    resolve: bool,

    /// The directory that `${workspace}` of a profile stands for [default: the working directory]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

/// Carries out `dewar policy show`.
pub(super) fn run(args: &ShowArgs) -> anyhow::Result<()> {
    if args.json_schema {
        return Ok(output::print(schema!("profile").as_bytes())?);
    }
    let text = match &args.policies[..] {
        [name] if load::is_profile(name) => {
            let read = profiles::read(name, args.workspace.as_deref(), args.resolve)?;
            match (args.cil, args.origins) {
                (true, true) => profiles::with_origins(&read.compiled),
                (true, false) => read.compiled.cil,
                _ if args.toml => flat(&read)?,
                _ if args.json => json(&read, &load::load(&args.policies)?)?,
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
    let text = read.documents.flattened();
    let name = read.compiled.name.clone();
    // From texts alone: a file in the workspace protects itself.
    let meant = |texts: &[(String, String)]| {
        let documents = Documents::from_texts(name.clone(), texts)?;
        let compiled = documents.compile(&read.variables, &mut |_| Ok(Vec::new()), &[]);
        compiled.map(|compiled| Meaning::of(&compiled))
    };
    let flat = meant(&[("flat".to_owned(), text.clone())]);
    let same = match (flat, meant(&read.documents.texts())) {
        (Ok(flat), Ok(own)) => flat == own,
        _ => false,
    };
    if !same {
        bail!(Usage(format!(
            "what {} says and what it extends overlap so that one text would not grant the same; --cil prints the policy",
            visible(&read.compiled.name)
        )));
    }
    Ok(text.lines().map(|line| visible(line) + "\n").collect())
}

/// All that a run has of a profile, in whatever order that says so.
#[derive(PartialEq)]
struct Meaning {
    /// Rules and labels of the policy.
    policy: Vec<String>,
    /// Domain, direction and host with its ports: of a name, no address need be known.
    endpoints: BTreeSet<(String, &'static str, String)>,
    capabilities: BTreeSet<(String, String)>,
    /// Patterns of variables, with whether they let them pass.
    variables: BTreeSet<(String, bool)>,
    set: BTreeMap<String, String>,
    limits: Limits,
    directories: Vec<PathBuf>,
    others: (Mode, Hiding, Option<bool>, bool),
}

impl Meaning {
    fn of(it: &Compiled) -> Self {
        let rules = it.cil.lines().filter(|line| !line.trim_start().starts_with(';'));
        let mut policy: Vec<String> = rules.map(str::to_owned).collect();
        policy.sort();
        let endpoint = |rule: &EndpointRule| {
            format!("{} {:?} {}-{}", it.hosts[rule.host].host, rule.protocol, rule.low, rule.high)
        };
        let endpoints = it.domains.iter().flat_map(|domain| {
            let all = [("connect", &domain.connect), ("bind", &domain.bind)];
            let each = |(name, rules): (&'static str, &Vec<EndpointRule>)| {
                let of = |rule: &EndpointRule| (domain.name.clone(), name, endpoint(rule));
                rules.iter().map(of).collect::<Vec<_>>()
            };
            all.into_iter().flat_map(each).collect::<Vec<_>>()
        });
        let capabilities = it.domains.iter().flat_map(|domain| {
            domain.capabilities.iter().map(|name| (domain.name.clone(), name.clone()))
        });
        let variables = it.environment.rules().map(|(name, pass)| (name.to_owned(), pass));
        Self {
            policy,
            endpoints: endpoints.collect(),
            capabilities: capabilities.collect(),
            variables: variables.collect(),
            set: it.environment.set.clone(),
            limits: it.limits,
            directories: it.directories.clone(),
            others: (it.mode, it.hiding, it.private_loopback, it.guarded),
        }
    }
}

/// What a profile grants, and how many of everything its policy has, on one line.
fn json(read: &Read, policy: &Policy) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(Grants::of(&read.compiled, &read.variables))?;
    value["policy"] = serde_json::from_str(&counts(policy, true)?)?;
    Ok(visible(&value.to_string()) + "\n")
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
