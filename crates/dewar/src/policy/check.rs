//! `dewar policy check`.

use super::{load, profiles};
use crate::failure::Usage;
use crate::output;
use clap::Args;
use security_server::analysis::Violation;
use security_server::policy::Policy;
use serde_json::{Value, json};
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  dewar policy check workspace ./build.toml    several profiles, each on its own
  dewar policy check base.cil web.cil          CIL files, together one policy
  dewar policy check --json policy.33

Exit status: 0, or 2 if there is a mistake or a rule breaks a `neverallow`.";

/// Check profiles or a policy; say nothing if they are good.
///
/// Reports every mistake with its place and with what to write instead, and every rule that grants what a
/// `neverallow` forbids.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// Profiles, or the CIL files of one policy, or a binary policy
    #[arg(value_name = "POLICY", required = true)]
    policies: Vec<String>,

    /// Print broken rules as JSON, one a line
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar policy check`.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let (profiles, files): (Vec<_>, Vec<_>) =
        args.policies.iter().cloned().partition(|name| load::is_profile(name));
    profiles.iter().try_for_each(|name| profiles::compile(name, None, false).map(drop))?;
    if files.is_empty() {
        return Ok(());
    }
    let policy = load::load(&files)?;
    let violations = policy.violations();
    let mut text = String::new();
    for violation in &violations {
        if args.json {
            writeln!(text, "{}", as_json(&policy, violation))?;
        } else {
            text.push_str(&in_words(&policy, violation));
        }
    }
    output::print(text.as_bytes())?;
    match violations.len() {
        0 => Ok(()),
        1 => Err(Usage("1 rule breaks a `neverallow`".to_owned()).into()),
        count => Err(Usage(format!("{count} rules break a `neverallow`")).into()),
    }
}

fn in_words(policy: &Policy, violation: &Violation<'_>) -> String {
    let rule = &policy.av_rules[violation.rule];
    let promise = violation.neverallow;
    format!(
        "{}{}\n  grants {} to {} on {}, against\n{}{}\n",
        policy.format_rule(rule),
        policy.format_place(rule.place),
        policy.format_perms(promise.class, violation.perms),
        policy.type_name(violation.source),
        policy.type_name(violation.target),
        promise.text,
        policy.format_place(promise.place),
    )
}

fn as_json(policy: &Policy, violation: &Violation<'_>) -> Value {
    let rule = &policy.av_rules[violation.rule];
    let class = policy.classes.get_index(violation.neverallow.class.index());
    let perms: Vec<&str> = class.into_iter().flat_map(|c| c.1.names_of(violation.perms)).collect();
    json!({
        "rule": policy.format_rule(rule),
        "place": policy.format_place(rule.place).trim(),
        "neverallow": violation.neverallow.text,
        "neverallow_place": policy.format_place(violation.neverallow.place).trim(),
        "source": policy.type_name(violation.source),
        "target": policy.type_name(violation.target),
        "permissions": perms,
    })
}
