//! Names of hosts that a command may want, so that its addresses can be told by name.

use profile::Variables;
use registries::{Plain, Tool};
use std::{collections::BTreeSet, path::Path};

/// Programs that ask the registries of a tool.
const TOOLS: [(&[&str], &[Tool]); 5] = [
    (&["npm", "npx", "node", "pnpm", "yarn", "corepack"], &[Tool::Npm, Tool::Pnpm]),
    (&["cargo", "rustc", "rustup"], &[Tool::Cargo]),
    (&["pip", "pip3", "uv", "pytest", "python", "python3"], &[Tool::Pip, Tool::Uv]),
    (&["go", "gofmt"], &[Tool::Go]),
    (&["mvn", "gradle", "gradlew"], &[Tool::Maven, Tool::Gradle]),
];

/// Programs that ask other hosts.
const OTHERS: [(&[&str], &[&str]); 3] = [
    (&["git", "gh"], &["github.com"]),
    (&["cargo"], &["crates.io"]),
    (&["mvn"], &["repo1.maven.org"]),
];

/// The tool that a project's file belongs to.
const PROJECTS: [(&str, &str); 7] = [
    ("package.json", "npm"),
    ("Cargo.toml", "cargo"),
    ("pyproject.toml", "pip"),
    ("requirements.txt", "pip"),
    ("go.mod", "go"),
    ("pom.xml", "mvn"),
    ("build.gradle", "gradle"),
];

/// Where tools are told otherwise.
const VARIABLES: [&str; 8] = [
    "npm_config_registry",
    "NPM_CONFIG_REGISTRY",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_INDEX_URL",
    "GOPROXY",
    "HTTPS_PROXY",
    "https_proxy",
];

/// Files with addresses of registries, in the project and in the home.
const SETTINGS: [&str; 5] =
    [".npmrc", ".cargo/config.toml", ".config/pip/pip.conf", "pip.conf", ".git/config"];

/// The most that is read of one of them.
const MOST_BYTES: u64 = 1 << 20;

/// Names that `command` in `variables`' workspace may ask for, sorted.
pub(super) fn candidates(command: &str, variables: &Variables) -> Vec<String> {
    let words: BTreeSet<&str> =
        command.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let project = PROJECTS.iter().filter(|(file, _)| variables.workspace.join(file).exists());
    let tools: BTreeSet<&str> = project.map(|(_, tool)| *tool).chain(words).collect();
    let mut names: BTreeSet<String> = urls(command).collect();
    for (_, asked) in
        TOOLS.iter().filter(|(programs, _)| programs.iter().any(|p| tools.contains(p)))
    {
        let asked = asked.iter().filter_map(|tool| variables.registries.get(tool.name()));
        let endpoints = asked.flat_map(|registries| &registries.endpoints);
        names.extend(endpoints.filter_map(|endpoint| name_of(endpoint)));
    }
    for (programs, hosts) in OTHERS {
        if programs.iter().any(|program| tools.contains(program)) {
            names.extend(hosts.iter().map(|host| (*host).to_owned()));
        }
    }
    for variable in VARIABLES {
        names.extend(urls(&std::env::var(variable).unwrap_or_default()));
    }
    for place in [&variables.workspace, &variables.home] {
        for file in SETTINGS {
            names.extend(urls(&read(&place.join(file)).unwrap_or_default()));
        }
    }
    names.into_iter().collect()
}

/// The host of an endpoint, if it is a name.
fn name_of(endpoint: &str) -> Option<String> {
    let host = endpoint.rsplit_once(':')?.0;
    let has_letter = host.rsplit('.').next()?.starts_with(|c: char| c.is_ascii_lowercase());
    (has_letter && host.contains('.') && !host.starts_with('[')).then(|| host.to_owned())
}

fn read(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut text = String::new();
    Plain::find(path).ok()?.open().ok()?.take(MOST_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The hosts in the addresses of a text, with the ports that they are asked at.
pub(crate) fn endpoints(text: &str) -> Vec<String> {
    const PORTS: [(&str, u16); 6] =
        [("https", 443), ("http", 80), ("ssh", 22), ("git", 9418), ("ftp", 21), ("wss", 443)];
    let named = urls(text).filter_map(|name| {
        let (before, behind) = text.split_once(name.as_str())?;
        let (before, _) = before.rsplit_once("://")?;
        let known = PORTS.iter().find(|(scheme, _)| before.ends_with(scheme));
        let port = behind.strip_prefix(':').map(|rest| {
            rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse().ok()
        });
        let port = port.unwrap_or_else(|| known.map(|(_, port)| *port))?;
        Some(format!("{name}:{port}"))
    });
    named.collect()
}

/// The names in the addresses `SCHEME://[USER@]NAME[:PORT]/…` of a text.
fn urls(text: &str) -> impl Iterator<Item = String> + '_ {
    text.match_indices("://").filter_map(|(at, mark)| {
        let rest = &text[at + mark.len()..];
        let end = rest.find(|c: char| "/?# \t\n\"'\\,;|<>()".contains(c)).unwrap_or(rest.len());
        let host = rest[..end].rsplit('@').next()?.split(':').next()?.to_ascii_lowercase();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
        let is_name = host.contains('.') && host.chars().all(plain) && host.len() < 254;
        let has_letter = host.rsplit('.').next()?.starts_with(|c: char| c.is_ascii_lowercase());
        (is_name && has_letter && !host.starts_with(['.', '-'])).then_some(host)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_addresses_and_never_passwords() {
        let text = "registry=https://me:pass@npm.example.org:8443/x\nindex = \"sparse+https://crates.example.org/i/\" http://192.0.2.1/ http://localhost:1/ ssh://git@Git.Example.org/a";
        let found: Vec<String> = urls(text).collect();
        assert_eq!(found, ["npm.example.org", "crates.example.org", "git.example.org"]);
        for (text, want) in [
            ("--index-url=https://me:pass@pypi.org/simple", &["pypi.org:443"][..]),
            ("http://a.example.org:8080/x", &["a.example.org:8080"]),
            ("ssh://git@b.example.org/a", &["b.example.org:22"]),
            ("https://192.0.2.1/", &[]),
            ("pypi.org", &[]),
        ] {
            assert_eq!(endpoints(text), want, "{text}");
        }
    }
}
