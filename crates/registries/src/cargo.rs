//! Cargo: `config.toml` of its home, and variables. What projects and directories above them say
//! does not count.

use crate::asked::ToolRegistries;
use crate::roots::ConfigRoots;
use toml::{Table, Value};

const DEFAULT: [&str; 2] = ["https://index.crates.io/", "https://static.crates.io/"];

pub(crate) fn ask(roots: &ConfigRoots<'_>, asked: &mut ToolRegistries) {
    let home = roots.directory("CARGO_HOME", ".cargo");
    // The old name comes first where both are there, as in Cargo.
    let old = asked.toml(roots, &home.join("config"));
    let new = asked.toml(roots, &home.join("config.toml"));
    let config = old.or(new).unwrap_or_default();
    let empty = Table::new();
    let table = |name: &str| config.get(name).and_then(Value::as_table).unwrap_or(&empty);
    let sources = table("source");
    sources_of(roots, sources, asked);
    for registry in table("registries").values() {
        if let Some(index) = text(registry, "index") {
            asked.add(index);
        }
    }
    for (name, value) in roots.variables {
        if name.starts_with("CARGO_REGISTRIES_") && name.ends_with("_INDEX") {
            asked.add(value);
        }
    }
    let proxy = table("http").get("proxy").and_then(Value::as_str);
    if let Some(proxy) = roots.variable("CARGO_HTTP_PROXY").or(proxy) {
        asked.add_proxy(proxy);
    }
}

/// What crates.io is replaced by, if it is.
fn sources_of(roots: &ConfigRoots<'_>, sources: &Table, asked: &mut ToolRegistries) {
    let mut name = "crates-io";
    let mut registry: Option<String> = None;
    for _ in 0..=sources.len() {
        let source = sources.get(name);
        registry = match source {
            Some(source) => text(source, "registry").map(str::to_owned),
            None => None,
        };
        let is_elsewhere = |key| source.is_some_and(|source| text(source, key).is_some());
        let variable =
            format!("CARGO_SOURCE_{}_REPLACE_WITH", name.replace('-', "_").to_uppercase());
        let next = source.and_then(|source| text(source, "replace-with"));
        match roots.variable(&variable).or(next) {
            Some(next) => name = next,
            // A directory needs no network.
            None if is_elsewhere("directory") || is_elsewhere("local-registry") => return,
            None => break,
        }
    }
    match registry {
        Some(url) => asked.add(&url),
        None if name == "crates-io" => DEFAULT.iter().for_each(|url| asked.add(url)),
        None => {
            let git = sources.get(name).and_then(|source| text(source, "git"));
            git.into_iter().for_each(|url| asked.add(url));
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.as_table()?.get(key)?.as_str()
}
