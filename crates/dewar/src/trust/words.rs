//! What a profile grants, in words, beside what a run has without one.

use learn::Judge;
use monitor::visible;
use profile::{Compiled, EndpointRule, PathRights, PathRule, Source, Variables};
use std::{collections::BTreeSet, fmt::Write as _, path::Path};

/// More lines than this of a kind are counted.
const MOST: usize = 12;

/// What `compiled` grants and takes, compared with the profile that a run has by default.
pub(super) fn compared(compiled: &Compiled, variables: &Variables) -> anyhow::Result<String> {
    let default = Source::Shipped("workspace".into());
    let default = profile::load(&default, variables, &mut |_| Ok(Vec::new()))?;
    let (old, new) = (Judge::new(&default)?, Judge::new(compiled)?);
    let mut text = String::new();
    let mut said = BTreeSet::new();
    for domain in &compiled.domains {
        let who = match domain.name.as_str() {
            "main" => String::new(),
            name => format!(" (domain {name})"),
        };
        let (mut gained, lost) = files(compiled, (&old, &new), &domain.name, variables);
        // What the base domain has, too, was said of that.
        gained.retain(|line| !said.contains(line));
        said.extend(gained.iter().cloned());
        list(&mut text, &format!("may also{who}"), &gained)?;
        if domain.name == "main" {
            list(&mut text, "may not", &lost)?;
        }
        list(&mut text, &format!("may reach{who}"), &endpoints(compiled, &domain.connect))?;
        list(&mut text, &format!("may listen at{who}"), &endpoints(compiled, &domain.bind))?;
        let unix = domain.unix.then(|| "unix sockets by name".to_owned());
        list(&mut text, &format!("may reach{who}"), &unix.into_iter().collect())?;
        let kept = domain.capabilities.iter().map(|name| format!("the capability {name}"));
        list(&mut text, &format!("keeps{who}"), &kept.collect())?;
    }
    let set = compiled.environment.set.iter();
    let set = set.filter(|(name, value)| default.environment.set.get(*name) != Some(*value));
    list(&mut text, "sets", &set.map(|(name, value)| format!("{name}={value}")).collect())?;
    let passes = std::env::vars_os().filter(|(name, value)| {
        let seen = |of: &Compiled| of.environment.fate(name, value).is_seen();
        seen(compiled)
            && !seen(&default)
            && !compiled.environment.set.contains_key(&*name.to_string_lossy())
    });
    let passes = passes.map(|(name, _)| name.to_string_lossy().into_owned());
    list(&mut text, "sees the variables", &passes.collect())?;
    if text.is_empty() {
        text = "  grants what a run without it has, and nothing more\n".into();
    }
    Ok(text)
}

/// What a domain has beyond the default, and what it lacks of that.
fn files(
    compiled: &Compiled,
    (old, new): (&Judge, &Judge),
    domain: &str,
    variables: &Variables,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut gained, mut lost) = (BTreeSet::new(), BTreeSet::new());
    let index = compiled.domains.iter().position(|known| known.name == domain).unwrap_or(0);
    for rule in compiled.paths.iter().filter(|rule| !rule.by_name && !rule.is_way) {
        let now = rule.rights[index];
        let (before, place) = match &rule.path {
            Some(path) => (old.rights(path, None), shown(path, variables)),
            // What a pattern stands for may lie anywhere below what it starts with.
            None => (before_pattern(rule, old), rule.regex.clone()),
        };
        let inherited = rule.path.as_ref().and_then(|path| path.parent()).is_some_and(|parent| {
            new.rights(parent, Some(domain)) == now && old.rights(parent, None) != before
        });
        if inherited {
            continue;
        }
        let more = verbs(now, before);
        if !more.is_empty() {
            gained.insert(format!("{more} {place}"));
        }
        let less = verbs(before, now);
        if !less.is_empty() {
            lost.insert(format!("{less} {place}"));
        }
    }
    (gained, lost)
}

fn before_pattern(rule: &PathRule, old: &Judge) -> PathRights {
    let literal: String = rule.regex.chars().take_while(|c| !r"\[(.*?+".contains(*c)).collect();
    let start = literal.rsplit_once('/').map_or("/", |(start, _)| start);
    old.rights(Path::new(if start.is_empty() { "/" } else { start }), None)
}

/// The strongest words for what `these` have and `those` have not.
fn verbs(these: PathRights, those: PathRights) -> String {
    let mut verbs = Vec::new();
    if these.write && !those.write {
        verbs.push("write");
    } else if these.read && !those.read {
        verbs.push("read");
    }
    if these.exec && !those.exec {
        verbs.push("execute");
    }
    verbs.join(" and ")
}

fn shown(path: &Path, variables: &Variables) -> String {
    let below =
        path.strip_prefix(&variables.home).ok().filter(|_| variables.home != Path::new("/"));
    let text = match below {
        Some(rest) if rest.as_os_str().is_empty() => {
            "your whole home, but for what is hidden".into()
        }
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    };
    visible(&text)
}

fn endpoints(compiled: &Compiled, rules: &[EndpointRule]) -> BTreeSet<String> {
    let text = |rule: &EndpointRule| {
        let ports = match (rule.low, rule.high) {
            (0, u16::MAX) => "*".to_owned(),
            (low, high) if low == high => low.to_string(),
            (low, high) => format!("{low}-{high}"),
        };
        let protocol = match rule.protocol {
            flask::Protocol::Udp => "/udp",
            _ => "",
        };
        format!("{}:{ports}{protocol}", compiled.hosts[rule.host].host)
    };
    rules.iter().map(text).collect()
}

fn list(text: &mut String, verb: &str, things: &BTreeSet<String>) -> std::fmt::Result {
    for thing in things.iter().take(MOST) {
        writeln!(text, "  {verb} {}", visible(thing))?;
    }
    match things.len().saturating_sub(MOST) {
        0 => Ok(()),
        more => writeln!(text, "  {verb} … and {more} more: `dewar policy show` tells all"),
    }
}
