//! `dewar policy check`.

use super::{load, profiles};
use crate::output;
use crate::{failure::Usage, writable_programs};
use clap::Args;
use security_server::analysis::{Excess, Violation};
use security_server::policy::{AvRule, Policy, Type};
use security_server::{ClassId, TypeId};
use serde_json::{Value, json};
use std::fmt::Write as _;

const EXAMPLES: &str = "\
Examples:
  dewar policy check workspace ./build.toml    several profiles, each on its own
  dewar policy check base.cil web.cil          CIL files, together one policy
  dewar policy check --json policy.33

Exit status: 0, also with warnings; 2 if there is a mistake, or something breaks a `neverallow`
or its bounds.";

/// Check profiles or a policy; say nothing if they are good.
///
/// Reports every mistake with its place and with what to write instead; every rule that grants what
/// a `neverallow` forbids; and every type, role and user that goes beyond what bounds it. Warns, on
/// standard error, of programs that enter a domain of a profile and can be written by a domain that
/// enters it, and of domains that no program enters, as none of theirs is there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// Profiles, or the CIL files of one policy, or a binary policy
    #[arg(value_name = "POLICY", required_unless_present = "profile")]
    policies: Vec<String>,

    /// The same for a profile, as `dewar run` names it
    #[arg(short, long, value_name = "PROFILE", conflicts_with = "policies")]
    profile: Option<String>,

    /// Print what is broken as JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// Carries out `dewar policy check`.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let (named, files): (Vec<_>, Vec<_>) =
        args.policies.iter().chain(&args.profile).cloned().partition(|name| load::is_profile(name));
    let mut policies = Vec::new();
    for name in &named {
        let profiles::Read { compiled, documents, .. } = profiles::read(name, None, false)?;
        writable_programs::warn(&compiled);
        writable_programs::warn_unentered(&compiled, &documents);
        policies.push(load::load(std::slice::from_ref(name))?);
    }
    if !files.is_empty() {
        policies.push(load::load(&files)?);
    }
    let (mut text, mut promises, mut bounds) = (String::new(), 0, 0);
    for policy in &policies {
        for violation in &policy.violations() {
            promises += 1;
            match args.json {
                true => writeln!(text, "{}", promise_json(policy, violation))?,
                false => text += &promise_words(policy, violation),
            }
        }
        for excess in &policy.excesses() {
            bounds += 1;
            match args.json {
                true => writeln!(text, "{}", excess_json(policy, excess))?,
                false => text += &excess_words(policy, excess),
            }
        }
    }
    output::print(text.as_bytes())?;
    let count = |count, one: &str, many: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {many}")),
    };
    let broken = [
        count(promises, "rule breaks a `neverallow`", "rules break a `neverallow`"),
        count(bounds, "thing goes beyond its bounds", "things go beyond their bounds"),
    ];
    let broken: Vec<String> = broken.into_iter().flatten().collect();
    if broken.is_empty() { Ok(()) } else { Err(Usage(broken.join("; ")).into()) }
}

fn promise_words(policy: &Policy, violation: &Violation<'_>) -> String {
    let rule = &policy.av_rules[violation.rule];
    let promise = violation.neverallow;
    format!(
        "{}\n  grants {} to {} on {}, against\n{}{}\n",
        rule_and_place(policy, rule),
        policy.format_perms(promise.class, violation.perms),
        policy.type_name(violation.source),
        policy.type_name(violation.target),
        promise.text,
        policy.format_place(promise.place),
    )
}

fn promise_json(policy: &Policy, violation: &Violation<'_>) -> Value {
    let rule = &policy.av_rules[violation.rule];
    json!({
        "breaks": "neverallow",
        "rule": policy.format_rule(rule),
        "place": policy.format_place(rule.place).trim(),
        "neverallow": violation.neverallow.text,
        "neverallow_place": policy.format_place(violation.neverallow.place).trim(),
        "source": policy.type_name(violation.source),
        "target": policy.type_name(violation.target),
        "permissions": permissions(policy, violation.neverallow.class, violation.perms),
    })
}

fn excess_words(policy: &Policy, excess: &Excess) -> String {
    match excess {
        Excess::Rule { rule, child, parent, target, perms } => {
            let rule = &policy.av_rules[*rule];
            format!(
                "{}\n  grants {} to {} on {}, which {} may not do, against\n{}{}\n",
                rule_and_place(policy, rule),
                policy.format_perms(rule.class, *perms),
                policy.type_name(*child),
                policy.type_name(*target),
                policy.type_name(*parent),
                typebounds(policy, *child, *parent),
                policy.format_place(bounded(policy, *child).and_then(|child| child.bounds_place)),
            )
        }
        Excess::Role { child, parent, types } => {
            let types: Vec<&str> =
                types.iter().map(|id| policy.type_name(TypeId::at(id))).collect();
            let (child, parent) = (policy.role_name(*child), policy.role_name(*parent));
            let types = types.join(" ");
            format!(
                "role {child} may have ({types}), which {parent} may not have, against\n(rolebounds {parent} {child})\n"
            )
        }
        Excess::User { child, parent, roles } => {
            let roles = roles.iter().map(|id| policy.role_name(security_server::RoleId::at(id)));
            let roles = roles.collect::<Vec<&str>>().join(" ");
            let (child, parent) = (policy.user_name(*child), policy.user_name(*parent));
            format!(
                "user {child} may have ({roles}), which {parent} may not have, against\n(userbounds {parent} {child})\n"
            )
        }
    }
}

fn excess_json(policy: &Policy, excess: &Excess) -> Value {
    match excess {
        Excess::Rule { rule, child, parent, target, perms } => {
            let rule = &policy.av_rules[*rule];
            let place = bounded(policy, *child).and_then(|child| child.bounds_place);
            json!({
                "breaks": "typebounds",
                "rule": policy.format_rule(rule),
                "place": policy.format_place(rule.place).trim(),
                "typebounds": typebounds(policy, *child, *parent),
                "typebounds_place": policy.format_place(place).trim(),
                "source": policy.type_name(*child),
                "bound": policy.type_name(*parent),
                "target": policy.type_name(*target),
                "permissions": permissions(policy, rule.class, *perms),
            })
        }
        Excess::Role { child, parent, types } => json!({
            "breaks": "rolebounds",
            "role": policy.role_name(*child),
            "bound": policy.role_name(*parent),
            "types": types.iter().map(|id| policy.type_name(TypeId::at(id))).collect::<Vec<_>>(),
        }),
        Excess::User { child, parent, roles } => {
            let roles = roles.iter().map(|id| policy.role_name(security_server::RoleId::at(id)));
            json!({
                "breaks": "userbounds",
                "user": policy.user_name(*child),
                "bound": policy.user_name(*parent),
                "roles": roles.collect::<Vec<_>>(),
            })
        }
    }
}

/// The rule, with its condition if it has one, and its place.
fn rule_and_place(policy: &Policy, rule: &AvRule) -> String {
    let text = policy.format_rule(rule);
    let condition = rule.branch.map_or_else(String::new, |branch| {
        format!("  ; if {} is {}", policy.format_condition(branch.condition), branch.when)
    });
    text + &condition + &policy.format_place(rule.place)
}

fn typebounds(policy: &Policy, child: TypeId, parent: TypeId) -> String {
    format!("(typebounds {} {})", policy.type_name(parent), policy.type_name(child))
}

fn bounded(policy: &Policy, child: TypeId) -> Option<&Type> {
    policy.types.get_index(child.index()).map(|(_, child)| child)
}

fn permissions(policy: &Policy, class: ClassId, perms: u32) -> Vec<&str> {
    let class = policy.classes.get_index(class.index());
    class.into_iter().flat_map(|(_, class)| class.names_of(perms)).collect()
}
