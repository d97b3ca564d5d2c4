//! A profile with all that it extends, as one text.

use crate::document::{Document, DomainLists};
use crate::source::Located;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// One list of a domain, as it is written.
type List = (&'static str, fn(&DomainLists) -> &[Located<String>]);

/// Of two that name one pattern in one file, the later has the last word.
const FILES: [List; 7] = [
    ("files.list", |lists| &lists.files.list),
    ("files.read", |lists| &lists.files.read),
    (WRITE, |lists| &lists.files.write),
    ("files.exec", |lists| &lists.files.exec),
    (READONLY, |lists| &lists.files.readonly),
    (DENY, |lists| &lists.files.deny),
    (HIDE, |lists| &lists.files.hide),
];
const WRITE: &str = "files.write";
const READONLY: &str = "files.readonly";
const DENY: &str = "files.deny";
const HIDE: &str = "files.hide";

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
///
/// `is_private` says whether they come to a loopback of the run's own: a document that names
/// endpoints outside takes that from what it extends, and one text cannot say both.
pub(crate) fn text<'a>(documents: &'a [Document], is_private: bool) -> String {
    let mut text = String::new();
    let last =
        |pick: fn(&Document) -> Option<&Located<String>>| documents.iter().rev().find_map(pick);
    for (key, value) in [
        // What describes a profile is not said of one that extends it.
        ("description", documents.last().and_then(|it| it.description.as_ref())),
        ("mode", last(|it| it.mode.as_ref())),
        ("hiding", last(|it| it.hiding.as_ref())),
    ] {
        entry(&mut text, key, value.map(|value| quoted(&value.value)));
    }
    let main: Vec<&DomainLists> = documents.iter().map(|document| &document.main).collect();
    lists(&mut text, (&main, 0));
    let loopback = documents.iter().rev().find_map(|it| it.main.network.loopback.as_ref());
    let loopback = loopback.map(|it| match it.value.as_str() {
        "private" if !is_private => "none",
        said => said,
    });
    entry(&mut text, "network.loopback", loopback.map(quoted));
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
    let forgets = forgets(&main).unwrap_or(0);
    for name in names {
        let of = |documents: &'a [Document]| {
            let all = documents.iter().flat_map(|document| &document.domains);
            all.filter(|(known, _)| known.value == name).map(|(_, lists)| lists)
        };
        let own: Vec<&DomainLists> = of(documents).collect();
        let _ = writeln!(text, "\n[domains.{}]", quoted(name));
        lists(&mut text, (&own, of(&documents[..forgets]).count()));
    }
    text
}

/// The last of `layers` that forgets the network of those before it.
fn forgets(layers: &[&DomainLists]) -> Option<usize> {
    layers.iter().rposition(|it| it.network.inherit.as_ref().is_some_and(|it| !it.value))
}

/// Everything that one domain says, layer by layer. What the first few say of the network is
/// `forgotten`.
fn lists<'a>(text: &mut String, (layers, forgotten): (&[&'a DomainLists], usize)) {
    let exec: Vec<&str> =
        layers.iter().flat_map(|it| &it.exec).map(|it| it.value.as_str()).collect();
    list(text, "exec", &exec);
    if layers.iter().any(|it| it.from.is_some()) {
        let from = layers.iter().flat_map(|it| it.from.iter().flatten());
        let from: Vec<String> = from.map(|it| quoted(&it.value)).collect();
        entry(text, "from", Some(format!("[{}]", from.join(", "))));
    }
    let believed = layers.iter().flat_map(|it| &it.noatsecure);
    list(text, "noatsecure", &believed.map(|it| it.value.as_str()).collect::<Vec<_>>());
    let served = layers.iter().flat_map(|it| &it.serves);
    list(text, "serves", &served.map(|it| it.value.as_str()).collect::<Vec<_>>());
    let inherit = layers.iter().rev().find_map(|it| it.inherit.as_ref());
    entry(text, "inherit", inherit.map(|it| it.value.to_string()));
    let kept = files_of(layers);
    for (key, _) in FILES {
        let own = kept.iter().filter(|(list, _)| *list == key).map(|(_, value)| value.as_str());
        list(text, key, &own.collect::<Vec<_>>());
    }
    let all = |layers: &[&'a DomainLists], pick: fn(&DomainLists) -> &[Located<String>]| {
        layers.iter().flat_map(|it| pick(it)).map(|it| it.value.as_str()).collect::<Vec<_>>()
    };
    list(text, "files.unguarded", &all(layers, |lists| &lists.files.unguarded));
    list(text, "capabilities", &all(layers, |lists| &lists.capabilities));
    // Whoever inherits no network says so for all that it extends.
    let own = &layers[forgets(layers).unwrap_or(0).max(forgotten)..];
    for (key, pick) in NETWORK {
        list(text, key, &all(own, pick));
    }
    let files = |pick: fn(&DomainLists) -> Option<&Located<String>>| {
        layers.iter().rev().find_map(|it| pick(it)).map(|it| quoted(&it.value))
    };
    entry(text, "files.guard", files(|it| it.files.guard.as_ref()));
    entry(text, "files.guard_action", files(|it| it.files.guard_action.as_ref()));
    let netlink = own.iter().rev().find_map(|it| it.network.netlink.as_ref());
    let netlink =
        netlink.map(|it| it.value.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", "));
    entry(text, "network.netlink", netlink.map(|names| format!("[{names}]")));
    let inherit = layers.iter().rev().find_map(|it| it.network.inherit.as_ref());
    entry(text, "network.inherit", inherit.map(|it| it.value.to_string()));
}

/// The patterns of files that still have a say, each with its list: as [`crate::rights`] applies
/// them, what a layer denies ends all that was said of the same pattern before, and what it grants
/// ends a denial.
fn files_of(layers: &[&DomainLists]) -> Vec<(&'static str, String)> {
    let all = || layers.iter().flat_map(|it| FILES.iter().flat_map(|(_, pick)| pick(it)));
    let mut written: HashMap<String, &str> = HashMap::new();
    let mut shared: HashSet<&str> = HashSet::new();
    for value in all().map(|it| it.value.as_str()) {
        for pattern in alternatives(value) {
            // The same pattern among the alternatives of two: then each alternative stands alone.
            let place = place(&pattern).to_owned();
            if let Some(other) = written.insert(place, value).filter(|other| *other != value) {
                shared.extend([value, other]);
            }
        }
    }
    let mut kept: Vec<(&str, String)> = Vec::new();
    for layer in layers {
        for (key, pick) in FILES {
            let patterns = pick(layer).iter().flat_map(|it| match shared.contains(&*it.value) {
                true => alternatives(&it.value),
                false => vec![it.value.clone()],
            });
            for pattern in patterns {
                let is_about = |of: &str| place(of) == place(&pattern);
                kept.retain(|(list, of)| !is_about(of) || !is_ended(list, key));
                kept.push((key, pattern));
            }
        }
    }
    kept
}

/// What a pattern is about: a directory that is to be made, by a `/` at its end, is the same place.
fn place(pattern: &str) -> &str {
    pattern.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(pattern)
}

/// Whether what an earlier layer says of a pattern in `list` is ended by a later one in `by`.
fn is_ended(list: &str, by: &str) -> bool {
    let denies = |list| matches!(list, DENY | HIDE);
    denies(by) || denies(list) || matches!((list, by), (WRITE, READONLY) | (READONLY, WRITE))
}

/// The patterns that one with braces stands for; what is escaped, or a variable, has none.
fn alternatives(pattern: &str) -> Vec<String> {
    let (mut depth, mut start, mut cuts, mut previous) = (0, 0, Vec::new(), ' ');
    for (at, c) in pattern.char_indices() {
        match (c, previous) {
            (_, '\\' | '$') => {}
            ('{', _) => {
                if depth == 0 {
                    start = at;
                    cuts.push(at);
                }
                depth += 1;
            }
            (',', _) if depth == 1 => cuts.push(at),
            ('}', _) if depth == 1 => {
                cuts.push(at);
                let (before, after) = (&pattern[..start], &pattern[at + 1..]);
                let ways = cuts.windows(2).map(|cut| &pattern[cut[0] + 1..cut[1]]);
                let ways = ways.map(|way| format!("{before}{way}{after}"));
                return ways.flat_map(|way| alternatives(&way)).collect();
            }
            ('}', _) if depth > 1 => depth -= 1,
            _ => {}
        }
        previous = if previous == '\\' { ' ' } else { c };
    }
    vec![pattern.to_owned()]
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
    let mut seen = HashSet::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stand_for_their_alternatives_and_variables_for_themselves() {
        for (pattern, want) in [
            ("${home}/.ssh", &["${home}/.ssh"][..]),
            ("${home}/.claude{,.json}", &["${home}/.claude", "${home}/.claude.json"]),
            ("/{a,b{c,d}}/x", &["/a/x", "/bc/x", "/bd/x"]),
            ("/\\{a,b\\}", &["/\\{a,b\\}"]),
            ("/{a}/{b,c}", &["/a/b", "/a/c"]),
        ] {
            assert_eq!(alternatives(pattern), want, "{pattern}");
        }
    }
}
