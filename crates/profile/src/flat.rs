//! A profile with all that it extends, as one text.

use crate::document::{Document, DomainLists};
use crate::source::Located;
use std::fmt::Write as _;

/// One list of a domain, as it is written.
type List = (&'static str, fn(&DomainLists) -> &[Located<String>]);

const GRANTS: [List; 4] = [
    ("files.list", |lists| &lists.files.list),
    ("files.read", |lists| &lists.files.read),
    ("files.write", |lists| &lists.files.write),
    ("files.exec", |lists| &lists.files.exec),
];

const DENIALS: [List; 3] = [
    ("files.readonly", |lists| &lists.files.readonly),
    ("files.deny", |lists| &lists.files.deny),
    ("files.hide", |lists| &lists.files.hide),
];

const OTHERS: [List; 2] = [
    ("files.unguarded", |lists| &lists.files.unguarded),
    ("capabilities", |lists| &lists.capabilities),
];

/// What a later document can forget.
const NETWORK: [List; 3] = [
    ("network.connect", |lists| &lists.network.connect),
    ("network.bind", |lists| &lists.network.bind),
    ("network.registries", |lists| &lists.network.registries),
];

/// The text of a profile that extends nothing and says what `documents`, the most basic first, say
/// together.
///
/// What a later document denies or grants takes the place of what an earlier one said of the same
/// pattern. Where patterns of several documents overlap otherwise, which of them wins may depend on
/// their order: whoever prints the text compares first what it stands for.
pub(crate) fn text(documents: &[Document]) -> String {
    let mut text = String::new();
    let last =
        |pick: fn(&Document) -> Option<&Located<String>>| documents.iter().rev().find_map(pick);
    for (key, value) in [
        ("description", last(|it| it.description.as_ref())),
        ("mode", last(|it| it.mode.as_ref())),
        ("hiding", last(|it| it.hiding.as_ref())),
    ] {
        entry(&mut text, key, value.map(|value| quoted(&value.value)));
    }
    let main: Vec<&DomainLists> = documents.iter().map(|document| &document.main).collect();
    lists(&mut text, &main);
    entry(&mut text, "network.loopback", loopback(documents).map(quoted));
    environment(&mut text, documents);
    for (key, value) in [
        ("limits.memory", last(|it| it.limits.memory.as_ref())),
        ("limits.processes", last(|it| it.limits.processes.as_ref())),
        ("limits.cpu", last(|it| it.limits.cpu.as_ref())),
        ("limits.time", last(|it| it.limits.time.as_ref())),
        ("limits.files", last(|it| it.limits.files.as_ref())),
        ("limits.file_size", last(|it| it.limits.file_size.as_ref())),
    ] {
        entry(&mut text, key, value.map(|value| number_or_text(&value.value)));
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in documents.iter().flat_map(|document| &document.domains) {
        if !names.contains(&name.value.as_str()) {
            names.push(&name.value);
        }
    }
    for name in names {
        let all = documents.iter().flat_map(|document| &document.domains);
        let own: Vec<&DomainLists> =
            all.filter(|(known, _)| known.value == name).map(|(_, lists)| lists).collect();
        let _ = writeln!(text, "\n[domains.{}]", quoted(name));
        lists(&mut text, &own);
    }
    text
}

/// Everything that one domain says, layer by layer.
fn lists(text: &mut String, layers: &[&DomainLists]) {
    let exec: Vec<&str> =
        layers.iter().flat_map(|it| &it.exec).map(|it| it.value.as_str()).collect();
    list(text, "exec", &exec);
    if layers.iter().any(|it| it.from.is_some()) {
        let from = layers.iter().flat_map(|it| it.from.iter().flatten());
        let from: Vec<String> = from.map(|it| quoted(&it.value)).collect();
        entry(text, "from", Some(format!("[{}]", from.join(", "))));
    }
    let inherit = layers.iter().rev().find_map(|it| it.inherit.as_ref());
    entry(text, "inherit", inherit.map(|it| it.value.to_string()));
    for (own, other) in [(&GRANTS[..], &DENIALS[..]), (&DENIALS[..], &GRANTS[..])] {
        for (key, pick) in own {
            let mut kept = Vec::new();
            for (at, layer) in layers.iter().enumerate() {
                let later = &layers[at + 1..];
                let is_replaced = |value: &str| {
                    let said =
                        later.iter().flat_map(|it| other.iter().flat_map(|(_, pick)| pick(it)));
                    said.into_iter().any(|it| it.value == value)
                };
                let values = pick(layer).iter().map(|it| it.value.as_str());
                kept.extend(values.filter(|value| !is_replaced(value)));
            }
            list(text, key, &kept);
        }
    }
    let remembered = remembered(layers);
    for (lists, layers) in [(&OTHERS[..], layers), (&NETWORK[..], remembered)] {
        for (key, pick) in lists {
            let all: Vec<&str> =
                layers.iter().flat_map(|it| pick(it)).map(|it| it.value.as_str()).collect();
            list(text, key, &all);
        }
    }
    let files = |pick: fn(&DomainLists) -> Option<&Located<String>>| {
        layers.iter().rev().find_map(|it| pick(it)).map(|it| quoted(&it.value))
    };
    entry(text, "files.guard", files(|it| it.files.guard.as_ref()));
    entry(text, "files.guard_action", files(|it| it.files.guard_action.as_ref()));
    let netlink = remembered.iter().rev().find_map(|it| it.network.netlink.as_ref());
    let netlink =
        netlink.map(|it| it.value.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", "));
    entry(text, "network.netlink", netlink.map(|names| format!("[{names}]")));
}

/// The layers whose word about the network counts: from the last one on that forgets those before.
/// One text has nothing to forget.
fn remembered<'a, 'b>(layers: &'a [&'b DomainLists]) -> &'a [&'b DomainLists] {
    let forgets =
        |it: &&DomainLists| it.network.inherit.as_ref().is_some_and(|inherit| !inherit.value);
    &layers[layers.iter().rposition(forgets).unwrap_or(0)..]
}

/// The loopback that is meant. One of the run's own gives way to hosts that a later document names.
fn loopback(documents: &[Document]) -> Option<&str> {
    let main: Vec<&DomainLists> = documents.iter().map(|document| &document.main).collect();
    let layers = remembered(&main);
    let at = layers.iter().rposition(|it| it.network.loopback.is_some())?;
    let value = layers[at].network.loopback.as_ref().map(|it| it.value.as_str());
    let own = documents.iter().flat_map(|document| &document.domains).map(|(_, lists)| lists);
    let mut rules = layers.iter().copied().chain(own).flat_map(|it| {
        NETWORK.iter().flat_map(|(_, pick)| pick(it)).map(|rule| rule.value.as_str())
    });
    let reaches_outside = rules.any(|rule| !rule.starts_with("unix"));
    let gives_way = value == Some("private") && at + 1 < layers.len() && reaches_outside;
    value.filter(|_| !gives_way)
}

fn environment(text: &mut String, documents: &[Document]) {
    let pass = documents.iter().flat_map(|it| &it.env.pass).map(|it| it.value.as_str());
    list(text, "env.pass", &pass.collect::<Vec<_>>());
    let drop = documents.iter().flat_map(|it| &it.env.drop).map(|it| it.value.as_str());
    list(text, "env.drop", &drop.collect::<Vec<_>>());
    let mut set: Vec<(&str, &str)> = Vec::new();
    for (name, value) in documents.iter().flat_map(|it| &it.env.set) {
        set.retain(|(known, _)| *known != name.value);
        set.push((&name.value, &value.value));
    }
    for (name, value) in set {
        entry(text, &format!("env.set.{}", quoted(name)), Some(quoted(value)));
    }
}

fn entry(text: &mut String, key: &str, value: Option<String>) {
    if let Some(value) = value {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "{key} = {value}");
    }
}

/// A list, each value once, a line each where there are many.
fn list(text: &mut String, key: &str, values: &[&str]) {
    let mut seen = std::collections::HashSet::new();
    let values: Vec<String> =
        values.iter().filter(|value| seen.insert(**value)).map(|value| quoted(value)).collect();
    match values.len() {
        0 => {}
        1..=3 => entry(text, key, Some(format!("[{}]", values.join(", ")))),
        _ => entry(text, key, Some(format!("[\n    {},\n]", values.join(",\n    ")))),
    }
}

/// A basic string of TOML.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04X}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text + "\""
}

fn number_or_text(value: &str) -> String {
    if value.parse::<u64>().is_ok() { value.to_owned() } else { quoted(value) }
}
