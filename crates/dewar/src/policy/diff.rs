//! `dewar policy diff`.

use super::load;
use crate::output;
use clap::Args;
use clap::builder::PossibleValuesParser;
use security_server::Engine;
use security_server::analysis::{FactChange, How, RuleChange, SECTIONS, diff};
use security_server::policy::AvKind;
use serde_json::{Value, json};
use std::fmt::{self, Write as _};

const LINES: &str = "\
A line begins with + for what only NEW has, - for what only OLD has, ~ for what both have and
say differently. Authority comes first, one line for each (source type, target type, class):
  + web_t secret_t file { read }
  + web_t secret_t file { write } if web_writes is true     a rule that waits for booleans
  + dontaudit web_t secret_t file { read }                  also auditallow
Then everything else, each line with its section in front.

Examples:
  dewar policy diff old.cil new.cil
  dewar policy diff --only authority --only constraint policy.33 new.33
  dewar policy diff --json workspace ./build.toml

Exit status: 0, or 2 for a mistake.";

/// Show what a new policy adds, takes away or changes.
///
/// Compares what rules grant, as sets of (type, type, class, permission), less what bounds take
/// away, with booleans as each policy sets them; rules that are written differently and grant the
/// same do not show. What else bears on decisions (constraints, roles, users, levels, transitions,
/// booleans, labels) is compared statement by statement.
#[derive(Debug, Args)]
#[command(after_help = LINES)]
pub(super) struct DiffArgs {
    /// The policy before
    #[arg(value_name = "OLD")]
    old: String,

    /// The policy after
    #[arg(value_name = "NEW")]
    new: String,

    /// Print this section alone (repeat for several)
    #[arg(long, value_name = "SECTION", value_parser = sections())]
    only: Vec<String>,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

fn sections() -> PossibleValuesParser {
    PossibleValuesParser::new(std::iter::once("authority").chain(SECTIONS))
}

/// Carries out `dewar policy diff`.
pub(super) fn run(args: &DiffArgs) -> anyhow::Result<()> {
    let engine = |name: &String| load::load(std::slice::from_ref(name)).map(Engine::new);
    let differences = diff(&engine(&args.old)?, &engine(&args.new)?);
    let wanted = |section: &str| args.only.is_empty() || args.only.iter().any(|o| o == section);
    let mut text = String::new();
    for change in differences.authority.iter().filter(|_| wanted("authority")) {
        match args.json {
            true => writeln!(text, "{}", change_json(change))?,
            false => write_change(&mut text, change)?,
        }
    }
    for change in differences.facts.iter().filter(|change| wanted(change.section)) {
        match args.json {
            true => writeln!(text, "{}", fact_json(change))?,
            false => writeln!(text, "{}", fact_line(change))?,
        }
    }
    Ok(output::print(text.as_bytes())?)
}

fn write_change(text: &mut String, change: &RuleChange) -> fmt::Result {
    let RuleChange { kind, source, target, class, condition, added, removed } = change;
    let keyword = match kind {
        AvKind::Allow => String::new(),
        kind => format!("{} ", kind.keyword()),
    };
    let condition = condition.as_ref().map_or_else(String::new, |text| format!(" if {text}"));
    for (sign, perms) in [('+', added), ('-', removed)] {
        if !perms.is_empty() {
            let perms = perms.join(" ");
            writeln!(text, "{sign} {keyword}{source} {target} {class} {{ {perms} }}{condition}")?;
        }
    }
    Ok(())
}

fn change_json(change: &RuleChange) -> Value {
    let RuleChange { kind, source, target, class, condition, added, removed } = change;
    let kind = kind.keyword();
    json!({
        "section": "authority", "kind": kind, "source": source, "target": target, "class": class,
        "condition": condition, "added": added, "removed": removed,
    })
}

fn fact_line(change: &FactChange) -> String {
    let FactChange { section, about, how } = change;
    let says = |value: &String| if value.is_empty() { String::new() } else { format!(": {value}") };
    match how {
        How::Added(value) => format!("+ {section} {about}{}", says(value)),
        How::Removed(value) => format!("- {section} {about}{}", says(value)),
        How::Changed { old, new } => format!("~ {section} {about}: {old} -> {new}"),
        How::Members { added, removed } => {
            let added = added.iter().map(|name| format!(" +{name}"));
            let members: String =
                added.chain(removed.iter().map(|name| format!(" -{name}"))).collect();
            format!("~ {section} {about}:{members}")
        }
    }
}

fn fact_json(change: &FactChange) -> Value {
    let FactChange { section, about, how } = change;
    let mut value = json!({"section": section, "about": about});
    match how {
        How::Added(new) => value["new"] = json!(new),
        How::Removed(old) => value["old"] = json!(old),
        How::Changed { old, new } => {
            value["old"] = json!(old);
            value["new"] = json!(new);
        }
        How::Members { added, removed } => {
            value["added"] = json!(added);
            value["removed"] = json!(removed);
        }
    }
    value
}
