//! Profiles, as the policy subcommands see them.

use crate::surroundings;
use profile::{Compiled, EndpointRule, PathRights, Source, load, shipped};
use serde_json::json;
use std::{fmt::Write as _, path::Path};

/// A profile under the variables of this machine. Without `resolve`, names of hosts stay names.
pub(super) fn compile(
    name: &str,
    workspace: Option<&Path>,
    resolve: bool,
) -> anyhow::Result<Compiled> {
    let variables = surroundings::variables(workspace, "/tmp".into())?;
    let source = Source::from_argument(name);
    let compiled = if resolve {
        load(&source, &variables, &mut surroundings::resolve)
    } else {
        load(&source, &variables, &mut |_| Ok(Vec::new()))
    };
    Ok(compiled?)
}

/// The shipped profiles with their descriptions, one a line.
pub(super) fn list(json: bool) -> anyhow::Result<String> {
    let mut text = String::new();
    for (name, _) in shipped() {
        let description = compile(name, None, false)?.description.unwrap_or_default();
        if json {
            writeln!(text, "{}", json!({"name": name, "description": description}))?;
        } else {
            writeln!(text, "{name:12}{description}")?;
        }
    }
    Ok(text)
}

/// The policy with the place of each rule behind it.
pub(super) fn with_origins(compiled: &Compiled) -> String {
    let line = |(index, line): (usize, &str)| match compiled.origin(index + 1) {
        Some(origin) => format!("{line}  ; {}:{}: {}\n", origin.file, origin.line, origin.text),
        None => format!("{line}\n"),
    };
    compiled.cil.lines().enumerate().map(line).collect()
}

/// What a profile grants, for people.
pub(super) fn summary(compiled: &Compiled) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(text, "{}", compiled.name)?;
    if let Some(description) = &compiled.description {
        writeln!(text, "  {description}")?;
    }
    for (index, domain) in compiled.domains.iter().enumerate() {
        writeln!(text, "\ndomain {}", domain.name)?;
        for rule in &compiled.paths {
            let path = rule.path.as_ref().map(|path| path.display().to_string());
            let path = match path {
                Some(path) => path,
                // What a guard says is the same for every profile.
                None if rule.by_name => continue,
                None => format!("{} (regular expression)", rule.regex),
            };
            writeln!(text, "  {:8}{path}", rights(rule.rights[index]))?;
        }
        for (verb, rules) in [("connect", &domain.connect), ("bind", &domain.bind)] {
            for rule in rules {
                writeln!(text, "  {verb:8}{}", endpoint(compiled, rule))?;
            }
        }
        for capability in &domain.capabilities {
            writeln!(text, "  keeps   capability {capability}")?;
        }
    }
    Ok(text)
}

fn rights(rights: PathRights) -> String {
    if rights.hidden {
        return "hidden".to_owned();
    }
    let letters = [(rights.read, 'r'), (rights.write, 'w'), (rights.exec, 'x')];
    let text: String = letters.iter().filter(|(granted, _)| *granted).map(|(_, l)| *l).collect();
    match (text.is_empty(), rights.list) {
        (false, _) => text,
        (true, true) => "list".to_owned(),
        (true, false) => "denied".to_owned(),
    }
}

fn endpoint(compiled: &Compiled, rule: &EndpointRule) -> String {
    let host = &compiled.hosts[rule.host];
    let ports = match (rule.low, rule.high) {
        (0, u16::MAX) => "*".to_owned(),
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low}-{high}"),
    };
    let protocol = format!("{:?}", rule.protocol).to_lowercase();
    let because =
        host.error.as_ref().map_or(String::new(), |error| format!(" (no address: {error})"));
    format!("{}:{ports}/{protocol}{because}", host.host)
}
