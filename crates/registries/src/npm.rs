//! npm and pnpm: `.npmrc`, the machine's, the user's, and variables over both. A project's `.npmrc`
//! does not count.

use crate::asked::ToolRegistries;
use crate::ini;
use crate::roots::ConfigRoots;
use std::collections::BTreeMap;
use std::path::PathBuf;

const DEFAULT: &str = "https://registry.npmjs.org/";

/// Files in the home in which pnpm keeps settings of its own.
pub(crate) const PNPM: [&str; 1] = [".config/pnpm/rc"];

pub(crate) fn ask(roots: &ConfigRoots<'_>, more: &[&str], asked: &mut ToolRegistries) {
    let mut settings: BTreeMap<String, String> = BTreeMap::new();
    // What is more special comes later.
    for path in files(roots, more) {
        let text = asked.read(roots, &path).unwrap_or_default();
        for (section, key, value) in ini::pairs(&text, false) {
            if section.is_empty() {
                settings.insert(key, ini::expanded(&value, roots));
            }
        }
    }
    let in_files = settings.clone();
    for (name, value) in roots.variables {
        if let Some(key) = strip(name) {
            let key =
                if key.starts_with('@') { key } else { key.to_ascii_lowercase().replace('_', "-") };
            settings.insert(key, value.clone());
        }
    }
    let registry = settings.get("registry").filter(|url| !url.is_empty());
    asked.add(registry.map_or(DEFAULT, String::as_str));
    for (key, value) in &settings {
        match key.as_str() {
            "proxy" | "https-proxy" | "http-proxy"
                if !matches!(value.as_str(), "null" | "false") =>
            {
                asked.add_proxy(value);
            }
            scoped if scoped.starts_with('@') && scoped.ends_with(":registry") => asked.add(value),
            _ => {}
        }
    }
    for (key, value) in in_files {
        if (key == "registry" || key.ends_with(":registry")) && settings.get(&key) == Some(&value) {
            asked.tell(&format!("npm_config_{key}"), &value);
        }
    }
}

/// The name of a setting that a variable is about.
fn strip(variable: &str) -> Option<String> {
    let head = variable.get(..11)?;
    head.eq_ignore_ascii_case("npm_config_").then(|| variable[11..].to_owned())
}

fn files(roots: &ConfigRoots<'_>, more: &[&str]) -> Vec<PathBuf> {
    let setting = |name: &str| {
        let is = |known: &String| strip(known).is_some_and(|key| key.eq_ignore_ascii_case(name));
        let found = roots.variables.iter().find(|(known, _)| is(known));
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let mut files = match (setting("globalconfig"), setting("prefix")) {
        (Some(file), _) => vec![file],
        (None, Some(prefix)) => vec![prefix.join("etc/npmrc")],
        (None, None) => ["/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"]
            .map(|path| roots.system(path))
            .to_vec(),
    };
    files.extend(more.iter().map(|path| roots.home.join(path)));
    files.push(setting("userconfig").unwrap_or_else(|| roots.home.join(".npmrc")));
    files
}
