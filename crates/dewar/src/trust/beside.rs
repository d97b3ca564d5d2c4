//! What a profile says beside files and endpoints, in words, where it is not what a run has by
//! default.

use super::lines::{list, shown};
use crate::policy::netlink;
use profile::{Compiled, Domain, Environment, GuardAction, Hiding, Limits, Mode, Variables};
use std::{collections::BTreeSet, path::Path};

/// What a domain has and lacks; `who` stands behind each verb.
pub(super) fn of_domain(
    text: &mut String,
    (default, compiled): (&Compiled, &Compiled),
    (domain, who): (&Domain, &str),
    variables: &Variables,
) -> std::fmt::Result {
    let is_main = domain.name == "main";
    let place = |name: &String| shown(Path::new(name), variables);
    list(text, &format!("may reach{who}"), domain.unix.iter())?;
    list(text, &format!("may listen at{who}"), domain.unix_bind.iter())?;
    // What the base domain may ask, too, was said of that.
    let base = if is_main { default } else { compiled };
    let known = base.domains.first().map_or(&[][..], |base| &base.netlink);
    let asked = domain.netlink.iter().filter(|protocol| !known.contains(protocol));
    list(text, &format!("may ask{who}"), asked.map(|it| netlink(it)).collect::<Vec<_>>().iter())?;
    let lost = known.iter().filter(|protocol| !domain.netlink.contains(protocol));
    list(
        text,
        &format!("may not ask{who}"),
        lost.map(|it| netlink(it)).collect::<Vec<_>>().iter(),
    )?;
    let kept = domain.capabilities.iter().map(|name| format!("the capability {name}"));
    list(text, &format!("keeps{who}"), kept.collect::<Vec<_>>().iter())?;
    guard(text, domain, (base, who), variables)?;
    let from = domain.from.as_ref().map(|from| format!(", in {}", from.join(" and ")));
    let from = from.filter(|_| !is_main).unwrap_or_default();
    let program = |name: &String| match name.as_str() {
        "*" => "whatever else may be executed".to_owned(),
        _ => place(name),
    };
    let programs = domain.programs.iter().map(|name| format!("{}{from}", program(name)));
    let verb = if is_main { "stays in its domain by executing" } else { "is entered by executing" };
    list(text, &format!("{verb}{who}"), programs.collect::<Vec<_>>().iter())?;
    list(text, &format!("believes the environment of{who}"), domain.believes.iter())?;
    list(text, &format!("serves at ports of its own{who}"), domain.serves.iter())?;
    let alone = (!domain.inherits).then_some("none of the files that are granted above");
    list(text, &format!("has{who}"), alone.iter())
}

/// What of the guard is another than that of the `base`.
fn guard(
    text: &mut String,
    domain: &Domain,
    (base, who): (&Compiled, &str),
    variables: &Variables,
) -> std::fmt::Result {
    let base = base.domains.first();
    let said = match domain.guard {
        guard if base.is_some_and(|base| base.guard == guard) => None,
        None => Some("may change"),
        Some(GuardAction::Deny) => Some("may not change"),
        Some(GuardAction::Report) => Some("may change, and Dewar tells of,"),
    };
    let names = ["names that programs outside trust (files.guard)"];
    if let Some(verb) = said {
        list(text, &format!("{verb}{who}"), names.iter())?;
    }
    let known =
        base.filter(|base| base.name != domain.name).map_or(&[][..], |base| &base.unguarded);
    let free = domain.unguarded.iter().filter(|name| !known.contains(name));
    let free = free.map(|name| format!("in {}", shown(Path::new(name), variables)));
    list(text, &format!("may change such names{who}"), free.collect::<Vec<_>>().iter())
}

/// What is about all of a run.
pub(super) fn of_run(
    text: &mut String,
    (default, compiled): (&Compiled, &Compiled),
    variables: &Variables,
) -> std::fmt::Result {
    let has_none = default.private_loopback.is_some() && compiled.private_loopback.is_none();
    let own =
        "ports of its own on this machine's loopback, where programs outside can connect to them";
    list(text, "has", compiled.own_ports.then_some(own).iter())?;
    let has_none = has_none && !compiled.own_ports;
    list(text, "has", has_none.then_some("no loopback of its own").iter())?;
    let is_fast = compiled.mode == Mode::Fast && default.mode != Mode::Fast;
    let fast = "reading to the kernel: no record, no taking back (mode fast)";
    list(text, "leaves", is_fast.then_some(fast).iter())?;
    let is_strict = compiled.hiding == Hiding::Strict && default.hiding != Hiding::Strict;
    let strict = "names, too, where there is no view (hiding strict)";
    list(text, "hides", is_strict.then_some(strict).iter())?;
    let made = compiled.directories.iter().filter(|it| !default.directories.contains(it));
    let made = made.map(|path| format!("{}, if it is not there", shown(path, variables)));
    list(text, "makes", made.collect::<Vec<_>>().iter())?;
    list(text, "may use at most", limits(&compiled.limits).iter())?;
    environment(text, &default.environment, &compiled.environment)
}

fn limits(limits: &Limits) -> Vec<String> {
    let mebibytes = |bytes: u64| format!("{} MiB", bytes >> 20);
    let all = [
        limits.memory_bytes.map(|bytes| format!("{} of memory", mebibytes(bytes))),
        limits.processes.map(|count| format!("{count} processes and threads")),
        limits.cpu_percent.map(|share| format!("{share} % of one processor")),
        limits.time.map(|time| format!("{} of time", humantime::format_duration(time))),
        limits.files.map(|count| format!("{count} open files in one process")),
        limits.file_size_bytes.map(|bytes| format!("{} for one file", mebibytes(bytes))),
    ];
    all.into_iter().flatten().collect()
}

fn environment(text: &mut String, default: &Environment, own: &Environment) -> std::fmt::Result {
    let set = own.set.iter();
    let set = set.filter(|(name, value)| default.set.get(*name) != Some(*value));
    let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
    list(text, "sets", set.iter())?;
    let seen = |of: &Environment, name: &_, value: &_| of.fate(name, value).is_seen();
    let passes = std::env::vars_os().filter(|(name, value)| {
        seen(own, name, value)
            && !seen(default, name, value)
            && !own.set.contains_key(&*name.to_string_lossy())
    });
    let passes: Vec<String> = passes.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    list(text, "sees the variables", passes.iter())?;
    list(text, "sees variables called", named(default, own).iter())?;
    let known: BTreeSet<_> = default.rules().collect();
    let dropped = own.rules().filter(|rule| !rule.1 && !known.contains(rule)).map(|rule| rule.0);
    list(text, "does not see variables called", dropped.collect::<BTreeSet<_>>().iter())
}

/// The names of variables that pass and would not by default, whether they are set now or not.
fn named<'a>(default: &'a Environment, own: &'a Environment) -> BTreeSet<&'a str> {
    let known: BTreeSet<_> = default.rules().collect();
    let passes = own.rules().filter(|rule| rule.1 && !known.contains(rule));
    let is_let_through = |name: &str| own.passes(&name.replace(['*', '?'], "X"));
    let dropped = default.rules().filter(|(name, passes)| !passes && is_let_through(name));
    passes.chain(dropped).map(|(name, _)| name).collect()
}
